"""What a token budget is judged against: the parts of a step, the lengths of requests, and what arrives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.domain.numbers import seconds
from advisor.domain.policy import Policy

from .full_step import FullStep
from .load import engines_per_instance, sequence_cap
from .service_rate import headroom_for
from .token_budget import admitted, mean_work, no_budget, step_budget

LONGEST_GAP = 2.0
"""A single step may take so many times its mean."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a budget is judged against. Lengths in tokens, `arrivals` in requests per second of one engine or None.

    decoding: sequences that decode in a busy step; seats: the most that may, inf where nothing says.
    """

    work: FullStep
    budget: int
    decoding: float
    seats: float
    prompt: float
    prompt_squared: float
    long_prompt: float
    output: float
    arrivals: float | None
    headroom: float

    def full_step(self, budget: float) -> float:
        """Seconds of a full step, the middle of what overlap allows."""
        return self.work.middle(self.decoding, budget)

    def pressure(self, budget: float) -> float | None:
        """Demand over what one engine serves at this budget with headroom: N / (O x full step), N = least ceiling."""
        if self.arrivals is None:
            return None
        steps = self.output / self.work.tokens_per_gap
        held = max(min(admitted(budget, self.prompt, steps), self.seats), 1.0)
        step = self.work.decoding(held) + self.work.per_prompt_token * held * self.prompt / steps
        return self.arrivals * steps * step / (held * self.headroom)

    def ttft(self, budget: float) -> float | None:
        """Seconds to the first token of a long prompt behind the p99 of the prompts before it; None if it diverges."""
        rate = self.work.prompt_rate(self.decoding, budget)
        if self.arrivals is None or rate <= 0:
            return None
        use = self.arrivals * self.prompt / rate
        if use >= 1:
            return None
        mean_wait = self.arrivals * self.prompt_squared / rate**2 / (2 * (1 - use))
        wait = mean_wait / use * max(math.log(100 * use), 0.0) if use > 0 else 0.0
        chunks = math.ceil(self.long_prompt / (budget - self.decoding))
        own = chunks * self.work.decoding(self.decoding) + self.work.per_prompt_token * self.long_prompt
        return wait + own


def scene_of(evidence: Evidence, policy: Policy, work: FullStep | str, known: Mapping[str, Fact]) -> Scene | str:
    """The scene of a deployment, or what is missing for one."""
    budget, means = step_budget(evidence), mean_work(evidence, known)
    running, long_prompt = known["running_p95"].number, known["prompt_tokens_p99"].ceiling
    # A p99 in the last, open bucket is at most as long as the limit.
    long_prompt = long_prompt if long_prompt is not None else known["max_model_len"].number
    if budget is None:
        return no_budget(evidence)
    if isinstance(work, str):
        return work
    if refuted := _refuted(work, budget, known):
        return refuted
    if means is None or means[1] <= 0 or running is None or long_prompt is None:
        return "needs the lengths of requests and how many run at once"
    joint = evidence.best_joint
    share = means[0] / joint.prompts().mean if joint is not None and joint.n and joint.prompts().mean else 1.0
    squared = (
        float((joint.prompt.astype(float) ** 2 @ joint.counts) / joint.n) * share**2
        if joint is not None and joint.n
        else 2 * means[0] ** 2
    )
    demand, replicas = known["demand_requests_per_second_p99"].number, evidence.replicas
    engines = replicas * engines_per_instance(evidence) if replicas else None
    ceilings = [known["memory_ceiling_expected"].number, sequence_cap(evidence)]
    return Scene(
        work=work,
        budget=budget,
        decoding=running,
        seats=min((c for c in ceilings if c is not None), default=math.inf),
        prompt=means[0],
        prompt_squared=squared,
        long_prompt=long_prompt * share,
        output=means[1],
        arrivals=demand / engines if demand is not None and engines else None,
        headroom=headroom_for(evidence, policy),
    )


def _refuted(work: FullStep, budget: int, known: Mapping[str, Fact]) -> str | None:
    """Why a measurement speaks against the parts of a step: one gap in a hundred is far longer than a full step can be.

    Prompts of many budgets are booked in the step that ends them, and a fit then takes them for cheap.
    """
    gap, running = known["itl_p99"].floor, known["running_p95"].number
    if gap is None or running is None:
        return None
    longest = work.bounds(running, budget)[1]
    if gap <= LONGEST_GAP * longest:
        return None
    return (
        f"one gap between tokens in a hundred takes {seconds(gap)} or more, a full step by its parts at most "
        f"{seconds(longest)}: what a step takes is not understood"
    )
