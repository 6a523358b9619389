"""How engines admit requests: what they keep free for the output that a request declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.domain.evidence import FlagValue

from .vllm.flags import reserves_full_prompt

SGLANG_FIRST_RATIO, SGLANG_LEAST_FACTOR, SGLANG_MOST_DECLARED = 0.7, 0.14, 4096


@dataclass(frozen=True, slots=True)
class Reserve:
    """Cache that a running request keeps others from using beyond what it holds.

    share: of the output it declares, at most `most_declared` tokens of it. whole: the request holds its prompt and this
    reserve from the start to the end, so nothing admitted is ever preempted.
    """

    share: float
    most_declared: int | None = None
    whole: bool = False

    def tokens(self, declared: float) -> float:
        """Tokens kept for a request that declares so much output. SGLang at 1.0: 2,000 x 0.098 = 196."""
        return self.share * (declared if self.most_declared is None else min(declared, self.most_declared))


def reserve(engine: str, flags: Mapping[str, FlagValue]) -> Reserve | None:
    """What `engine` keeps free of the declared output, or None where it keeps nothing (vLLM).

    TGI keeps all of it. SGLang keeps new_token_ratio of it, which starts at 0.7 x schedule_conservativeness (at most 1)
    and decays to 0.14 of that while nothing is retracted; the decayed one is taken here, which seats most.
    """
    if engine == "tgi":
        return Reserve(1.0, whole=True)
    if engine == "sglang":
        stated = flags.get("schedule_conservativeness")
        conservativeness = float(stated) if isinstance(stated, int | float) and stated > 0 else 1.0
        first = min(SGLANG_FIRST_RATIO * conservativeness, 1.0)
        return Reserve(first * SGLANG_LEAST_FACTOR, SGLANG_MOST_DECLARED)
    return None


def admits_by_first_chunk(engine: str, version: str | None, flags: Mapping[str, FlagValue]) -> bool | None:
    """Whether a prompt is admitted as soon as its first chunk fits: then a preempted request is back at once.

    vLLM before 0.19.1, or with scheduler_reserve_full_isl off. None where its release is not known; False of others.
    """
    if engine != "vllm":
        return False
    stated = flags.get("scheduler_reserve_full_isl")
    whole = stated if isinstance(stated, bool) else reserves_full_prompt(version)
    return None if whole is None else not whole
