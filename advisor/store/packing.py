"""Arrays as bytes: small, of a stated version, and safe to read from anybody."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

VERSION = 1
_MAX_BYTES = 1 << 30
_KINDS = frozenset({"<u1", "|u1", "<u2", "<u4", "<u8", "<i8", "<f4", "<f8"})

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False, slots=True)
class Packed:
    """What was packed."""

    values: Mapping[str, Any]
    arrays: Arrays


def pack(values: Mapping[str, object], arrays: Arrays) -> bytes:
    """Values that JSON can hold, and one-dimensional arrays. Ascending whole numbers cost least: their steps are kept.

    A header line of JSON says what follows: version, values, and of each array its name, kind, length and whether
    it is steps. Everything is deflated.
    """
    parts, described = [], []
    for name, array in arrays.items():
        steps = array.dtype.kind == "i" and array.size > 1 and bool((np.diff(array) >= 0).all()) and bool(array[0] >= 0)
        compact = _compact(np.diff(array, prepend=0) if steps else array)
        parts.append(compact.tobytes())
        described.append([name, compact.dtype.str, int(compact.size), steps])
    header = json.dumps({"version": VERSION, "values": values, "arrays": described}).encode()
    return zlib.compress(b"\n".join([header, b"".join(parts)]), 6)


def unpack(body: bytes) -> Packed:
    """What `pack` was given; whole numbers come back as int64. Raises ValueError for anything else."""
    try:
        data = zlib.decompressobj().decompress(body, _MAX_BYTES)
        header, _, rest = data.partition(b"\n")
        return _described(json.loads(header), rest)
    except (zlib.error, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"not packed arrays: {problem}") from problem


def _described(header: Mapping[str, Any], data: bytes) -> Packed:
    if header["version"] != VERSION:
        raise ValueError(f"packed by version {header['version']!r}")
    arrays, place = {}, 0
    for name, kind, size, steps in header["arrays"]:
        if kind not in _KINDS:
            raise ValueError(f"an array of kind {kind!r}")
        array = np.frombuffer(data, kind, size, place)
        place += array.nbytes
        arrays[name] = _restored(array, steps=steps)
    return Packed(header["values"], arrays)


def _compact(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind != "i":
        return array.astype(array.dtype.newbyteorder("<"))
    if array.size and array.min() < 0:
        return array.astype("<i8")
    return array.astype(np.min_scalar_type(int(array.max()) if array.size else 0).newbyteorder("<"))


def _restored(array: npt.NDArray[Any], *, steps: bool) -> npt.NDArray[Any]:
    if array.dtype.kind == "f":
        return array.copy()
    whole = array.astype(np.int64)
    return np.cumsum(whole) if steps else whole
