"""Sends a post exactly once, over crashes, time-outs and answers that never came. The delivery log decides, not luck.

A message goes through `sending` to `sent` or `failed`. Found in `sending`, or left there by an error after which it may
have arrived, it is looked for on Slack first, and sent again only when it is not there after `settle_seconds`. Where
looking is not allowed it stays in `sending`, is not repeated, and the outcome says so.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from advisor.domain.ports import Delivery, DeliveryLog
from advisor.outlets.charts import ChartError, pngs

from .failure import HiddenError, RefusedError, UnansweredError
from .options import SlackOptions
from .post import Message, Picture, Post, advice_key
from .transport import BotTransport, WebhookTransport, transport

MOST_ATTEMPTS = 4
LONGEST_WAIT_SECONDS = 120.0
PACE_SECONDS = 1.0  # Slack takes about one message a second and channel
_LOOK_BACK_SECONDS = 2 * 86_400.0  # more than a clock that jumped by a day

Draw = Callable[[Sequence[Picture]], Sequence[bytes | ChartError]]


@dataclass(frozen=True, slots=True)
class Problem:
    """What did not arrive, and why. `permanent`: it will not, until a person mends something."""

    key: str
    why: str
    permanent: bool


@dataclass(slots=True)
class Outcome:
    """How one post went: messages and pictures sent now, those that were there already, and what went wrong."""

    channel: str
    sent: int = 0
    already: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Everything is there."""
        return not self.problems

    @property
    def retry(self) -> bool:
        """Calling again later can help by itself."""
        return any(not problem.permanent for problem in self.problems)

    def __str__(self) -> str:
        """One line: `C0123ABCD: 3 sent; C0123ABCD/2026-W48: slack says is_archived: mend channel`."""
        counts = f"{self.channel}: {self.sent} sent" + (f", {self.already} there already" if self.already else "")
        told = dict.fromkeys(problem.why for problem in self.problems)
        return "; ".join((counts, *told))


