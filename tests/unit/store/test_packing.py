"""Bytes that come back as they were, and bytes that somebody else wrote."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.store.packing import pack, unpack

WHOLE = st.lists(st.integers(-(2**62), 2**62), max_size=50)


@given(WHOLE, st.lists(st.floats(), max_size=20))
def test_arrays_come_back(whole: list[int], real: list[float]) -> None:
    arrays = {
        "whole": np.array(whole, np.int64),
        "sorted": np.array(sorted(map(abs, whole)), np.int64),
        "real": np.array(real, np.float64),
    }
    packed = unpack(pack({"note": "\u00fc"}, arrays))
    assert packed.values == {"note": "\u00fc"}
    for name, array in arrays.items():
        assert packed.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(packed.arrays[name], array)


def test_small_numbers_take_little_room() -> None:
    # 10,000 ascending lengths with steps of 1 are one byte each before deflation, which finds them all equal.
    assert len(pack({}, {"lengths": np.arange(10_000)})) < 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x80\x04",
        zlib.compress(b""),
        zlib.compress(b"[]"),
        zlib.compress(json.dumps({"version": 2, "values": {}, "arrays": []}).encode()),
        zlib.compress(
            json.dumps({"version": 1, "values": {}, "arrays": [["a", "|O", 1, False]]}).encode() + b"\n12345678"
        ),
        zlib.compress(
            json.dumps({"version": 1, "values": {}, "arrays": [["a", "<u4", 9, False]]}).encode() + b"\n1234"
        ),
        zlib.compress(json.dumps({"version": 1, "arrays": []}).encode()),
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not packed arrays"):
        unpack(body)
