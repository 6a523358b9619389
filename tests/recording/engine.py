"""A model of one continuously batched engine: a step costs time, a sequence costs cache, and a queue waits for both.

Modelled: a first-come-first-served queue under `max_num_seqs`; a token budget per step that decoding sequences use
first and prompts share (chunked prefill); a KV pool in blocks, where a prompt is admitted only when all of it fits and
the last sequence admitted is preempted and recomputed when decoding runs out of blocks; refusal of prompts that leave
no room for an output. Not modelled: prefix caching, speculation, jitter. The blocks of a prompt are taken when it is
admitted, not chunk by chunk.

Steps in which nothing but decoding happens are taken together: as long as the batch stays the same, step time grows
linearly and every `block_size`-th step of a sequence takes a block, so hours of traffic cost seconds.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from itertools import count

from tests.recording import meters
from tests.recording.meters import Meters, Scrape


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """The flags of one engine under vLLM's names, and the KV pool that its memory leaves, in tokens."""

    max_model_len: int = 16384
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    kv_pool_tokens: int = 500_000
    block_size: int = 16

    def __post_init__(self) -> None:
        if self.blocks * self.block_size < self.max_model_len or self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError("a real engine refuses to start with a pool below max_model_len or a budget below the cap")

    @property
    def blocks(self) -> int:
        """Whole blocks in the pool."""
        return self.kv_pool_tokens // self.block_size


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step: base + per_sequence x decoding + per_kv_token x their cache + per_prefill_token x prompt."""

    base: float = 0.012
    per_sequence: float = 1.5e-4
    per_kv_token: float = 2e-8
    per_prefill_token: float = 8e-5


@dataclass(slots=True, eq=False)
class Request:
    """One request and what became of it. Times in seconds on the recording's clock, NaN until they happen."""

    arrival: float
    prompt_tokens: int
    output_tokens: int
    max_tokens: int | None = None
    refused: bool = False
    finish_reason: str = meters.FINISHED_STOP
    scheduled: float = math.nan
    first_token: float = math.nan
    finished: float = math.nan
    generated: int = 0
    last_token: float = math.nan
    prefill_left: int = 0
    blocks: int = 0
    joined_step: int = -1

    @property
    def decoding(self) -> bool:
        """True from the end of its prefill until it finishes or is preempted."""
        return self.joined_step >= 0