class SlackPoster:
    """Posts to Slack by the options. When `sleep` returns something true, as `Event.wait` does, posting stops there."""

    def __init__(
        self,
        options: SlackOptions,
        *,
        draw: Draw | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._options = options
        self._draw = draw or (lambda pictures: pngs([(p.pictures, p.name) for p in pictures]))
        self._sleep = sleep

    def post(self, post: Post, log: DeliveryLog, now: float) -> Outcome:
        """Send what of the post is not there yet. `now` is UNIX time; never raises for what Slack does."""
        outcome = Outcome(post.channel)
        try:
            way = transport(self._options)
        except RefusedError as error:
            _note_refusal(log, post.parent.key, now, str(error))
            outcome.problems.append(Problem(post.parent.key, str(error), permanent=True))
            return outcome
        run = _Run(self._options, way, log, outcome, now, self._sleep)
        parent = run.message(post.channel, post.parent, None)
        if parent and isinstance(way, BotTransport):
            images = self._drawn(run, (post.parent, *post.thread))
            self._picture(run, way, post.channel, post.parent, parent, images)
            for answer in post.thread:
                if run.message(post.channel, answer, parent) is not None:
                    self._picture(run, way, post.channel, answer, parent, images)
        return outcome

    def _drawn(self, run: _Run, messages: Sequence[Message]) -> Mapping[str, bytes | ChartError]:
        """The pictures that are not there yet, by the key of their message."""
        wanted = {m.key: m.picture for m in messages if m.picture is not None and not run.is_there(_picture_key(m))}
        return dict(zip(wanted, self._draw(list(wanted.values())), strict=True)) if wanted else {}

    def _picture(
        self,
        run: _Run,
        way: BotTransport,
        channel: str,
        message: Message,
        thread: str,
        images: Mapping[str, bytes | ChartError],
    ) -> None:
        picture, image, key = message.picture, images.get(message.key), _picture_key(message)
        if picture is None or image is None:
            return
        if isinstance(image, ChartError):
            run.outcome.problems.append(Problem(key, str(image), permanent=False))
            return
        name = f"advice-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.png"
        run.deliver(
            key,
            lambda: way.share(channel, image, name, picture.alt, thread),
            lambda: way.find_file(channel, name, thread),
        )


def _picture_key(message: Message) -> str:
    return f"{message.key}/picture"


def _note_refusal(log: DeliveryLog, key: str, now: float, why: str) -> None:
    """So that status and metrics tell it. A message of which nobody knows whether it is there stays as it is."""
    known = log.state(key)
    if (known is None or known.state == "failed") and log.begin(key, now, after=known.attempts if known else 0):
        log.failed(key, now, why, permanent=True)


@dataclass(frozen=True, slots=True)
class _Run:
    options: SlackOptions
    way: BotTransport | WebhookTransport
    log: DeliveryLog
    outcome: Outcome
    started: float
    sleep: Callable[[float], object]
    _clock_at_start: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> float:
        """UNIX time by the caller's clock, which may be a replay's."""
        return self.started + time.monotonic() - self._clock_at_start

    def is_there(self, key: str) -> bool:
        """Whether the log knows it as sent; then it counts as being there already."""
        known = self.log.state(key)
        there = known is not None and known.state == "sent"
        self.outcome.already += there
        return there

    def message(self, channel: str, message: Message, thread: str | None) -> str | None:
        """Slack's name for the message, sent now or before; None when it is not known to be there."""
        known = self.log.state(message.key)
        if known is not None and known.state == "sent":
            self.outcome.already += 1
            return known.reference
        since = (known.first_begun_at if known else self.now) - _LOOK_BACK_SECONDS
        reference = self.deliver(
            message.key,
            lambda: self.way.send(channel, message.payload(), thread),
            lambda: self.way.find(channel, message.key, thread, max(since, 0.0)),
        )
        if reference is not None:
            for advice in message.announces:
                self._note(advice_key(channel, advice), reference)
        return reference

    def _note(self, key: str, reference: str) -> None:
        known = self.log.state(key)
        if known is None or known.state != "sent":
            self.log.begin(key, self.now, after=known.attempts if known else 0)
            self.log.sent(key, self.now, reference)

    def deliver(self, key: str, send: Callable[[], str], find: Callable[[], str | None]) -> str | None:
        """Slack's name for what was sent, or found to be there; None with the problem noted."""
        for _ in range(MOST_ATTEMPTS):
            try:
                reference = self._attempt(key, send, find)
            except UnansweredError:
                continue
            except HiddenError as error:
                why = f"it may have arrived, and is not repeated, because that cannot be looked up: {error}"
                return self._problem(key, why, permanent=error.permanent)
            except RefusedError as error:
                self.log.failed(key, self.now, str(error), permanent=error.permanent)
                if not self._may_repeat(error):
                    return self._problem(key, str(error), permanent=error.permanent)
                continue
            if reference is None:
                return self._problem(key, "another process is sending it", permanent=False)
            self.log.sent(key, self.now, reference)
            self.outcome.sent += 1
            return reference
        return self._problem(key, f"slack gave no usable answer to {MOST_ATTEMPTS} attempts", permanent=False)

    def _attempt(self, key: str, send: Callable[[], str], find: Callable[[], str | None]) -> str | None:
        """Find it or send it; None when another process was faster."""
        known = self.log.state(key)
        if known is not None and known.state == "sending":
            found = self._found(known, find)
            if found is not None:
                return found
        if not self.log.begin(key, self.now, after=known.attempts if known else 0):
            return None
        reference = send()
        self.sleep(PACE_SECONDS)
        return reference

    def _found(self, known: Delivery, find: Callable[[], str | None]) -> str | None:
        """Look for it; when it is not there, once more after the time in which it may still turn up."""
        found = find()
        rest = self.options.settle_seconds - (self.now - known.begun_at)
        if found is None and rest > 0:
            # A clock that was set back must not make this wait for a day.
            if self.sleep(min(rest, self.options.settle_seconds)):
                raise HiddenError("stopped while waiting for it to turn up", permanent=False)
            found = find()
        return found

    def _may_repeat(self, error: RefusedError) -> bool:
        wait = error.retry_after_seconds
        return wait is not None and wait <= LONGEST_WAIT_SECONDS and not self.sleep(wait)

    def _problem(self, key: str, why: str, *, permanent: bool) -> str | None:
        self.outcome.problems.append(Problem(key, why, permanent))
        return None
