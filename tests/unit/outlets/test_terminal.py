from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from advisor.domain.fact import FactSheet, measured
from advisor.outlets.plain import cells
from advisor.outlets.terminal import render_table
from tests.unit.outlets import samples

CASES = {
    "planned": samples.report(samples.planned(), sources=()),
    "throttled": samples.report(samples.throttled()),
    "short_of_replicas": samples.report(samples.short_of_replicas()),
    "healthy": samples.report(samples.healthy()),
    "cannot_tell": samples.report(samples.cannot_tell()),
    "sweep_first": samples.report(samples.sweep_first()),
    "no_data": samples.report(samples.no_data()),
    "nothing": samples.report(sources=samples.POOR_SOURCES),
    "fleet": samples.fleet(),
    "hostile": samples.report(*map(samples.hostile, samples.HOSTILE_NAMES)),
}


@pytest.mark.parametrize("case", CASES)
def test_80_columns(case: str, snapshot: SnapshotAssertion) -> None:
    assert render_table(CASES[case]) == snapshot


@pytest.mark.parametrize("case", ["fleet", "throttled"])
def test_120_columns(case: str, snapshot: SnapshotAssertion) -> None:
    assert render_table(CASES[case], width=120) == snapshot


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [80, 97, 120])
def test_it_fits_the_width_in_printable_lines(case: str, width: int) -> None:
    for line in render_table(CASES[case], width=width, verbose=True).split("\n"):
        assert cells(line) <= width
        assert line.isprintable()
        assert line == line.rstrip()


def test_widths_that_no_table_fits_are_brought_into_range() -> None:
    assert render_table(CASES["fleet"], width=1) == render_table(CASES["fleet"], width=80)
    assert render_table(CASES["fleet"], width=500) == render_table(CASES["fleet"], width=120)


@pytest.mark.parametrize("case", CASES)
def test_colour_moves_nothing(case: str) -> None:
    painted = render_table(CASES[case], color=True, verbose=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_table(CASES[case], verbose=True)


def test_the_worked_example_can_be_followed_line_by_line() -> None:
    text = " ".join(render_table(CASES["planned"]).split())
    for line in (
        "--max-model-len 12288",
        "--max-num-seqs 256 -> 40",
        "proposal 12,288 p99.9 9,500 x 1.25 = 11,875, rounded up to 1,024",
        "85.33x the model's maximum 1,048,576 / 12,288",
        "pool tokens, predicted 587,158 4 x (80 GB x 0.92 - 70 GB / 4 - 8 GB) = 192.4 GB, / 327,680 bytes",
        "memory, guaranteed 47 587,158 / 12,288",
        "latency 40 26 tokens/s per user at 40, 19 at 48; 25 needed",
        "highest that fits 40 least of memory 47 and latency 40",
        "prefill tokens a step 2,008 2,048 - 40",
    ):
        assert line in text


def test_a_failed_source_is_named_and_a_good_one_only_on_request() -> None:
    text = " ".join(render_table(CASES["fleet"]).split())
    assert "prometheus failed: http://prom:9090 answered 401: set prometheus.bearer_token_file" in text
    good = "prometheus ok: 7 queries, 1,204,551 samples"
    assert good not in render_table(CASES["healthy"])
    assert good in render_table(CASES["healthy"], verbose=True)


def test_several_deployments_are_detailed_only_on_request() -> None:
    assert "CEILINGS" not in render_table(CASES["fleet"])
    assert render_table(CASES["fleet"], verbose=True).count("CEILINGS on max_num_seqs") == 7


def test_a_single_deployment_is_told_its_reason_to_the_end() -> None:
    told = "the cache is full " * 12
    base = samples.throttled()
    (first, *queued) = base.judgement.advice
    wordy = replace(base, judgement=replace(base.judgement, advice=(replace(first, reason=told + "so act"), *queued)))
    alone = render_table(samples.report(wordy)).split("\n\n")[1]
    assert " ".join(alone.split()).endswith("full so act")
    among = render_table(samples.report(wordy, samples.healthy())).split("\n\n")[1]
    assert "so act" not in among
    assert "cache is full the…" in among


def test_a_step_is_shown_only_where_advice_takes_it() -> None:
    base = samples.throttled()
    assert "next step" in render_table(samples.report(base))
    silent = replace(base, judgement=replace(base.judgement, advice=base.judgement.advice[1:]))
    assert "next step" not in render_table(samples.report(silent))


def test_queued_advice_is_announced_where_it_is_not_shown() -> None:
    end = "1 more piece of advice is queued behind these (-v shows them). Nothing was changed."
    assert " ".join(render_table(CASES["fleet"]).split()).endswith(end)
    assert render_table(CASES["throttled"]).endswith("\n\nNothing was changed.")


@settings(max_examples=40, deadline=None)
@given(
    name=st.text(st.characters(codec=None, exclude_categories=()), max_size=300),
    width=st.integers(min_value=80, max_value=120),
)
def test_no_name_leaves_its_place(name: str, width: int) -> None:
    """Every line in the margin is one that an honest name gives too, whatever the name holds."""
    text = render_table(samples.report(samples.hostile(name)), width=width)
    assert all(cells(line) <= width and line.isprintable() for line in text.split("\n"))
    titles = [line.split()[0] for line in text.split("\n")[8:] if re.match(r"[A-Z]{4}", line)]
    wanted = ["ADVICE", "LIMIT", "CEILINGS", "LENGTHS", "LOAD", "LATENCY", "DEMAND", "NEXT", "FINDINGS", "UNKNOWN"]
    assert [t for t in titles if t in wanted] == wanted


def test_advice_that_raises_by_one_row_keeps_the_name_on_its_first_row() -> None:
    base = samples.planned()
    lines = render_table(samples.report(base, replace(base)), width=120).split("\n")
    rows = [line for line in lines if line[:1] in {"^", "!"}]
    assert [row[2:10].strip() for row in rows] == ["chat-70b", "", "chat-70b", ""]


def test_a_flag_is_never_shortened() -> None:
    base = samples.hostile("n" * 300)
    budget = replace(
        base.judgement.advice[0],
        knob="max_num_batched_tokens",
        current=131_072,
        recommended=262_144,
        flag="--max-num-batched-tokens 262144",
    )
    crowded = replace(
        base, judgement=replace(base.judgement, advice=(budget,)), evidence=replace(base.evidence, replicas=10**9)
    )
    lines = render_table(samples.report(crowded)).split("\n")
    assert any(line.endswith("  --max-num-batched-tokens 131072 -> 262144") for line in lines)
    assert max(map(len, lines)) <= 80


def test_lengths_too_wide_for_a_table_become_a_list() -> None:
    wide = {
        f"{kind}_tokens_{p}": measured(None, low=1_000_000.0, high=2_000_000.0, source="histograms")
        for kind in ("prompt", "total")
        for p in ("p50", "p90", "p99", "p999")
    }
    base = samples.cannot_tell()
    text = render_table(samples.report(replace(base, facts=FactSheet(wide))))
    assert "  prompt p99.9  1,000,000-2,000,000" in text.split("\n")
    assert "95 % interval" not in text
