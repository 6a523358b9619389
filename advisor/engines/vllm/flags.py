"""vLLM's flags: what they are called, which versions have them, and what the engine refuses when it starts.

The canonical name of a flag, here and everywhere, is vLLM's own with underscores: `max_num_seqs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from advisor.domain import quantity
from advisor.domain.evidence import FlagValue

Version = tuple[int, int, int]
Kind = Literal["count", "share", "switch", "word"]

LARGEST_COUNT = 10**9


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """One flag: what its value is, the first version that has it and, where it was removed, the last one."""

    kind: Kind
    first: Version = (0, 0, 0)
    last: Version | None = None


FLAGS: Mapping[str, FlagSpec] = {
    "max_model_len": FlagSpec("count"),
    "max_num_seqs": FlagSpec("count"),
    "max_num_batched_tokens": FlagSpec("count"),
    "max_num_active_seqs": FlagSpec("count", (0, 31, 0)),
    "max_num_scheduled_tokens": FlagSpec("count", (0, 26, 0)),
    "max_num_queued_reqs": FlagSpec("count", (0, 29, 0)),
    "max_num_queued_tokens": FlagSpec("count", (0, 29, 0)),
    "max_num_partial_prefills": FlagSpec("count", (0, 7, 3), (0, 26, 0)),
    "max_long_partial_prefills": FlagSpec("count", (0, 7, 3), (0, 26, 0)),
    "long_prefill_token_threshold": FlagSpec("count", (0, 7, 3)),
    "gpu_memory_utilization": FlagSpec("share"),
    "kv_cache_memory_bytes": FlagSpec("count", (0, 10, 2)),
    "kv_cache_dtype": FlagSpec("word", (0, 3, 3)),
    "kv_offloading_size": FlagSpec("word", (0, 11, 1)),
    "block_size": FlagSpec("count"),
    "num_gpu_blocks_override": FlagSpec("count", (0, 4, 3)),
    "swap_space": FlagSpec("word", (0, 0, 0), (0, 17, 1)),
    "tensor_parallel_size": FlagSpec("count"),
    "pipeline_parallel_size": FlagSpec("count"),
    "data_parallel_size": FlagSpec("count", (0, 8, 3)),
    "decode_context_parallel_size": FlagSpec("count", (0, 10, 2)),
    "api_server_count": FlagSpec("count", (0, 9, 1)),
    "enable_chunked_prefill": FlagSpec("switch", (0, 4, 0)),
    "enable_prefix_caching": FlagSpec("switch", (0, 4, 0)),
    "enforce_eager": FlagSpec("switch"),
    "async_scheduling": FlagSpec("switch", (0, 10, 0)),
    "scheduler_reserve_full_isl": FlagSpec("switch", (0, 19, 1)),
    "watermark": FlagSpec("word", (0, 24, 0)),
    "max_cudagraph_capture_size": FlagSpec("count", (0, 11, 1)),
    "scheduling_policy": FlagSpec("word", (0, 6, 4)),
    "performance_mode": FlagSpec("word", (0, 17, 1)),
    "speculative_config": FlagSpec("word", (0, 8, 2)),
    "kv_transfer_config": FlagSpec("word", (0, 7, 0)),
    "quantization": FlagSpec("word"),
    "dtype": FlagSpec("word"),
}
"""The flags that size a server. First and last are the oldest and newest releases in which they were seen."""

_VERSION = re.compile(r"v?(?!0\.1\.dev)(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")
_MAY_BE_OFF = {"long_prefill_token_threshold"}


def parse_version(text: str | None) -> Version | None:
    """`0.11.0rc2.dev98+g393de22` is (0, 11, 0).

    None where the text does not say: `0.1.dev12986+gfa99ccebd` is the name of a build from a checkout without tags.
    """
    match = _VERSION.match(text.strip()) if text else None
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def normalise(name: str, value: object) -> FlagValue:
    """The value of flag `name` as vLLM understands it: `12k` is 12,000, `12K` is 12,288, -1 as a length is `auto`.

    Raises ValueError with one line when the flag cannot have that value. Flags not in FLAGS pass if they are plain.
    """
    spec = FLAGS.get(name)
    if name == "max_model_len" and value in ("auto", -1):
        return "auto"
    if spec and spec.kind == "count":
        return _count(name, value)
    if spec and spec.kind == "share":
        return _share(name, value)
    if spec and spec.kind == "switch" and not isinstance(value, bool):
        raise ValueError(f"{name} is true or false, not {str(value)[:40]!r}")
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{name} takes one plain value, not {type(value).__name__}")


def _count(name: str, value: object) -> int:
    count = quantity.tokens(value if isinstance(value, int | float | str) else str(value))
    least = 0 if name in _MAY_BE_OFF else 1
    most = LARGEST_COUNT if name != "kv_cache_memory_bytes" else 10**15
    if not least <= count <= most:
        raise ValueError(f"{name} lies between {least} and {most:,}, not {count:,}")
    return count


def _share(name: str, value: object) -> float:
    share = quantity.ratio(value if isinstance(value, int | float | str) else str(value))
    if not 0 < share <= 1:
        raise ValueError(f"{name} is a share above 0 and at most 1, not {share:g}")
    return share


def supported(flag: str, version: str | None) -> bool:
    """True when vLLM of that version takes the flag; with an unknown version, when every release since 0.8 takes it."""
    spec = FLAGS.get(flag)
    if spec is None:
        return False
    known = parse_version(version)
    if known is None:
        return spec.first <= (0, 8, 0) and spec.last is None
    return spec.first <= known and (spec.last is None or known <= spec.last)


def render_flag(knob: str, value: FlagValue) -> str:
    """How the flag is written on the command line.

    >>> render_flag("max_num_seqs", 24), render_flag("enable_prefix_caching", False)
    ('--max-num-seqs 24', '--no-enable-prefix-caching')
    """
    if knob not in FLAGS:
        raise ValueError(f"{knob} is no flag of vLLM that advice may print")
    dashed = knob.replace("_", "-")
    if isinstance(value, bool):
        return f"--{dashed}" if value else f"--no-{dashed}"
    if isinstance(value, float):
        return f"--{dashed} {value:.10g}"
    return f"--{dashed} {value}"


def canonical(name: str, value: object) -> tuple[str, FlagValue]:
    """The flag as it is: the canonical names are vLLM's. Raises ValueError when it cannot have that value."""
    return name, normalise(name, value)


