"""`python -m tests.recording FOLDER`: record the demo's deployment into FOLDER, compressed, byte for byte the same."""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

from tests.recording.deployment import record
from tests.recording.situations import DEMO, RECORDED_AT


def compress(source: Path, target: Path) -> None:
    """Write `source` to `target` with gzip; no file name and no time inside, so that equal input gives equal output."""
    target.write_bytes(gzip.compress(source.read_bytes(), compresslevel=9, mtime=0))


def main(folder: Path) -> None:
    """Replace the recorded files in `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        recording = record(DEMO, RECORDED_AT, Path(scratch))
        for source in (recording.metrics, recording.log):
            compress(source, folder / f"{source.name}.gz")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
