"""Lines of Loki as the daemon takes them: into a real store, page by page, each once over restarts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from advisor.domain.evidence import Window
from advisor.owners import Owners
from advisor.service.remembered_logs import RememberedLogs, remember
from advisor.store import Store
from tests.unit.sources.request_log.loki_server import Loki, serving
from tests.unit.sources.request_log.test_loki import DELAY, T0, logged, options, prompts

OWNERS = Owners.of({}, {}, sure=True, since=T0)
WINDOW = Window(T0, T0 + 3600)


def test_lines_of_loki_are_remembered_once(tmp_path: Path) -> None:
    path = tmp_path / "advisor.db"
    loki = Loki([logged(place, place // 3, "abc"[place % 3]) for place in range(1, 8)])
    with serving(loki) as url:
        asked = options(url, page_lines=4)
        with closing(Store.open(path)) as store:
            remember(store, asked, OWNERS, T0 + DELAY + 11)
        loki.lines += [logged(place, 20) for place in range(8, 11)]
        with closing(Store.open(path)) as store:
            remember(store, asked, OWNERS, T0 + DELAY + 30)
            state, strangers = remember(store, asked, OWNERS, T0 + DELAY + 30)
            reading = RememberedLogs(store, OWNERS)(asked, WINDOW, OWNERS)
    assert (state.status, state.detail, strangers) == ("ok", "0 requests in Loki", {})
    assert prompts(reading) == dict.fromkeys(range(1, 11), 1)
    assert reading.logs["m"].source == "request log"
