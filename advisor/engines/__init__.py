"""What differs from engine to engine: metric names by version, flags, start-up logs, refusals, admission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from advisor.domain.evidence import UNTOLD, FlagValue

from .dynamo.metrics import DYNAMO
from .endpoint import MODELS, VERSION, Endpoint
from .llamacpp import endpoints as llamacpp_endpoints
from .llamacpp import flags as llamacpp_flags
from .llamacpp.metrics import LLAMACPP
from .metrics import EngineMetrics
from .own_flags import OwnFlags
from .sglang import endpoints as sglang_endpoints
from .sglang import flags as sglang_flags
from .sglang.metrics import SGLANG
from .tgi import endpoints as tgi_endpoints
from .tgi import flags as tgi_flags
from .tgi.metrics import TGI
from .trtllm import flags as trtllm_flags
from .trtllm.metrics import TRTLLM
from .untold import UntoldFlags
from .vllm import endpoints as vllm_endpoints
from .vllm import flags as vllm_flags
from .vllm.metrics import VLLM

METRICS: Mapping[str, EngineMetrics] = {m.engine: m for m in (VLLM, SGLANG, TGI, TRTLLM, LLAMACPP, DYNAMO)}
"""Every engine whose metrics are understood, by name."""
ENDPOINTS: Mapping[str, tuple[Endpoint, ...]] = {
    "vllm": vllm_endpoints.ENDPOINTS,
    "sglang": sglang_endpoints.ENDPOINTS,
    "tgi": tgi_endpoints.ENDPOINTS,
    "trtllm": (MODELS, VERSION),
    "llamacpp": llamacpp_endpoints.ENDPOINTS,
    "dynamo": (MODELS,),
}
"""What each engine can be asked over HTTP, the most trusted answer first."""


class EngineFlags(Protocol):
    """What the flags of an engine offer; vLLM's own functions say what each means."""

    def canonical(self, name: str, value: object) -> tuple[str, FlagValue]:
        """The flag under its canonical name; ValueError with one line when it cannot have that value."""
        ...

    def lacks(self, knob: str) -> str | None:
        """Why the engine has no flag for `knob`, or None when it has one."""
        ...

    def render_flag(self, knob: str, value: FlagValue) -> str:
        """The flag as it is written on the engine's command line."""
        ...

    def violations(
        self, flags: Mapping[str, FlagValue], version: str | None, *, pool_tokens: int | None = None
    ) -> tuple[str, ...]:
        """What the engine would refuse at start, one line each."""
        ...

    def certain_defaults(self, version: str | None) -> Mapping[str, FlagValue]:
        """What flags are when nobody set them, where hardware has no say."""
        ...

    def counts_declared_output(self, version: str | None) -> bool | None:
        """Whether a request is refused for its prompt plus the output it declares."""
        ...


_OWN: Mapping[str, OwnFlags] = {
    "sglang": sglang_flags.FLAGS,
    "tgi": tgi_flags.FLAGS,
    "trtllm": trtllm_flags.FLAGS,
    "llamacpp": llamacpp_flags.FLAGS,
}
_FLAGS: Mapping[str, EngineFlags] = {"vllm": vllm_flags, **_OWN, UNTOLD: UntoldFlags()}

FLAG_NAMES = frozenset(vllm_flags.FLAGS) | {n for own in _OWN.values() for n in (*own.names, *own.kept)}
"""Every flag that may be stated, under any engine's name for it."""


def flags_of(engine: str) -> EngineFlags | None:
    """The flags of an engine by its name, or None for one whose flags are another engine's (Dynamo's front end)."""
    return _FLAGS.get(engine)


def normalise(name: str, value: object) -> FlagValue:
    """The value of a flag under any engine's name for it, where the engine is not known yet.

    Raises ValueError with one line when no engine's flag of that name can have the value.
    """
    meanings = {own.names[name] for own in _OWN.values() if name in own.names}
    kept = any(name in own.kept for own in _OWN.values())
    meaning = name if name in vllm_flags.FLAGS or kept or len(meanings) != 1 else meanings.pop()
    plain = vllm_flags.normalise(meaning, value)
    return _as_number(plain) if kept and isinstance(plain, str) else plain


def _as_number(text: str) -> FlagValue:
    """A number where the text is one: flags that only one engine has carry no type of their own here."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() and "." not in text else value


def canonical(engine: str, name: str, value: FlagValue) -> tuple[str, FlagValue]:
    """A flag of `engine` under its canonical name: SGLang's context_length is max_model_len."""
    flags = flags_of(engine)
    return flags.canonical(name, value) if flags else (name, value)


def never_tells(engine: str, fact: str) -> str | None:
    """Why the metrics of `engine` cannot tell a fact, and what can; None where they may."""
    metrics = METRICS.get(engine)
    return metrics.never_tells.get(fact) if metrics else None


def metrics_of_series(name: str) -> EngineMetrics | None:
    """Whose series this is, or None for one that many processes have."""
    return _OWNER.get(name)


_OWNER: Mapping[str, EngineMetrics] = {name: m for m in METRICS.values() for name in m.names}
