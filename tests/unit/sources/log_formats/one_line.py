"""A single line read by a format."""

from __future__ import annotations

from collections import Counter

from advisor.sources.log_formats import LogFormat, Row

IMPOSSIBLE: tuple[dict[str, int], dict[str, int]] = ({"with a missing or impossible value": 1}, {})


def read_one(written: LogFormat, line: bytes) -> Row:
    """The only request of a line."""
    columns = written.read(line + b"\n", Counter(), Counter())
    assert len(columns) == 1
    return Row(*(getattr(columns, name)[0] for name in Row.__struct_fields__))


def told(written: LogFormat, line: bytes) -> tuple[dict[str, int], dict[str, int]]:
    """What is counted as bad and as unused of a line that has no request."""
    bad: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    assert len(written.read(line + b"\n", bad, unused)) == 0
    return dict(bad), dict(unused)