class Engine:
    """One scheduler from `start` on; `run` returns what scrapes of it would have read."""

    def __init__(self, flags: EngineFlags, step_time: StepTime, start: float) -> None:
        self.flags, self.cost, self.now = flags, step_time, start
        self.meters = Meters(flags.max_model_len)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.free_blocks = flags.blocks
        self.step = 0
        self.decoding = 0
        self.cached_tokens = 0
        self.block_starts = [0] * flags.block_size  # decoding sequences by the step residue at which they need a block
        self.finish_order: list[tuple[int, int, int, Request]] = []  # (due step, serial, step joined, request)
        self.serial = count()

    def run(self, requests: list[Request], until: float, scrape_seconds: float) -> list[Scrape]:
        """Serve `requests`, sorted by arrival, up to `until`; one scrape at every multiple of `scrape_seconds`."""
        arrivals = deque(requests)
        scrapes: list[Scrape] = []
        next_scrape = math.ceil(self.now / scrape_seconds) * scrape_seconds
        while True:
            while arrivals and arrivals[0].arrival <= self.now:
                self._arrive(arrivals.popleft())
            while next_scrape <= min(self.now, until):
                scrapes.append(self._scrape(next_scrape))
                next_scrape += scrape_seconds
            if self.now >= until:
                return scrapes
            horizon = min(arrivals[0].arrival if arrivals else until, next_scrape, until)
            if self.running or self.waiting:
                self._advance(horizon)
            else:
                self.now = horizon

    def _arrive(self, request: Request) -> None:
        room = self.flags.max_model_len - request.prompt_tokens
        if room < 1:
            request.refused = True
            self.meters.counters[meters.REFUSED] += 1
            return
        allowed = min(room, request.max_tokens or room)
        if request.output_tokens > allowed:
            request.output_tokens, request.finish_reason = allowed, meters.FINISHED_LENGTH
        self.waiting.append(request)

    def _scrape(self, time: float) -> Scrape:
        usage = 1 - self.free_blocks / self.flags.blocks
        return self.meters.scrape(time, running=len(self.running), waiting=len(self.waiting), kv_usage=usage)

    def _advance(self, horizon: float) -> None:
        preempted = self._make_room()
        budget = self.flags.max_num_batched_tokens - self.decoding
        chunks = self._prefill(budget, admit=not preempted)
        prefill_tokens = sum(tokens for _, tokens in chunks)
        quiet = not prefill_tokens and not preempted
        steps = self._quiet_steps(horizon) if quiet else 1
        complete = [request for request, tokens in chunks if request.prefill_left == tokens]
        for request, tokens in chunks:
            request.prefill_left -= tokens
        self._decode(steps, self.cost.per_prefill_token * prefill_tokens, complete)
        for request in complete:
            self._emit_first(request)
        while self.finish_order and self.finish_order[0][0] <= self.step:
            _, _, joined, request = heapq.heappop(self.finish_order)
            if request.joined_step == joined:
                self._finish(request)

    def _make_room(self) -> bool:
        """Preempt the latest admitted until the coming step's blocks are free."""
        preempted = False
        while self.free_blocks < self.block_starts[self.step % self.flags.block_size]:
            victim = self.running.pop()
            self._release(victim)
            self.waiting.appendleft(victim)
            self.meters.counters[meters.PREEMPTIONS] += 1
            preempted = True
        return preempted

    def _prefill(self, budget: int, *, admit: bool) -> list[tuple[Request, int]]:
        """The chunks of prompts that this step computes, admitting from the queue while all three resources last."""
        chunks = []
        for request in self.running:
            if request.prefill_left and budget:
                chunks.append((request, min(request.prefill_left, budget)))
                budget -= chunks[-1][1]
        while admit and budget and self.waiting and len(self.running) < self.flags.max_num_seqs:
            request = self.waiting[0]
            context = request.prompt_tokens + request.generated
            blocks = -(-context // self.flags.block_size)
            if blocks > self.free_blocks - self.block_starts[self.step % self.flags.block_size]:
                break
            self.running.append(self.waiting.popleft())
            self.free_blocks -= blocks
            request.blocks, request.prefill_left = blocks, context
            if math.isnan(request.scheduled):
                request.scheduled = self.now
            chunks.append((request, min(context, budget)))
            budget -= chunks[-1][1]
        return chunks

    def _quiet_steps(self, horizon: float) -> int:
        """How many steps pass until a sequence finishes, `horizon` is reached or the pool may run out."""
        while self.finish_order[0][3].joined_step != self.finish_order[0][2]:
            heapq.heappop(self.finish_order)  # it was preempted since
        first = self._step_seconds(0)
        growth = self.cost.per_kv_token * self.decoding
        remaining = max(horizon - self.now, 0.0)
        linear = first - growth / 2
        # n steps last n x linear + n^2 x growth / 2; solved in the form that does not cancel for a small growth
        by_time = math.ceil(2 * remaining / (linear + math.sqrt(linear * linear + 2 * growth * remaining)))
        steps = max(1, min(by_time, self.finish_order[0][0] - self.step))
        while steps > 1 and self._blocks_for(steps) > self.free_blocks:
            steps //= 2
        return steps

    def _blocks_for(self, steps: int) -> int:
        size = self.flags.block_size
        rounds, rest = divmod(steps, size)
        return rounds * self.decoding + sum(self.block_starts[(self.step + i) % size] for i in range(rest))

    def _step_seconds(self, ahead: int) -> float:
        """Seconds of the decode part of the step that comes `ahead` steps after the present one."""
        cached = self.cached_tokens + ahead * self.decoding
        return self.cost.base + self.cost.per_sequence * self.decoding + self.cost.per_kv_token * cached

    def _decode(self, steps: int, prefill_seconds: float, complete: list[Request]) -> None:
        """Let time pass for `steps` steps, and book the tokens that the decoding sequences emit in them."""
        n, book = self.decoding, self.meters
        self.free_blocks -= self._blocks_for(steps)
        seconds = (self._step_seconds(0) + self._step_seconds(steps - 1)) / 2 + prefill_seconds
        self.now += steps * seconds
        self.step += steps
        self.cached_tokens += steps * n
        book.counters[meters.OUTPUT_TOKENS] += steps * n
        if n:
            # Steps taken together differ by a fraction of a millisecond: all are booked at their mean.
            book.histograms[meters.ITL].observe(seconds, steps * n)
        booked = n + sum(r.prompt_tokens + 1 if not r.generated else 1 for r in complete)
        if booked:
            book.histograms[meters.STEP_TOKENS].observe(booked, steps)

    def _emit_first(self, request: Request) -> None:
        """A prefill is complete: its token comes out, and the sequence decodes from the next step on."""
        book = self.meters
        book.counters[meters.OUTPUT_TOKENS] += 1
        if request.generated:
            book.histograms[meters.ITL].observe(self.now - request.last_token)
        else:
            request.first_token = self.now
            book.counters[meters.PROMPT_TOKENS] += request.prompt_tokens
            book.histograms[meters.TTFT].observe(self.now - request.arrival)
        context = request.prompt_tokens + request.generated
        request.generated += 1
        request.joined_step = self.step
        self.decoding += 1
        self.cached_tokens += context
        self.block_starts[(self.step - context) % self.flags.block_size] += 1
        due = self.step + request.output_tokens - request.generated
        heapq.heappush(self.finish_order, (due, next(self.serial), self.step, request))

    def _release(self, request: Request) -> None:
        """Take a running sequence's cache away; what it generated stays known."""
        if request.decoding:
            decoded = self.step - request.joined_step
            context = request.prompt_tokens + request.generated - 1
            self.block_starts[(request.joined_step - context) % self.flags.block_size] -= 1
            self.cached_tokens -= context + decoded
            self.decoding -= 1
            request.generated += decoded
            request.blocks = -(-(context + decoded) // self.flags.block_size)
            request.last_token = self.now
        self.free_blocks += request.blocks
        request.blocks, request.prefill_left, request.joined_step = 0, 0, -1

    def _finish(self, request: Request) -> None:
        self._release(request)
        self.running.remove(request)
        request.finished = self.now
        book = self.meters
        book.counters[request.finish_reason] += 1
        book.histograms[meters.E2E].observe(self.now - request.arrival)
        book.histograms[meters.QUEUE].observe(request.scheduled - request.arrival)
        book.histograms[meters.PROMPT_LENGTH].observe(request.prompt_tokens)
        book.histograms[meters.OUTPUT_LENGTH].observe(request.generated)
        if request.generated > 1:
            per_token = (self.now - request.first_token) / (request.generated - 1)
            book.histograms[meters.TPOT].observe(per_token)
