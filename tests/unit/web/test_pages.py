from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from advisor.domain.report import DeploymentReport
from advisor.web import pages
from advisor.web.api import find
from advisor.web.standalone import render_html
from advisor.web.state import Health
from tests.unit.outlets import samples
from tests.unit.web import fleets

READY = Health(ready=True)
VOID = {"meta", "link", "img", "br", "hr"}
KNOWN = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "body",
        "header",
        "nav",
        "main",
        "footer",
        "section",
        "article",
    ),
    *("a", "p", "h1", "h2", "h3", "h4", "span", "strong", "code", "ul", "li", "dl", "dt", "dd", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "div", "figure", "figcaption"),
    *("svg", "desc", "text", "line", "rect", "circle", "polyline"),
}


class Outline(HTMLParser):
    """The elements of a page, checked to be known and closed in order, with their ids, links and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KNOWN
        given = dict(attrs)
        assert not any(name.startswith("on") for name in given)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if tag == "a" else []
        self.headings += [tag] if tag in {"h1", "h2", "h3", "h4"} else []
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        assert tag in KNOWN

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += " "

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data.replace("\N{NO-BREAK SPACE}", " ")


def words(text: str) -> str:
    return " ".join(text.split())


def page_of(deployment: DeploymentReport) -> str:
    name = deployment.evidence.name
    return pages.deployment(samples.report(deployment), deployment, fleets.past(name, fleets.records(name)), READY)


def test_the_fleet_is_one_line_each_the_most_urgent_first() -> None:
    text = words(Outline(pages.fleet(fleets.fleet(), READY)).text)
    assert "2 to act on, 1 to improve, 2 cannot be told, 1 fine, 1 without data" in text
    names = ("chat-new", "code-8b", "chat-70b", "eval-405b", "vision-90b", "rag-32b", "ghost")
    places = [text.index(f"{name} ") for name in names]
    assert places == sorted(places)
    assert "chat-70b x2 vLLM 0.32.0 ^ improve --max-num-seqs 16 → 24 requests wait behind the cap 17 % of" in text
    assert "prometheus: http://prom:9090 answered 401: set prometheus.bearer_token_file" in text


def test_a_fleet_without_deployments_says_so() -> None:
    page = Outline(pages.fleet(samples.report(), READY))
    assert "no deployments" in page.text
    assert "Why" not in page.text


def test_a_deployment_tells_what_to_do_why_and_how_to_undo() -> None:
    text = words(Outline(page_of(fleets.drawn(samples.throttled()))).text)
    for told in (
        "raise max_num_seqs from 16 to 24 --max-num-seqs 24 why requests wait behind the cap",
        "expect TTFT p99 1.84 s → 0.5-0.7 s ITL mean 14.3 ms → 16.1-17.2 ms",
        "verify restart one replica with it first",
        "undo --max-num-seqs 16 confidence high: R2 0.94",
        "Next, after this one lower max_model_len from 131,072 to 8,192",
        "memory, guaranteed 71 587,008 / 8,192 (reported pool / recommended limit)",
        "latency at least 16 never seen failing",
        "total 1,412 2,820 4,259 6,301 6,190-6,480",
        "capacity/replicas-short fires when demand_over_capacity > 0.9; it is 0.86x",
        "slo_attainment_tpot no TPOT edge lies at 40 ms",
        "time_at_sequence_cap (engine, scrape) pairs at the sequence cap while requests wait 17 % 80,640 measured: ",
        "max_num_seqs is 16 by server info, which is believed; config says 32",
        "verified TTFT p99 6.1 s → 2.1-3.2 s predicted, 2.8 s measured: held",
        "snoozed until Tue 08 Dec 2026 22:13 UTC launch",
    ):
        assert told in text


def test_without_advice_the_reason_stands_in_its_place() -> None:
    assert "cannot tell : the p99.9 lies above" in words(Outline(page_of(samples.cannot_tell())).text)
    assert "none : within its SLOs; demand-limited" in words(Outline(page_of(samples.healthy())).text)
    assert "no data : nothing was seen or given" in words(Outline(page_of(samples.no_data())).text)


@pytest.mark.parametrize("name", fleets.HOSTILE_NAMES)
def test_a_hostile_name_is_text_wherever_it_stands(name: str) -> None:
    deployment = fleets.drawn(samples.hostile(name))
    for page in (
        page_of(deployment),
        pages.fleet(samples.report(deployment), READY),
        pages.history(fleets.records(name), (), READY),
        pages.message(404, name),
        render_html(samples.report(deployment)),
    ):
        outline = Outline(page)
        assert len(outline.ids) == len(set(outline.ids))
        assert all(link[0] in "/#" and not link.startswith("//") for link in outline.links)
        assert page.isascii() or not set(page) & set("\u202e\x1b\x07\ud800\r")


def test_headings_never_skip_a_level() -> None:
    report = fleets.fleet()
    everything = [page_of(d) for d in report.deployments]
    everything += [render_html(report), pages.fleet(report, READY), pages.history(fleets.records(), (), READY)]
    for page in everything:
        levels = [int(heading[1]) for heading in Outline(page).headings]
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))


def test_addresses_are_percent_encoded() -> None:
    assert pages.address("a/b?c#d%2Fe é") == "/deployments/a%2Fb%3Fc%23d%252Fe%20%C3%A9"
    assert pages.address("half \ud800 pair") == "/deployments/half%20%5Cud800%20pair"
    assert pages.address("x" * 5_000) == "/deployments/" + "x" * 5_000


def test_a_deployment_is_found_under_the_name_that_can_be_sent() -> None:
    state = fleets.Known(fleets.hostile_fleet())
    found = find(state, fleets.hostile_fleet(), "half \\ud800 pair")
    assert found is not None
    assert found.evidence.name == "half \ud800 pair"
    assert find(state, fleets.hostile_fleet(), "half") is None


def test_stale_advice_carries_a_warning() -> None:
    page = pages.fleet(fleets.fleet(), Health(ready=False, reason="the last evaluation is 3 h old"))
    assert "Do not rely on this now: the last evaluation is 3 h old" in words(Outline(page).text)
    assert "Do not rely" not in pages.fleet(fleets.fleet(), READY)


def test_the_file_stands_alone() -> None:
    report = fleets.fleet()
    outline = Outline(render_html(report))
    assert {link for link in outline.links if link != "#main"} == {f"#d{place}" for place in range(1, 8)}
    assert {f"d{place}" for place in range(1, 8)} <= set(outline.ids)
    assert f"'sha256-{pages.style_hash()}'" in render_html(report)


def test_advice_that_was_put_aside_is_told_apart() -> None:
    deployment = samples.throttled()
    first, second = deployment.judgement.advice
    muted = replace(deployment.judgement, status="ok", advice=(replace(first, state="snoozed"), second))
    text = words(Outline(page_of(replace(deployment, judgement=muted))).text)
    assert "Advice none : The token budget hurts neither" in text
    assert "Put aside or being observed raise max_num_seqs from 16 to 24 snoozed" in text
