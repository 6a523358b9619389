"""The lines that llama.cpp's server prints while it starts: its slots, and the context of one of them.

Without a unified cache every slot has its own part of it, so the pool is the slots times the context of one. With one
the context of a slot is cut to what the model was trained on, so the pool is at least that, and not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from advisor.domain.evidence import FlagValue
from advisor.engines.startup import StartupFacts

TELLING = re.compile(rb"n_ctx_slot = |n_batch +=|build_info: b|build: \d")
"""Finds the few lines worth parsing in the bytes of a large log."""

_BUILD = re.compile(r"\b(?:build_info: b|build: )(\d{1,9})\b")
_BATCH = re.compile(r"\bn_batch += (\d{1,9})\b")
_SLOTS = re.compile(
    r"\bn_slots = (?P<slots>\d{1,5}), n_ctx_slot = (?P<context>\d{1,9})(?:, kv_unified = '(?P<one>\w+)')?"
)


def parse_startup(lines: Iterable[str]) -> StartupFacts | None:
    """What the last start in `lines` says; None when no line tells of slots.

    `n_slots = 4, n_ctx_slot = 2048, kv_unified = 'false'` is a pool of 8,192 tokens and at most 2,048 a request.
    """
    build, batch, facts = None, None, None
    for line in lines:
        build = _BUILD.search(line) or build
        batch = _BATCH.search(line) or batch
        if slots := _SLOTS.search(line):
            facts = _facts(slots, build, batch)
            build, batch = None, None
    return facts


def _facts(slots: re.Match[str], build: re.Match[str] | None, batch: re.Match[str] | None) -> StartupFacts:
    count, context = int(slots["slots"]), int(slots["context"])
    flags: dict[str, FlagValue] = {"max_num_seqs": count, "max_model_len": context}
    if batch:
        flags["max_num_batched_tokens"] = int(batch[1])
    return StartupFacts(
        engine="llamacpp",
        version=f"b{build[1]}" if build and int(build[1]) else None,
        flags={name: value for name, value in flags.items() if value},
        kv_pool_tokens=count * context or None if slots["one"] == "false" else None,
        engines=1,
    )
