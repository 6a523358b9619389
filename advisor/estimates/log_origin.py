"""Whether a request log is of the engines looked at: none answers more than its limit allows, or than it finishes.

Worked: 400 of 2,000 logged requests took 12,000 tokens where max_model_len is 8,192, so a fifth of them was served
elsewhere. 142,000 requests in hours in which the engines finished 2,000 are 71 times as many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence, RequestLog
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.length_history import LengthHistory, upper_edge

from .length_sample import TELL_PAIRS

HOUR, DAY = 3600, 86400.0
COUNTED_OTHERWISE = 1.05
"""A gateway with a tokenizer of its own counts a few percent more than the engine."""
MOST_BEYOND_LIMIT = 0.001
MOST_OVER_FINISHED = 2.0
"""Above these, which the rule instrumentation/log-of-other-engines has too, nothing is believed of the log."""
NO_LOG = f"no log of single requests to compare with the engines: give {TELL_PAIRS}"
LEAST_LOGGED = 100
LEAST_HOURS = 3
REMEDY = "give the log of these engines alone, or name every engine that it is of"


def facts(evidence: Evidence) -> dict[str, Fact]:
    """How much of the log these engines cannot have served, Unknown where the two cannot be compared.

    foreign_log: what speaks against the log in words; Unknown where nothing does.
    """
    beyond, over = _beyond_limit(evidence), _over_finished(evidence)
    against = [(beyond, MOST_BEYOND_LIMIT), (over, MOST_OVER_FINISHED)]
    found = [fact for fact, most in against if fact.number is not None and fact.number > most]
    foreign = replace(found[0], value=found[0].source) if found else unknown("nothing speaks against the request log")
    return {"logged_beyond_limit_share": beyond, "logged_over_finished": over, "foreign_log": foreign}


def believed(evidence: Evidence, told: Mapping[str, Fact]) -> Evidence:
    """The evidence that figures may be taken from: without a log of other engines."""
    return replace(evidence, log=None) if told["foreign_log"].value is not None else evidence


def instead(told: Mapping[str, Fact], reason: str | None) -> str | None:
    """Why an Unknown that asks for a log (`reason`) is Unknown although there is one; None where that is not so."""
    foreign = told["foreign_log"].value
    return f"the request log is not used: {foreign}; {REMEDY}" if foreign and reason and "--logs" in reason else None


def _beyond_limit(evidence: Evidence) -> Fact:
    log, limit = evidence.log, _longest_limit(evidence)
    if log is None or not log.served.n:
        return unknown(NO_LOG)
    if limit is None:
        return unknown("max_model_len is not known of every engine: --set max_model_len=N")
    since = _runs_since(evidence, log)
    if since <= log.first_seconds:
        beyond, every = log.served.totals().above(COUNTED_OTHERWISE * limit), log.served.n
    elif log.history is not None:
        beyond, every = _longer(log.history, since, COUNTED_OTHERWISE * limit)
    else:
        return unknown("the log does not tell which requests came since the present limit runs")
    if every < LEAST_LOGGED:
        return unknown(f"{every} logged requests since the present limit runs: too few to tell")
    says = flag.source.replace("_", " ") if (flag := evidence.flags.get("max_model_len")) else "of a replica"
    story = f"{beyond:,} of {every:,} answered requests are longer than max_model_len, {limit:,} ({says})"
    return measured(beyond / every, n=every, source=story)


def _longest_limit(evidence: Evidence) -> int | None:
    """The longest of all replicas' limits; None where one that runs apart does not tell its own."""
    limits = [evidence.count_flag("max_model_len")]
    for engine in evidence.every_engine:
        flag = engine.flags.get("max_model_len")
        if flag is not None or engine in evidence.apart:
            limits.append(flag.value if flag is not None and isinstance(flag.value, int) else None)
    known = [limit for limit in limits if limit is not None and limit > 0]
    return max(known) if len(known) == len(limits) else None


def _runs_since(evidence: Evidence, log: RequestLog) -> float:
    """UNIX seconds since when no limit has changed; where no engine tells, the last day of the log is taken."""
    starts = [engine.epoch_start for engine in evidence.every_engine]
    return max(starts, default=log.last_seconds - DAY)


def _longer(history: LengthHistory, since: float, tokens: float) -> tuple[int, int]:
    """Requests since then that are surely longer, and all of them; a bin counts when its shortest length is."""
    present = history.start >= since
    longer = present & (upper_edge(history.bin - 1) >= tokens)
    return int(history.counts[longer].sum()), int(history.counts[present].sum())


def _over_finished(evidence: Evidence) -> Fact:
    log, engines = evidence.log, evidence.every_engine
    if log is None or log.history is None:
        return unknown(NO_LOG)
    if not engines or evidence.read_in_part:
        return unknown("no engine metrics to compare the log with (--prometheus, --engine)")
    alike = {engine.lifetime for engine in engines}
    if len(alike) > 1:
        return unknown("some engines were read over time and some once: no common time to compare")
    both = _since_start(log.history, engines) if engines[0].lifetime else _in_common_hours(log.history, engines)
    if both is None:
        return unknown(f"needs {LEAST_HOURS} whole hours in which engines' prompt lengths were read as well")
    # One scrape of several front ends reads one of them, and each counts its own requests.
    logged, finished = both[0], both[1] * (evidence.count_flag("api_server_count") or 1)
    if logged < LEAST_LOGGED:
        return unknown(f"{logged} logged requests while the engines were read: too few to tell")
    ratio = logged / max(finished, 1.0)
    story = f"it has {logged:,} answered requests of a time in which the engines finished {finished:,.0f}"
    return computed(ratio, n=logged, source=story)


def _since_start(history: LengthHistory, engines: tuple[EngineSeries, ...]) -> tuple[int, float] | None:
    """Logged since the last engine started, and finished by each since its own start."""
    if not all("prompt_tokens" in engine.lengths for engine in engines):
        return None
    present = history.start >= max(engine.epoch_start for engine in engines)
    return int(history.counts[present].sum()), sum(engine.lengths["prompt_tokens"].n for engine in engines)


def _in_common_hours(history: LengthHistory, engines: tuple[EngineSeries, ...]) -> tuple[int, float] | None:
    """Logged and finished in the hours of which engines were read from begin to end: without the first and the last."""
    read = [engine.length_hours.get("prompt_tokens") for engine in engines]
    hours = [h for h in read if h is not None]
    if len(hours) < len(read) or history.seconds > HOUR:
        return None
    whole = np.unique(np.concatenate([h.start for h in hours]))[1:-1]
    if whole.size < LEAST_HOURS:
        return None
    finished = math.fsum(float(h.counts[np.isin(h.start, whole)].sum()) for h in hours)
    return int(history.counts[np.isin(history.start // HOUR * HOUR, whole)].sum()), finished
