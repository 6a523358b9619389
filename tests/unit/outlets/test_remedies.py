from __future__ import annotations

import pytest

from advisor.outlets.remedies import ORDER, options, usefulness


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        ("30 scrapes are needed: no engine metrics over time: give --prometheus", {"--prometheus"}),
        ("max_num_seqs is in no metric: give a start-up log (--startup-log) or --set max_num_seqs=N",
         {"--startup-log", "--set"}),
        ("no latency objective is given (--slo-tpot, --slo-ttft)", {"--slo-"}),
        ("only known to lie between 0.3 and 0.9: not enough to decide", set()),
    ],
)  # fmt: skip
def test_a_reason_names_the_options_that_would_resolve_it(reason: str, named: set[str]) -> None:
    assert options(reason) == named


def test_a_reason_is_as_useful_as_its_best_option() -> None:
    """Four rules wait for the log and two for metrics, so a reason that names both is worth the log's four."""
    wanted = {"--logs": 4, "--prometheus": 2}
    assert usefulness("a request log (--logs) or metrics (--prometheus)", wanted) == (-4, ORDER.index("--logs"))


def test_what_nothing_resolves_comes_after_what_one_rule_waits_for() -> None:
    assert usefulness("too few requests", {}) > usefulness("give --model-config", {"--model-config": 1})
