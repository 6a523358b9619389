"""SGLang's server info; the body is composed from the fields that its source returns."""

from __future__ import annotations

from advisor.engines.endpoint import Told
from advisor.engines.sglang.endpoints import server_info

INFO = {
    "model_path": "org/chat-8b",
    "served_model_name": "chat",
    "api_key": "sk-secret",
    "context_length": None,
    "max_running_requests": 128,
    "mem_fraction_static": 0.88,
    "chunked_prefill_size": 8192,
    "max_prefill_tokens": 16384,
    "schedule_conservativeness": 1.0,
    "max_total_tokens": None,
    "page_size": 1,
    "tp_size": 1,
    "dp_size": 2,
    "disable_radix_cache": False,
    "max_total_num_tokens": 367404,
    "version": "0.5.23",
    "internal_states": [
        {"effective_max_running_requests_per_dp": 64},
        {"effective_max_running_requests_per_dp": 60},
    ],
}


def test_resolved_arguments_are_read_under_canonical_names_and_keys_are_not() -> None:
    told = server_info(INFO)
    assert told is not None
    assert (told.version, told.model, told.pool_tokens) == ("0.5.23", "chat", 367_404)
    assert told.flags == {
        "max_num_seqs": 60,  # the least worker; 128 is for both together
        "mem_fraction_static": 0.88,
        "chunked_prefill_size": 8192,
        "max_prefill_tokens": 16_384,
        "schedule_conservativeness": 1.0,
        "block_size": 1,
        "tensor_parallel_size": 1,
        "data_parallel_size": 2,
        "enable_prefix_caching": True,
    }
    assert "sk-secret" not in repr(told)


def test_without_states_the_argument_counts() -> None:
    told = server_info({**INFO, "internal_states": None, "max_running_requests": 128})
    assert told is not None
    assert told.flags["max_num_seqs"] == 128


def test_values_that_cannot_be_are_left_out() -> None:
    told = server_info({"model_path": "m", "max_running_requests": "many", "page_size": -5, "version": "<!channel>"})
    assert told == Told(model="m")


def test_another_shape_is_no_answer() -> None:
    assert server_info({"vllm_config": {}}) is None
    assert server_info([]) is None
