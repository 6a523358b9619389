"""`python -m tests.accuracy [DATA]`: measure the estimates, and print what they promise beside what they reach.

DATA is a folder with traces/*.csv.gz, kv_pool/*.csv and sweeps/; each part may be missing. It measures and does not
judge: the exit code is 0 whatever is missed. `test_accuracy.py` is what fails.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.accuracy import kv_pool, lengths, simulated, sweeps
from tests.accuracy.table import Row, render
from tests.prometheus_server import PrometheusError


def measure(data: Path | None) -> list[Row]:
    """Every row, those on data first."""
    return [*lengths.traced(data), *kv_pool.rows(data), *sweeps.rows(data), *lengths.generated(), *simulated.rows(data)]


def main(arguments: Sequence[str]) -> None:
    """Print the table. Exits with one line where DATA is no folder or no Prometheus can be had."""
    data = Path(arguments[0]) if arguments else None
    if data is not None and not data.is_dir():
        sys.exit(f"{data}: no such folder: name one that holds traces, kv_pool or sweeps, or leave DATA out")
    try:
        sys.stdout.write(render(measure(data)) + "\n")
    except PrometheusError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
