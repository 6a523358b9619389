"""The flags of llama.cpp's server that size it."""

from __future__ import annotations

from advisor.engines.own_flags import OwnFlags

FLAGS = OwnFlags(
    names={"parallel": "max_num_seqs", "batch_size": "max_num_batched_tokens"},
    kept=frozenset({"ctx_size", "ubatch_size", "cache_type_k", "cache_type_v", "n_gpu_layers"}),
    lacking={
        "max_model_len": (
            "llama.cpp's server has no such flag: --ctx-size is the cache of all slots together, and a "
            "request gets ctx-size / parallel of it"
        ),
        # The context of one slot is ctx_size / parallel: more slots alone would shorten what each may hold.
        "max_num_seqs": (
            "llama.cpp's server divides its cache between slots: --parallel must grow together with --ctx-size, or "
            "each request gets less context"
        ),
    },
)
