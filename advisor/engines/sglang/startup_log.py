"""The lines that SGLang prints while it starts, 0.4.2 to 0.5.23, as facts under vLLM's names.

Settings without a counterpart keep their own names: `mem_fraction_static` shares out what is free before the model is
loaded, gpu_memory_utilization all memory; `chunked_prefill_size` bounds prefill alone, max_num_batched_tokens bounds
prefill and decoding together. SGLang prints GiB under the name GB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeGuard

from advisor.domain.evidence import FlagValue
from advisor.domain.failure import Failure
from advisor.engines.printed_arguments import printed_arguments
from advisor.engines.startup import GIB, StartupFacts

from .flags import FLAGS

MAX_NAME = 256
LARGEST = 10**12

TELLING = re.compile(
    rb"server_args=|max_total_num_tokens=|Load weight end|KV Cache is allocated|[Oo]ut of memory|Not enough memory"
)
"""Finds the few lines worth parsing in the bytes of a large log."""

_RANK = re.compile(r"\bDP(\d+)\b")
_WORKER = re.compile(r"(?:\bDP\d+ )?(?:\bPP\d+ )?\bTP\d+\b")
_ARGUMENTS = re.compile(r"^(?>.*?server_args=(?:ServerArgs\(|\{))(.*)[)}]")
_RESOLVED = re.compile(r"max_total_num_tokens=\d.*")
_WEIGHTS = re.compile(r"Load weight end\..{0,300}?mem usage=(\d{1,9}(?:\.\d{1,9})?) GB")
_CACHE = re.compile(r"KV Cache is allocated\.")
_CACHE_PART = re.compile(r"\b(?:K|V|KV) size: (\d{1,9}(?:\.\d{1,9})?) GB")
# Request logs hold prompts, and a prompt may say anything.
_SPOKEN = re.compile(r"Receive: obj=|Finish: obj=|request\.(?:received|finished)")
_NO_MEMORY = re.compile(r"Not enough memory\. Please try to increase --mem-fraction-static")
# "Decode out of memory happened" is how releases up to 0.4.6 word a retraction, which harms nobody but the retracted.
_SERVING = re.compile(r"(?:Prefill|Decode) out of memory\. Try to lower")
_OUT_OF_MEMORY = re.compile(r"(?:CUDA|HIP) out of memory")
_NAMES = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size",
    "page_size": "block_size",
    "kv_cache_dtype": "kv_cache_dtype",
    "dtype": "dtype",
    "quantization": "quantization",
}
_RESOLVED_NAMES = {
    "max_running_requests": "max_num_seqs",
    "context_len": "max_model_len",
    "chunked_prefill_size": "chunked_prefill_size",
    "max_prefill_tokens": "max_prefill_tokens",
}


@dataclass
class _Start:
    """What one start has printed so far."""

    arguments_seen: bool = False
    model: str | None = None
    served_name: str | None = None
    flags: dict[str, FlagValue] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)
    cache: dict[str, float] = field(default_factory=dict)
    weights: list[float] = field(default_factory=list)
    failure: Failure | None = None

    def facts(self) -> StartupFacts:
        return StartupFacts(
            engine="sglang",
            model=self.model,
            served_names=(self.served_name,) if self.served_name else (),
            flags=self.flags,
            kv_pool_tokens=min(self.pools.values(), default=None),
            kv_available_bytes=min(self.cache.values(), default=None),
            weights_bytes=max(self.weights, default=None),
            engines=len(self.pools),
            failure=self.failure,
        )


def parse_startup(lines: Iterable[str]) -> StartupFacts | None:
    """What the last start in `lines` says; None when no line is one that SGLang prints while starting.

    A restart is seen by the arguments, which are printed once a start.
    """
    start: _Start | None = None
    for line in lines:
        if _SPOKEN.search(line):
            continue
        arguments = _ARGUMENTS.search(line)
        fresh = start is None or (arguments is not None and start.arguments_seen)
        current = _Start() if fresh or start is None else start
        if arguments:
            _note_arguments(current, printed_arguments(arguments[1]))
        if arguments or _note(current, line):
            start = current
    return start.facts() if start else None


def _note_arguments(start: _Start, arguments: dict[str, object]) -> None:
    start.arguments_seen = True
    for printed, name in (_NAMES | dict(zip(FLAGS.kept, FLAGS.kept, strict=True))).items():
        value = arguments.get(printed)
        if isinstance(value, str | bool) or _is_count(value) or (isinstance(value, float) and 0 < value < LARGEST):
            start.flags[name] = value
    if isinstance(arguments.get("disable_radix_cache"), bool):
        start.flags["enable_prefix_caching"] = not arguments["disable_radix_cache"]
    model, served = arguments.get("model_path"), arguments.get("served_model_name")
    start.model = model[:MAX_NAME] if isinstance(model, str) else None
    start.served_name = served[:MAX_NAME] if isinstance(served, str) else None


def _note(start: _Start, line: str) -> bool:
    if resolved := _RESOLVED.search(line):
        _note_resolved(start, line, printed_arguments(resolved[0]))
    elif weights := _WEIGHTS.search(line):
        start.weights.append(float(weights[1]) * GIB)
    elif _CACHE.search(line):
        rank = _WORKER.search(line)
        # A draft model's pool comes second, with tokens of its own size.
        start.cache.setdefault(rank[0] if rank else "", sum(float(part) for part in _CACHE_PART.findall(line)) * GIB)
    elif failure := _failure(start, line):
        start.failure = start.failure or failure
    else:
        return False
    return True


def _failure(start: _Start, line: str) -> Failure | None:
    if _NO_MEMORY.search(line):
        return Failure("no_memory_for_cache")
    if _SERVING.search(line):
        return Failure("out_of_memory_serving")
    # These words are not SGLang's own: they count only where it has said something before.
    begun = start.arguments_seen or bool(start.weights)
    return Failure("out_of_memory_starting") if begun and _OUT_OF_MEMORY.search(line) else None


def _note_resolved(start: _Start, line: str, resolved: dict[str, object]) -> None:
    for printed, name in _RESOLVED_NAMES.items():
        value = resolved.get(printed)
        if _is_count(value):
            start.flags[name] = value
    tokens = resolved.get("max_total_num_tokens")
    if _is_count(tokens):
        rank = _RANK.search(line)
        start.pools[rank[1] if rank else "0"] = tokens


def _is_count(value: object) -> TypeGuard[int]:
    # -1 is how SGLang prints what is switched off.
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < LARGEST
