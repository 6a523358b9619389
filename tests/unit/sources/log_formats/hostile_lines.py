"""Lines that somebody damaged, by a seed: cut, spliced, of wrong types, with huge numbers, deep, and full of bytes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_WRONG = (
    *(b"null", b"true", b"{}", b"[]", b'""', b'"x"', b"-1", b"0", b"1e999", b"-1e308", b"NaN", b"1.5", b"1" * 400),
    *(b"9223372036854775808", b"18446744073709551616", b"99999999", b"1e18", b"[1, [2, {}]]", b'{"a": {"b": 1}}'),
)
_NOISE = (
    b"\x00",
    b"\xff\xfe",
    b"\x1b[31m",
    b"\x1b]0;x\x07",
    b"\r",
    b"\xe2\x80\xae",
    b"\\ud800",
    b"'",
    b'"',
    b"{",
    b"}}",
    b"\\",
)


def hostile_lines(good: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """So many lines, none empty and each without its end, made from good ones."""
    chance = random.Random(seed)
    for _ in range(count):
        line = chance.choice(good)
        for _ in range(chance.randint(0, 3)):
            line = chance.choice(_DAMAGES)(line, chance)
        yield line.replace(b"\n", b" ").strip() or b"x"


def _cut(line: bytes, chance: random.Random) -> bytes:
    return line[: chance.randint(0, len(line))]


def _without_beginning(line: bytes, chance: random.Random) -> bytes:
    return line[chance.randint(0, len(line)) :]


def _spliced(line: bytes, chance: random.Random) -> bytes:
    return line[: chance.randint(0, len(line))] + line[chance.randint(0, len(line)) :]


def _other_value(line: bytes, chance: random.Random) -> bytes:
    places = list(_NUMBER.finditer(line))
    if not places:
        return line
    place = chance.choice(places)
    return line[: place.start()] + chance.choice(_WRONG) + line[place.end() :]


def _noise(line: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(line))
    return line[:place] + chance.choice(_NOISE) * chance.randint(1, 3) + line[place:]


def _random_bytes(line: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(line))
    return line[:place] + chance.randbytes(chance.randint(1, 20)) + line[place:]


def _nested(line: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(line))
    return line[:place] + chance.choice([b"[", b'{"a":', b"("]) * chance.choice([10, 2000]) + line[place:]


_DAMAGES = (
    _cut,
    _without_beginning,
    _spliced,
    _other_value,
    _other_value,
    _other_value,
    _noise,
    _random_bytes,
    _nested,
)
