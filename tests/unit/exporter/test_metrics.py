"""What Prometheus is given."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from advisor.domain.exported import EDGES, FAMILIES, LengthCounts
from advisor.domain.report import SourceState
from advisor.exporter.app import create_app
from advisor.exporter.counting import counts_of
from advisor.exporter.follower import Shown
from advisor.exporter.metrics import Metrics
from advisor.web.options import WebOptions
from advisor.web.server import serve
from tests.conftest import absent
from tests.unit.estimates.evidence import joint, log

HOSTILE = 'evil"}{<!channel>\\'
COUNTS = counts_of(log(joint((1000, 24, 5), (8000, 300, 2)), refused=3, refused_needs=[9000], declared=[1500]))
SHOWN = Shown({"m": COUNTS, HOSTILE: LengthCounts.nothing()}, 12.5, SourceState("request log", "failed", "gone"))

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def series(shown: Shown) -> Series:
    families = text_string_to_metric_families(Metrics(lambda: shown).text().decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


@pytest.fixture(scope="module")
def exposed() -> Series:
    return series(SHOWN)


def of(exposed: Series, name: str, **labels: str) -> float:
    return exposed[name, tuple(sorted(labels.items()))]


def test_a_histogram_is_cumulative_and_has_its_sum(exposed: Series) -> None:
    family = FAMILIES["total"]
    assert of(exposed, f"{family}_bucket", model="m", le="980.0") == 0
    assert of(exposed, f"{family}_bucket", model="m", le="1024.0") == 5
    assert of(exposed, f"{family}_bucket", model="m", le="+Inf") == of(exposed, f"{family}_count", model="m") == 7
    # 5 x 1,024 + 2 x 8,300
    assert of(exposed, f"{family}_sum", model="m") == 21_720
    assert of(exposed, "advisor_requests_total", model="m", outcome="refused_length") == 3
    assert of(exposed, "advisor_requests_total", model="m", outcome="served") == 7


def test_every_bucket_is_there_from_the_beginning(exposed: Series) -> None:
    names = [labels for name, labels in exposed if name == "advisor_request_refused_tokens_bucket"]
    assert len(names) == 2 * (EDGES.size + 1)
    assert of(exposed, "advisor_request_total_tokens_bucket", model=HOSTILE, le="1.0") == 0


def test_how_reading_goes(exposed: Series) -> None:
    assert of(exposed, "advisor_last_success_timestamp_seconds", stage="read") == 12.5
    assert of(exposed, "advisor_source_up", source="request log") == 0
    assert of(exposed, "process_resident_memory_bytes") > 1e6


def test_a_model_costs_as_many_series_as_the_documentation_says(exposed: Series) -> None:
    per_model = len(exposed) - len(series(Shown({"m": COUNTS}, 12.5, SHOWN.state)))
    assert per_model == pytest.approx(1370, abs=1)


def test_promtool_has_nothing_to_say() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        absent("promtool, of Debian's package prometheus")
    text = Metrics(lambda: SHOWN).text()
    checked = subprocess.run([str(promtool), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")


def test_it_is_served_packed_and_read_only() -> None:
    server = serve(create_app(Metrics(lambda: SHOWN).text), WebOptions(listen="127.0.0.1:0"))
    server.start()
    try:
        asked = urllib.request.Request(f"{server.url}/metrics", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            packed: bytes = answer.read()
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert b'advisor_request_total_tokens_bucket{le="1024.0",model="m"} 5.0' in gzip.decompress(packed)
        with urllib.request.urlopen(f"{server.url}/healthz", timeout=10) as answer:
            assert answer.read() == b"alive\n"
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(f"{server.url}/metrics", data=b"x", timeout=10)
    finally:
        server.stop()
