"""The lines that vLLM prints while it starts, 0.4 to 0.33, as facts.

Patterns are searched anywhere in a line, because what stands before the message differs by version, and shippers put
their own prefix before that. vLLM prints GiB throughout, older releases under the name GB.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from advisor.domain.evidence import FlagValue
from advisor.domain.failure import Failure
from advisor.engines.printed_arguments import printed_arguments
from advisor.engines.startup import GIB, MemoryBreakdown, StartupFacts

from . import failures
from .flags import FLAGS, normalise
from .structured import STRUCTURED, essentials

MAX_NAME = 256

TELLING = re.compile(
    rb"version \d|non-default args|Namespace\(|LLM engine \(|max_num_batched_tokens=|Using max model len|Auto-fit"
    rb"|odel loading took|model weights take|oading model weights took|KV cache (?:size|memory): |Maximum concurrency"
    rb"|blocks: |peak activation|total_gpu_memory|Setting attention block size|" + failures.TELLING.pattern
)
"""Finds the few lines worth parsing in the bytes of a large log."""

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ENGINE = re.compile(r"\(EngineCore(?:_DP|_)?(\d+)?\b")
# Releases up to 0.10 log prompts, and a prompt may say anything, for example how large the cache is.
_SPOKEN = re.compile(r"Received request|Generated response")
_SPECULATION = re.compile(r"method='?(\w+)(?:.{0,600}?num_spec_tokens=(\d{1,4}))?")
_DUMPED = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "kv_cache_dtype",
    "quantization",
    "dtype",
    "enforce_eager",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "speculative_config",
)


@dataclass
class _Start:
    """What one start has printed so far."""

    version: str | None = None
    arguments_seen: bool = False
    model: str | None = None
    served_names: tuple[str, ...] = ()
    flags: dict[str, FlagValue] = field(default_factory=dict)
    blocks: int | None = None
    pools: dict[str, int] = field(default_factory=dict)
    available: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    concurrency: list[float] = field(default_factory=list)
    memory: MemoryBreakdown | None = None
    up: bool = False
    failure: Failure | None = None

    def set_flag(self, name: str, value: object) -> None:
        text = _structured(value) if name in STRUCTURED else value
        if name not in FLAGS or text in (None, "None"):
            return
        try:
            self.flags[name] = normalise(name, str(text).removeprefix("torch.") if name == "dtype" else text)
        except ValueError:
            return

    def note_memory(self, **parts: float) -> None:
        self.memory = replace(self.memory or MemoryBreakdown(), **{name: gib * GIB for name, gib in parts.items()})

    def facts(self) -> StartupFacts:
        block = self.flags.get("block_size")
        if not self.pools and self.blocks and isinstance(block, int):
            self.pools["0"] = self.blocks * block
        return StartupFacts(
            engine="vllm",
            version=self.version,
            model=self.model,
            served_names=self.served_names,
            flags=self.flags,
            kv_pool_tokens=min(self.pools.values(), default=None),
            kv_available_bytes=min(self.available, default=None),
            weights_bytes=max(self.weights, default=None),
            max_concurrency=min(self.concurrency, default=None),
            memory=self.memory,
            engines=len(self.pools),
            failure=self.failure,
        )


def parse_startup(lines: Iterable[str]) -> StartupFacts | None:
    """What the last start in `lines` says; None when no line is one that vLLM prints while starting.

    A restart is seen by the banner, or by arguments that are printed a second time.
    """
    start: _Start | None = None
    for raw in lines:
        line = _ANSI.sub("", raw)
        if _SPOKEN.search(line):
            continue
        if start is None or _begins(line, start):
            fresh = _Start()
            start = fresh if _note(line, fresh) else start
        else:
            _note(line, start)
    return start.facts() if start else None


def _begins(line: str, start: _Start) -> bool:
    if _BANNER.search(line):
        return start.arguments_seen or bool(start.pools)
    return start.arguments_seen and bool(_ARGUMENTS.search(line))


def _note(line: str, start: _Start) -> bool:
    noted = False
    for pattern, handle in _HANDLERS:
        if match := pattern.search(line):
            handle(start, match, line)
            noted = True
    return _note_failure(line, start) or noted


def _note_failure(line: str, start: _Start) -> bool:
    start.up = start.up or failures.UP.search(line) is not None
    failure = failures.read_failure(line, up=start.up)
    # An error is repeated on its way up through the processes, with less said each time.
    start.failure = start.failure or failure
    if failure is not None and failure.limit_tokens is not None:
        start.flags.setdefault("max_model_len", failure.limit_tokens)
    if failure is not None and failure.seats is not None:
        start.flags.setdefault("max_num_seqs", failure.seats)
    return failure is not None and failure.kind not in failures.OF_ANY_ENGINE


def _version(start: _Start, match: re.Match[str], _line: str) -> None:
    start.version = next(text for text in match.groups() if text)[:MAX_NAME]


def _arguments(start: _Start, match: re.Match[str], _line: str) -> None:
    start.arguments_seen = True
    arguments = printed_arguments(next(text for text in match.groups() if text is not None))
    for name, value in arguments.items():
        start.set_flag(name, value)
    _names(start, arguments.get("model") or arguments.get("model_tag"), arguments.get("served_model_name"))


def _names(start: _Start, model: object, served: object) -> None:
    if isinstance(model, str) and model != "None":
        start.model = model[:MAX_NAME]
    listed = served if isinstance(served, list | tuple) else [served]
    names = tuple(name[:MAX_NAME] for name in listed if isinstance(name, str) and name != "None")
    start.served_names = names or start.served_names


def _engine_config(start: _Start, match: re.Match[str], _line: str) -> None:
    start.version = start.version or match[1][:MAX_NAME]
    arguments = printed_arguments(match[2])
    start.set_flag("max_model_len", arguments.get("max_seq_len"))
    for name in _DUMPED:
        start.set_flag(name, arguments.get(name))
    _names(start, start.model or arguments.get("model"), start.served_names or arguments.get("served_model_name"))


def _structured(value: object) -> str | None:
    """A setting with parts, cut down to those that say what it does: the rest may hold credentials."""
    if isinstance(value, dict):
        return essentials(value)
    method = _SPECULATION.search(value) if isinstance(value, str) else None
    if method is None:
        return None
    return json.dumps({"method": method[1]} | ({"num_speculative_tokens": int(method[2])} if method[2] else {}))


def _pool(start: _Start, match: re.Match[str], line: str) -> None:
    engine = _ENGINE.search(line)
    rank = engine[1] or "0" if engine else "0"
    tokens = _whole(match[1])
    # Every worker of older releases prints its own line; the smallest one is what the engine can use.
    start.pools[rank] = min(tokens, start.pools.get(rank, tokens))


def _fitted(start: _Start, match: re.Match[str], _line: str) -> None:
    start.set_flag("max_model_len", int(match[1] or match[2]))


def _memory_v0(start: _Start, match: re.Match[str], _line: str) -> None:
    weights, non_torch, activation, rest = (float(text) for text in match.groups())
    start.note_memory(weights_bytes=weights, non_torch_bytes=non_torch, activation_peak_bytes=activation)
    start.weights.append(weights * GIB)
    start.available.append(rest * GIB)


def _memory_v1(start: _Start, match: re.Match[str], line: str) -> None:
    total, utilization = float(match[1]), match[2]
    start.note_memory(total_bytes=total)
    start.flags.setdefault("gpu_memory_utilization", float(utilization))
    parts = {"weight": "weights_bytes", "peak activation": "activation_peak_bytes", "non-torch": "non_torch_bytes"}
    for words, name in (parts | {"CUDAGraph": "cuda_graph_bytes"}).items():
        if part := re.search(rf"(\d[\d.]{{0,12}}) GiB for {words}", line):
            start.note_memory(**{name: float(part[1])})


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
# Atomic groups and bounded repeats keep every search linear in the line, whatever the line.
_BANNER = re.compile(r"vLLM API server version (\d\S{0,99})|^[^▀▄█]*[▀▄█].*version (\d\S{0,99})")
_ARGUMENTS = re.compile(r"^(?>.*?non-default args: \{)(.*)\}|^(?>.*?args: Namespace\()(.*)\)")

_Handler = Callable[[_Start, re.Match[str], str], None]
_HANDLERS: tuple[tuple[re.Pattern[str], _Handler], ...] = (
    (_BANNER, _version),
    (_ARGUMENTS, _arguments),
    (re.compile(r"Initializing an? (?:V[01] )?LLM engine \(v([^)]{1,99})\) with config: (.*)"), _engine_config),
    (
        re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d{1,12})"),
        lambda start, match, _: start.set_flag("max_num_batched_tokens", int(match[1])),
    ),
    (
        re.compile(r"Using max model len (\d{1,12})"),
        lambda start, match, _: start.set_flag("max_model_len", int(match[1])),
    ),
    (
        re.compile(r"Auto-fit max_model_len: (?:reduced from \d+ to (\d{1,12})|full model context length (\d{1,12}))"),
        _fitted,
    ),
    (
        re.compile(rf"(?:Model loading took|[Ll]oading model weights took) {_NUMBER} Gi?B"),
        lambda start, match, _: start.weights.append(float(match[1]) * GIB),
    ),
    (
        re.compile(rf"Available KV cache memory: {_NUMBER} GiB"),
        lambda start, match, _: start.available.append(float(match[1]) * GIB),
    ),
    (
        re.compile(r"Setting attention block size to (\d{1,9}) tokens"),
        lambda start, match, _: start.set_flag("block_size", int(match[1])),
    ),
    (re.compile(r"KV cache size: (\d[\d,]{0,15}) tokens"), _pool),
    (
        re.compile(r"# (?:GPU|cuda) blocks: (\d{1,12})"),
        lambda start, match, _: setattr(start, "blocks", int(match[1])),
    ),
    (
        re.compile(rf"Maximum concurrency for [\d,]+ tokens per request: {_NUMBER}x"),
        lambda start, match, _: start.concurrency.append(float(match[1])),
    ),
    (
        re.compile(rf"total_gpu_memory \({_NUMBER}GiB\)"),
        lambda start, match, _: start.note_memory(total_bytes=float(match[1])),
    ),
    (
        re.compile(
            rf"model weights take {_NUMBER}GiB; non_torch_memory takes {_NUMBER}GiB; PyTorch activation peak memory "
            rf"takes {_NUMBER}GiB; the rest of the memory reserved for KV Cache is {_NUMBER}GiB"
        ),
        _memory_v0,
    ),
    (
        re.compile(
            rf"Free memory on device \([\d.]+/{_NUMBER} GiB\) on startup\. "
            rf"Desired GPU memory utilization is \({_NUMBER},"
        ),
        _memory_v1,
    ),
)
