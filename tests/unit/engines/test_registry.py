"""Every engine is registered, and no two of them could be taken for each other."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from advisor import engines
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import COUNTERS, UNTOLD
from advisor.engines.metrics import WHOLE_HISTOGRAMS, WINDOWED_HISTOGRAMS, EngineMetrics, SeriesCounts

FOLDER = Path(engines.__file__).parent
EVERY = list(engines.METRICS.values())


def test_every_module_of_metrics_is_registered() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/metrics.py")} == set(engines.METRICS)
    assert set(engines.ENDPOINTS) == set(engines.METRICS)


def test_every_module_of_flags_is_registered() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/flags.py")} == {
        name for name in engines.METRICS if engines.flags_of(name)
    }
    assert engines.flags_of("dynamo") is None


@pytest.mark.parametrize("metrics", EVERY, ids=lambda m: m.engine)
def test_canonical_names_are_those_of_the_evidence(metrics: EngineMetrics) -> None:
    assert set(metrics.counters) <= set(COUNTERS)
    assert set(metrics.gauges) <= {"running", "waiting", "kv_usage", "kv_tokens"}
    assert set(metrics.histograms) <= {*WINDOWED_HISTOGRAMS, *WHOLE_HISTOGRAMS}
    assert metrics.occasional <= {*metrics.histograms, *metrics.counters}
    assert set(metrics.never_tells) <= set(CATALOGUE)


@pytest.mark.parametrize("metrics", EVERY, ids=lambda m: m.engine)
def test_a_name_is_read_in_one_query_only(metrics: EngineMetrics) -> None:
    buckets = {n for n in metrics.window_names if n.endswith("_bucket")}
    assert not set(metrics.gauge_names) & set(metrics.window_names)
    assert not buckets & set(metrics.whole_names)


@pytest.mark.parametrize("metrics", EVERY, ids=lambda m: m.engine)
def test_labels_that_tell_parts_are_not_added_up(metrics: EngineMetrics) -> None:
    labels = {series.label for listed in metrics.counters.values() for series in listed if series.label}
    assert labels <= set(metrics.parts)
    assert not set(metrics.parts) & set(metrics.summed)


@pytest.mark.parametrize(("one", "other"), list(combinations(EVERY, 2)), ids=lambda m: m.engine)
def test_no_series_belongs_to_two_engines(one: EngineMetrics, other: EngineMetrics) -> None:
    assert not one.names & other.names


def test_the_owner_of_a_series_is_known_by_its_name() -> None:
    owner = engines.metrics_of_series("sglang:token_usage")
    assert owner is not None
    assert owner.engine == "sglang"
    assert engines.metrics_of_series("process_start_time_seconds") is None


def test_a_label_is_renamed_and_a_common_one_stays() -> None:
    dynamo = engines.METRICS["dynamo"]
    assert dynamo.canonical_labels({"model": "m", "job": "j"}) == {"model_name": "m", "job": "j"}
    both = {"model": "path", "model_name": "m"}
    assert dynamo.canonical_labels(both) is both


def test_metrics_without_settings_tell_nothing_of_flags_pool_or_release() -> None:
    bare = EngineMetrics("new", "new:running", {}, {}, {}, SeriesCounts(1, 0, 0, 0))
    assert (bare.flags({}), bare.pool({}, 1), bare.release((), {})) == ({}, None, None)


def test_of_an_engine_that_nobody_named_flags_are_said_to_be_vllms() -> None:
    flags = engines.flags_of(UNTOLD)
    assert flags is not None
    assert flags.render_flag("max_model_len", 12_288) == "--max-model-len 12288 (vLLM's name)"
    assert (flags.lacks("max_num_seqs"), bool(flags.lacks("replicas"))) == (None, True)
    assert flags.canonical("max_num_seqs", "16") == ("max_num_seqs", 16)
    assert flags.violations({"max_num_seqs": 4096, "max_num_batched_tokens": 2}, None, pool_tokens=1) == ()
    assert (flags.certain_defaults("0.32.0"), flags.counts_declared_output("0.10.0")) == ({}, None)
