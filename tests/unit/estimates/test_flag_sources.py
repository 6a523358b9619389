"""Sources that tell one flag differently."""

from __future__ import annotations

import pytest

from advisor.domain.evidence import Disagreement, Evidence, Flag, FlagSource, FlagValue, Window
from advisor.estimates.flag_sources import facts, missing


def dispute(flag: str, believed: tuple[FlagValue, FlagSource], other: tuple[FlagValue, FlagSource]) -> Disagreement:
    return Disagreement(flag, Flag(*believed), Flag(*other))


def evidence(*disputes: Disagreement) -> Evidence:
    flags = {"max_num_seqs": Flag(64, "startup_log")}
    return Evidence("chat", Window(0.0, 1.0), flags=flags, disagreements=disputes)


def test_a_start_up_log_that_was_read_is_not_asked_for_again() -> None:
    assert missing(evidence(), "max_model_len") == (
        "max_model_len is in no metric, and the start-up log given does not print it: --set max_model_len=N"
    )
    without = Evidence("chat", Window(0.0, 1.0))
    assert "give a start-up log (--startup-log) or --set max_model_len=N" in missing(without, "max_model_len")


def test_each_flag_counts_once_and_every_source_is_named() -> None:
    found = facts(
        evidence(
            dispute("max_num_seqs", (64, "startup_log"), (256, "manifest")),
            dispute("max_num_seqs", (64, "startup_log"), (128, "config")),
            dispute("max_model_len", (8192, "process"), (4096, "config")),
        )
    )
    assert found["flags_in_dispute"].value == 2
    assert found["disputed_flags"].value == (
        "max_num_seqs is 64 by startup log, which is believed, and 256 by manifest; "
        "max_num_seqs is 64 by startup log, which is believed, and 128 by config; "
        "max_model_len is 8192 by process, which is believed, and 4096 by config"
    )


@pytest.mark.parametrize(
    "one",
    [
        dispute("max_num_seqs", (64, "metrics"), (96, "metrics")),  # a canary
        dispute("block_size", (528, "metrics"), (16, "process")),  # the engine's own choice
        dispute("gpu_memory_utilization", (0.9, "metrics"), (0.90000001, "process")),
        dispute("tensor_parallel_size", (4, "config"), (1, "default")),
        dispute("max_num_seqs", (64, "command_line"), (256, "config")),  # somebody tries a value
        dispute("max_model_len", (8192, "server_info"), ("auto", "config")),
    ],
)
def test_what_is_no_dispute(one: Disagreement) -> None:
    found = facts(evidence(one))
    assert found["flags_in_dispute"].value == 0
    assert found["disputed_flags"].is_unknown


def test_without_any_flag_it_is_unknown() -> None:
    assert facts(Evidence("chat", Window(0.0, 1.0)))["flags_in_dispute"].is_unknown
