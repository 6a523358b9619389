"""What a log leaves of lengths over time, of clients, and of very many distinct pairs."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from advisor.domain.evidence import Window
from advisor.sources.request_log import LogOptions, read_request_logs
from advisor.sources.request_log.clients import MAX_CLIENTS, Clients
from advisor.sources.request_log.history import History
from advisor.sources.request_log.pairs import LONGEST_KEPT, Pairs


def test_a_client_is_a_salted_hash() -> None:
    clients = Clients("salt")
    assert [clients[name] for name in ("", "team-a", "sk-secret", "team-a")] == [0, 1, 2, 1]
    assert clients.hashes == ["", *(sha256(f"salt{n}".encode()).hexdigest()[:12] for n in ("team-a", "sk-secret"))]
    assert Clients("other")["team-a"] == 1
    assert Clients("other").hashes != clients.hashes


def test_clients_are_bounded_in_number_and_in_length() -> None:
    clients = Clients("salt")
    codes = [clients[str(k)] for k in range(MAX_CLIENTS + 3)]
    assert codes[:2] == [1, 2]
    assert codes[-3:] == [0, 0, 0]
    assert Clients("salt")["x" * 513] == 0


def test_lengths_by_time_and_client() -> None:
    history = History()
    times = np.array([10.0, 20.0, 310.0])
    history.add(times, np.array([1_024, 1_000, 2]), np.array([1, 1, 0]), ["", "a"])
    history.add(times, np.array([1_024, 1_000, 2]), np.array([1, 1, 2]), ["", "a", "b"])
    out = history.lengths(["", "a", "b"])
    assert out is not None
    rows = sorted(
        zip(
            out.start.tolist(), [out.clients[c] for c in out.client], out.bin.tolist(), out.counts.tolist(), strict=True
        )
    )
    # 1,000 = 2^(159.46/16): both are in bin 160
    assert rows == [(0, "a", 160, 4), (300, "", 16, 1), (300, "b", 16, 1)]


def test_a_log_tells_whose_lengths_they_are_and_never_the_name(tmp_path: Path) -> None:
    line = {"model": "m", "upstream": "r", "status": 200, "usage": {"prompt_tokens": 900, "completion_tokens": 100}}
    rows = [line | {"ts": 1_000.0 + k, "client": "team-search" if k % 3 else None} for k in range(9)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reading = read_request_logs(LogOptions(paths=(str(path),)), Window(0.0, 1e4), lambda m, _: m, lambda _: 0.0)
    history = reading.logs["m"].history
    assert history is not None
    assert (history.n, len(history.clients)) == (9, 2)
    assert int(history.counts[history.client == 1].sum()) == 6
    assert "team-search" not in repr(reading.logs["m"])


def test_few_pairs_are_exact() -> None:
    pairs = Pairs()
    pairs.add(np.array([1_001, 1_001, 7]), np.array([3, 3, 0]))
    joint = pairs.joint()
    assert (joint.prompt.tolist(), joint.output.tolist(), joint.counts.tolist()) == ([7, 1_001], [0, 3], [1, 2])


@pytest.fixture(scope="module")
def coarse() -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Pairs]:
    random = np.random.default_rng(4)
    prompt = np.floor(np.exp(random.normal(8, 1.2, 60_000))).astype(np.int64)
    pairs = Pairs(most=20_000)
    for part in np.array_split(prompt, 6):
        pairs.add(part, part % 977)
    return prompt, pairs


def test_very_many_pairs_are_binned_with_their_longest_exact(
    coarse: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Pairs],
) -> None:
    prompt, pairs = coarse
    joint, total = pairs.joint(), np.sort(prompt + prompt % 977)
    assert joint.n == 60_000
    assert joint.counts.size < 30_000
    binned = np.sort(np.repeat(joint.prompt + joint.output, joint.counts))
    assert (binned >= total).all()
    # each of the two lengths is at most 1 % or a token longer, although most were rounded several times
    assert (binned <= total * 1.01 + 2).all()
    assert binned[-LONGEST_KEPT // 2 :].tolist() == total[-LONGEST_KEPT // 2 :].tolist()