def lacks(knob: str) -> str | None:
    """None for every flag that advice may print, else why there is none."""
    return None if knob in FLAGS else f"{knob} is no flag of vLLM that advice may print"


def default_gpu_memory_utilization(version: str | None) -> float | None:
    """0.9 before 0.20.0 and 0.92 from it; None when the version is not known."""
    known = parse_version(version)
    return None if known is None else 0.92 if known >= (0, 20, 0) else 0.9


def certain_defaults(version: str | None) -> Mapping[str, FlagValue]:
    """What flags are when nobody set them, where hardware has no say (it has for max_num_seqs and the token budget)."""
    alone: dict[str, FlagValue] = {"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "data_parallel_size": 1}
    utilization = default_gpu_memory_utilization(version)
    return alone if utilization is None else alone | {"gpu_memory_utilization": utilization}


def counts_declared_output(version: str | None) -> bool | None:
    """Does the engine refuse a request whose prompt plus declared max tokens exceed max_model_len?

    True before 0.32; from it such a request is accepted and its output clamped. None when the version is not known.
    """
    known = parse_version(version)
    return None if known is None else known < (0, 32, 0)


def reserves_full_prompt(version: str | None) -> bool | None:
    """Does the engine admit a request only when its whole prompt fits into free cache? From 0.19.1; None if unknown."""
    known = parse_version(version)
    return None if known is None else known >= (0, 19, 1)


def violations(
    flags: Mapping[str, FlagValue], version: str | None, *, pool_tokens: int | None = None
) -> tuple[str, ...]:
    """What vLLM would refuse at start, one line each; empty when nothing that is known collides.

    pool_tokens: KV pool of one engine, where known. A flag that is absent takes part in no check, except that the seat
    default of 0.8.0 to 0.10.0 (256 or 1,024) is not lowered to a smaller token budget.
    """
    counts = {name: value for name, value in flags.items() if isinstance(value, int) and not isinstance(value, bool)}
    length, seats = counts.get("max_model_len"), counts.get("max_num_seqs")
    budget, active = counts.get("max_num_batched_tokens"), counts.get("max_num_active_seqs")
    found = [
        _above("max_num_seqs", seats, "max_num_batched_tokens", budget),
        _above("max_num_active_seqs", active, "max_num_seqs", seats),
        _above("long_prefill_token_threshold", counts.get("long_prefill_token_threshold"), "max_model_len", length),
        _above("max_model_len", length, "the KV pool", pool_tokens),
    ]
    if flags.get("enable_chunked_prefill") is False:
        unchunked = _above("max_model_len", length, "max_num_batched_tokens", budget)
        found.append(unchunked and f"{unchunked} while chunked prefill is off")
    if seats is None and budget is not None and budget < 1024 and _seats_outlast_budget(version):
        found.append(f"max_num_batched_tokens {budget:,} is below a default max_num_seqs of up to 1,024: set both")
    return tuple(line for line in found if line)


def _seats_outlast_budget(version: str | None) -> bool:
    known = parse_version(version)
    return known is not None and (0, 8, 0) <= known < (0, 10, 1)


def _above(name: str, value: int | None, limit_name: str, limit: int | None) -> str | None:
    if value is None or limit is None or value <= limit:
        return None
    return f"{name} {value:,} exceeds {limit_name} {limit:,}"
