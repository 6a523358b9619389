"""The latest evaluation as the daemon keeps it at hand: the fleet in outline, each deployment packed until asked for.

A thousand deployments with all their figures take over 200 MB as objects, of which a page shows one.
"""

from __future__ import annotations

import ctypes
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace

from advisor.domain.advice import Finding, Judgement, Need, Undetermined
from advisor.domain.errors import SourceError
from advisor.domain.fact import FactSheet
from advisor.domain.pictures import Pictures
from advisor.domain.report import DeploymentReport
from advisor.outlets import silence
from advisor.outlets.restore import restore

_MEMBERS = re.compile(r'"deployments":\s*\[')
"""Where the deployments begin. Within a JSON text its quotation marks would be escaped, so it cannot be a name."""
_SEPARATOR = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()
_NO_FACTS, _NO_PICTURES = FactSheet({}), Pictures()


class Shown:
    """An evaluation. `at`: UNIX seconds. `outline`: of each deployment what it is, what runs, and what is advised.

    observed_days: what the logs span, by deployment.
    Raises SourceError for a document of another version.
    """

    def __init__(self, at: float, document_json: str) -> None:
        self.at = at
        begin, members, end = _taken_apart(document_json)
        self._frame = (document_json[:begin], document_json[end:])
        self._packed: list[bytes] = []
        self.observed_days: dict[str, float] = {}
        outlines = []
        for first, last in members:
            member = document_json[first:last]
            whole = self._whole(member)
            outlines.append(_outline(whole))
            if (days := whole.facts["observed_days"].number) is not None:
                self.observed_days[whole.evidence.name] = days
            self._packed.append(zlib.compress(member.encode("utf-8", "surrogatepass"), 1))
        self.outline = replace(restore("".join(self._frame)), deployments=tuple(outlines))
        _give_memory_back()

    def deployments(self) -> Iterator[DeploymentReport]:
        """Everything about each, one after the other."""
        return map(self._unpacked, range(len(self._packed)))

    def deployment(self, name: str) -> DeploymentReport | None:
        """Everything about one; None when there is no such name."""
        places = (place for place, d in enumerate(self.outline.deployments) if d.evidence.name == name)
        place = next(places, None)
        return None if place is None else self._unpacked(place)

    def _unpacked(self, place: int) -> DeploymentReport:
        return self._whole(zlib.decompress(self._packed[place]).decode("utf-8", "surrogatepass"))

    def _whole(self, member: str) -> DeploymentReport:
        before, after = self._frame
        return restore(f"{before}{member}{after}").deployments[0]


def _taken_apart(text: str) -> tuple[int, list[tuple[int, int]], int]:
    """Where the list of deployments begins, from where to where each reaches, and where the list ends."""
    found = _MEMBERS.search(text)
    if found is None:
        raise SourceError("no report of this version of advisor: it has no deployments", permanent=True)
    place, members = _next(text, found.end()), []
    while not text.startswith("]", place):
        try:
            _, end = _DECODER.raw_decode(text, place)
        except ValueError as error:
            raise SourceError(f"no report of this version of advisor: {error}", permanent=True) from None
        members.append((place, end))
        place = _next(text, end)
    return found.end(), members, place


def _next(text: str, place: int) -> int:
    found = _SEPARATOR.match(text, place)
    return found.end() if found else place


def _outline(whole: DeploymentReport) -> DeploymentReport:
    judgement = whole.judgement
    lacks = silence.needs(judgement.undetermined)[:1]
    brief = Judgement(
        judgement.status,
        judgement.advice,
        tuple(Finding(f.rule, f.title, ()) for f in judgement.findings),
        tuple(Undetermined("", (Need(lack.facts[0], lack.reason),)) for lack in lacks),
        (),
    )
    return DeploymentReport(whole.evidence, _NO_FACTS, brief, _NO_PICTURES)


def _give_memory_back() -> None:
    """glibc keeps what was freed, which after a document of tens of megabytes is most of the process."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
