"""What llama.cpp's server prints while it starts: a real server's log, and lines of other releases."""

from __future__ import annotations

from pathlib import Path

from advisor.engines.llamacpp.startup_log import parse_startup
from advisor.sources.startup_log import read_startup_log

LOG = Path(__file__).parents[3] / "captures" / "llamacpp-b11549" / "server.log"


def test_a_real_server_tells_its_slots_and_so_its_pool() -> None:
    facts = read_startup_log(LOG)
    assert (facts.engine, facts.flags) == ("llamacpp", {"max_num_seqs": 4, "max_model_len": 2048})
    assert facts.kv_pool_tokens == 4 * 2048


def test_slots_that_share_one_cache_do_not_tell_the_pool() -> None:
    facts = parse_startup(["srv load_model: initializing, n_slots = 4, n_ctx_slot = 4096, kv_unified = 'true'"])
    assert facts is not None
    assert (facts.kv_pool_tokens, facts.flags["max_model_len"]) == (None, 4096)


def test_the_last_start_counts_with_its_own_build_and_batch() -> None:
    lines = (
        "build: 4100 (abc) with cc",
        "llama_context: n_batch       = 512",
        "srv init: initializing slots, n_slots = 1, n_ctx_slot = 512",
        "srv init: build_info: b6300-af2",
        "llama_context: n_batch       = 2048",
        "srv load_model: initializing, n_slots = 8, n_ctx_slot = 4096, kv_unified = 'false'",
    )
    facts = parse_startup(lines)
    assert facts is not None
    assert (facts.version, facts.kv_pool_tokens) == ("b6300", 32_768)
    assert facts.flags == {"max_num_seqs": 8, "max_model_len": 4096, "max_num_batched_tokens": 2048}


def test_a_log_without_slots_is_none() -> None:
    assert parse_startup(["srv init: build_info: b6300-af2", "hello"]) is None
