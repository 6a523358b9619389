"""What the sample leaves out: a source that could not show a thing does not say that there is none."""

from __future__ import annotations

from dataclasses import replace

from advisor.estimates import censoring
from tests.unit.estimates.evidence import NOTHING, engine, joint, log, windows


def test_a_log_without_finish_reasons_or_errors_tells_of_no_cuts_and_no_refusals() -> None:
    told = log(joint((100, 10, 1000)))
    facts = censoring.facts(replace(NOTHING, log=told), 4096)
    assert (facts["finish_length_share"].value, facts["refused_share_now"].value) == (0.0, 0.0)
    silent = replace(told, tells_cuts=False, tells_refusals=False)
    facts = censoring.facts(replace(NOTHING, log=silent), 4096)
    assert facts["finish_length_share"].unknown
    assert facts["refused_share_now"].unknown


def test_engines_tell_what_the_log_cannot() -> None:
    """3 of 1,000 finished for length: at the limit or at max_tokens, nobody knows."""
    silent = replace(log(joint((100, 10, 1000))), tells_cuts=False)
    counted = engine(counters=windows({"finished": [1000.0], "finished_length": [3.0]}))
    fact = censoring.facts(replace(NOTHING, log=silent, engines=(counted,)), 4096)["finish_length_share"]
    assert (fact.value, fact.low, fact.high) == (None, 0.0, 0.003)
