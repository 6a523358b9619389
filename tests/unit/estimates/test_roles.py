"""Which part of a request engines serve, and what is not judged where it is not the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import CounterWindows, EngineRole, EngineSeries, Evidence, Flag, Samples, Window
from advisor.domain.histogram import Buckets
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from advisor.estimates.roles import serving_role, withheld

NONE = np.empty(0)
LENGTHS = {
    "prompt_tokens": Buckets(np.array([1000.0, 2000.0]), np.array([500.0, 500.0, 0.0]), 900_000.0),
    "output_tokens": Buckets(np.array([1.0, 2.0]), np.array([1000.0, 0.0, 0.0]), 1000.0),
}


def engine(role: EngineRole | None = None) -> EngineSeries:
    samples, windows = Samples(NONE, NONE, NONE, None), CounterWindows(NONE, NONE, {})
    return EngineSeries("a:1", "0", 0.0, samples, windows, LENGTHS, {}, role=role)


def evidence(*roles: EngineRole | None, **flags: str) -> Evidence:
    return Evidence(
        name="m",
        window=Window(0.0, 1e6),
        engines=tuple(engine(role) for role in roles),
        flags={name: Flag(value, "server_info") for name, value in flags.items()},
    )


def test_without_metrics_whole_requests_are_assumed() -> None:
    assert (serving_role(evidence()).value, serving_role(evidence()).basis) == ("whole", "assumed")


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        ((None, None), "whole"),
        (("prefill", "prefill"), "prefill"),
        (("decode",), "decode"),
        (("prefill", "decode"), "part"),
        (("part", None), "part"),
    ],
)
def test_engines_tell_their_role(roles: tuple[EngineRole | None, ...], told: str) -> None:
    assert serving_role(evidence(*roles)).value == told


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ('{"kv_connector": "NixlConnector", "kv_role": "kv_both"}', "part"),
        ('{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_producer"}', "prefill"),
        ('{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}', "whole"),
        ('{"kv_connector": "OffloadingConnector", "kv_role": "kv_both"}', "whole"),
        ("not json", "whole"),
        ("[1]", "whole"),
    ],
)
def test_vllms_connector_and_role(config: str, told: str) -> None:
    assert serving_role(evidence(None, kv_transfer_config=config)).value == told


def test_sglangs_mode() -> None:
    assert serving_role(evidence(None, disaggregation_mode="decode")).value == "decode"
    assert serving_role(evidence(None, disaggregation_mode="null")).value == "whole"


def test_lengths_and_ceilings_of_half_a_request_are_not_judged() -> None:
    whole, half = estimate(evidence(None), Policy()), estimate(evidence("prefill"), Policy())
    assert not whole["output_tokens_p999"].is_unknown
    for name in ("output_tokens_p999", "needed_tokens_p999_upper", "recommended_max_model_len", "next_max_num_seqs"):
        assert "prefill and decoding apart" in str(half[name].unknown), name


def test_only_halves_withhold() -> None:
    assert withheld(serving_role(evidence(None))) is None
    assert withheld(serving_role(evidence("part"))) is not None


def test_what_was_read_in_part_lowers_nothing() -> None:
    partly = replace(evidence(None), read_in_part=True)
    told = estimate(partly, Policy())
    assert "only in part" in str(told["replicas_to_keep"].unknown)
    assert "only in part" in str(told["recommended_max_model_len"].unknown)
    assert not told["output_tokens_p999"].is_unknown
