"""Counts of (prompt, output) pairs, exact as long as they are few enough, and never more than memory allows."""

from __future__ import annotations

import numpy as np

from advisor.domain.histogram import Ints, JointCounts

MOST_PAIRS = 1 << 20
LONGEST_KEPT = 1000
_STEP = 1.01


class Pairs:
    """16 bytes a distinct pair: one sorted array of both lengths in one number.

    Beyond 1,048,576 distinct pairs (16 MiB) both lengths of a pair are rounded up to the next of a geometric series
    with a ratio of 1.01: at most 1 % (or a token) too long, never too short. The 1,000 longest requests stay exact, and
    with them the p99.9 of a million.
    """

    def __init__(self, most: int = MOST_PAIRS) -> None:
        self._most = most
        self._keys: Ints = np.empty(0, np.int64)
        self._counts: Ints = np.empty(0, np.int64)

    def add(self, prompt: Ints, output: Ints, counts: Ints | None = None) -> None:
        """Add requests: one of each pair, else so many."""
        keys, place = np.unique(prompt << 32 | output, return_inverse=True)
        self._add(keys, np.bincount(place, counts, keys.size).astype(np.int64))
        if self._keys.size > self._most:
            self._coarsen()

    def joint(self) -> JointCounts:
        """The sum."""
        return JointCounts(self._keys >> 32, self._keys & 0xFFFFFFFF, self._counts)

    def _add(self, keys: Ints, counts: Ints) -> None:
        place = np.asarray(np.searchsorted(self._keys, keys))
        known = np.append(self._keys, -1)[place] == keys
        self._counts[place[known]] += counts[known]
        self._keys = np.insert(self._keys, place[~known], keys[~known])
        self._counts = np.insert(self._counts, place[~known], counts[~known])

    def _coarsen(self) -> None:
        prompt, output = self._keys >> 32, self._keys & 0xFFFFFFFF
        longest = np.zeros(prompt.size, np.bool_)
        longest[np.argpartition(prompt + output, -LONGEST_KEPT)[-LONGEST_KEPT:]] = True
        exact, counts = self._keys, self._counts
        binned = _rounded(prompt[~longest]) << 32 | _rounded(output[~longest])
        self._keys, place = np.unique(binned, return_inverse=True)
        self._counts = np.bincount(place, counts[~longest], self._keys.size).astype(np.int64)
        self._add(exact[longest], counts[longest])


def _rounded(lengths: Ints) -> Ints:
    """Up to the next whole number in 1.01^k; a number that is one stays, so that rounding again changes nothing."""
    grid = _grid()
    return np.asarray(grid[np.searchsorted(grid, np.minimum(lengths, grid[-1]))])


def _grid() -> Ints:
    longest = 1 << 31
    steps = np.arange(int(np.log(longest) / np.log(_STEP)) + 1)
    return np.unique(np.concatenate([[0], np.floor(_STEP**steps), [longest]]).astype(np.int64))
