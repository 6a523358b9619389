"""A file read as a whole, and never more of it than it may hold."""

from __future__ import annotations

from pathlib import Path

from advisor.domain.errors import SourceError


def read_bounded(file: Path, *, most: int, hint: str) -> bytes:
    """The bytes of a regular file of at most `most` bytes.

    Raises SourceError when there is no such file, when it cannot be read, or when it is larger; `hint` then says what
    to give instead.
    """
    try:
        if not file.is_file():
            raise SourceError(f"{file}: no such file; {hint}", permanent=True)
        with file.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise SourceError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL in the path
        raise SourceError(f"{str(file)[:200]!r}: no path; {hint}", permanent=True) from None
    if len(raw) > most:
        raise SourceError(f"{file}: larger than {most // 2**20} MiB; {hint}", permanent=True)
    return raw
