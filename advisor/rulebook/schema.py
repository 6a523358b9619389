"""A rule as its YAML file states it. Arithmetic is not here: a rule only compares facts that estimates computed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from advisor.domain.advice import Severity, Verdict
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.errors import ConfigError

from . import clause, wording
from .condition import known_fact

Given = TypeVar("Given")
Read = TypeVar("Read")
Knob = Literal["max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "replicas"]


def _checked(read: Callable[[Given], Read], value: Given) -> Read:
    """Pydantic wants ValueError; the reader's ConfigError keeps its text."""
    try:
        return read(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _readable(condition: Any) -> Any:
    _checked(clause.read, [condition])
    return condition


def _not_empty(conditions: tuple[Any, ...]) -> tuple[Any, ...]:
    if not conditions:
        raise ValueError("a rule without a condition would always hold")
    return conditions


class Advise(BaseModel):
    """What a rule that holds asks for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verdict: Verdict = Field(description="kind of change")
    knob: Knob | None = Field(default=None, description="the setting to change, for change_flag and replicas")
    to: str | None = Field(default=None, description="the fact that holds the value advised")
    step: Literal["max_num_seqs", "max_num_batched_tokens"] | None = Field(
        default=None, description="the flag whose next step upwards is named, where `investigate` may end in raising it"
    )

    @field_validator("to")
    @classmethod
    def _catalogued(cls, value: str | None) -> str | None:
        return None if value is None else _checked(known_fact, value)

    @model_validator(mode="after")
    def _can_be_said(self) -> Self:
        if self.verdict == "change_flag" and (self.knob in (None, "replicas") or self.to is None):
            raise ValueError("change_flag needs `knob`, a flag, and `to`, the fact that holds its value")
        if self.verdict != "change_flag" and self.knob not in (None, "replicas"):
            raise ValueError(f"only change_flag changes {self.knob}")
        if self.step is not None and self.verdict != "investigate":
            raise ValueError("only investigate names the `step` that it may end in")
        if self.knob and self.to and CATALOGUE[self.to].unit != CATALOGUE[self.knob].unit:
            raise ValueError(f"{self.knob} is in {CATALOGUE[self.knob].unit}, {self.to} in {CATALOGUE[self.to].unit}")
        return self


class Expect(BaseModel):
    """One prediction: a metric, and between which facts or shares of its present value it will lie afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str = Field(description="the fact that will tell")
    at_most: str | None = Field(default=None, description="fact that bounds it from above afterwards")
    at_least: str | None = Field(default=None, description="fact that bounds it from below afterwards")
    scales: Literal["with_knob", "against_knob", "down", "to_zero"] | None = Field(
        default=None, description="how it follows the change where no fact bounds it"
    )

    @field_validator("metric", "at_most", "at_least")
    @classmethod
    def _catalogued(cls, value: str | None) -> str | None:
        return None if value is None else _checked(known_fact, value)


class Rule(BaseModel):
    """A rule: when it holds, what it asks for, and the headings from which its page is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$", description="<area>/<name>, as its file is called")
    title: str = Field(min_length=1, max_length=100)
    severity: Severity
    workload: Literal["interactive", "batch"] | None = Field(default=None, description="the only workload it is for")
    engines: tuple[str, ...] | None = Field(default=None, description="the only engines it is for")
    objective: Literal["any", "tpot", "ttft", "itl"] | None = Field(
        default=None, description="applies only with this objective"
    )
    when: Annotated[tuple[Annotated[Any, AfterValidator(_readable)], ...], AfterValidator(_not_empty)] = Field(
        description="conditions, all of which must hold"
    )
    advise: Advise | None = Field(default=None, description="absent for a finding that asks for no change")
    last_resort: bool = Field(
        default=False, description="advises only where no other rule does, or waits for facts; infos aside"
    )
    reason: str = Field(min_length=1, max_length=300, description="one line, with {fact} filled in")
    gives_way_to: tuple[str, ...] = Field(
        default=(), description="ids of rules that mend the cause: where one of them holds, this one says nothing"
    )
    after: tuple[str, ...] = Field(default=(), description="ids of rules whose advice goes first where both advise")
    expect: tuple[Expect, ...] = ()
    what: str
    why: str
    evidence: str
    change: str
    verify: str
    undo: str
    limits: str

    @field_validator("reason", "verify", "undo", "title")
    @classmethod
    def _fillable(cls, value: str) -> str:
        _checked(wording.names, value)
        return value

    @cached_property
    def condition(self) -> clause.Clause:
        """The conditions, parsed."""
        return clause.read(list(self.when))

    def comes_after(self, holding: Collection[str]) -> str | None:
        """The first of the rules that hold to which it gives way; None where nothing comes before it."""
        return next((other for other in self.gives_way_to if other in holding), None)

    @property
    def plans(self) -> bool:
        """Whether it is for deployments that do not run yet, and for no others: the area `plan`."""
        return self.id.startswith("plan/")

    @property
    def matters(self) -> bool:
        """Whether leaving it undecided means that the deployment cannot be judged."""
        return self.severity != "info"


def problems(rule: Rule) -> tuple[str, ...]:
    """What a rule's author should mend although it can be read: used by the linter."""
    found = []
    advise = rule.advise
    if advise is not None and advise.verdict == "change_flag" and not rule.plans and not rule.expect:
        found.append("a change needs a prediction (`expect`) that can refute it")
    if rule.severity in ("critical", "warning") and advise is None:
        found.append(f"severity {rule.severity} but nothing is advised")
    return tuple(found)
