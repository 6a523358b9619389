"""From the contract's document back to what the rules said; the part that one line of status needs, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from advisor.domain.advice import Advice, EvidenceLine, Finding, Judgement, Need, NotFired, Prediction, Undetermined

Part = Mapping[str, Any]


def restore_judgement(deployment: Part) -> Judgement:
    """The judgement of one deployment of a document.

    Raises KeyError, TypeError, ValueError or AttributeError where it has not the contract's shape.
    """
    return Judgement(
        status=deployment["status"],
        advice=tuple(map(restore_advice, deployment["advice"])),
        findings=tuple(Finding(f["rule"], f["title"], _lines(f["evidence"])) for f in deployment["findings"]),
        undetermined=tuple(
            Undetermined(u["rule"], tuple(Need(n["fact"], n["reason"]) for n in u["needs"]))
            for u in deployment["undetermined"]
        ),
        not_fired=tuple(NotFired(rule=n["rule"], **n["closest"]) for n in deployment["not_fired"]),
    )


def restore_advice(advice: Part) -> Advice:
    """One recommendation. A document from before titles were told has the rule's id in their place."""
    parts = {
        "title": advice.get("title") or advice["rule"],
        "evidence": _lines(advice["evidence"]),
        "prediction": tuple(Prediction(**p) for p in advice["prediction"]),
        "options": tuple(advice["options"]),
    }
    return Advice(**{**advice, **parts})


def _lines(evidence: Sequence[Part]) -> tuple[EvidenceLine, ...]:
    return tuple(EvidenceLine(**line) for line in evidence)
