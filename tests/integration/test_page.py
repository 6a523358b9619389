"""The page in a real Chromium: both themes, desktop and phone, every link, and names that would like to be more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.integration.browser import Browser, browsing, program
from tests.unit.web.fleets import HOSTILE_NAMES, Known, fleet, hostile_fleet, records, served

pytestmark = pytest.mark.integration

VIEWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
PAGES = ("/", "/deployments/chat-70b", "/deployments/chat-new", "/deployments/eval-405b", "/history")
CONTRAST = """
(() => {
  const channel = v => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const opaque = color => parts(color).length < 4 || parts(color)[3] > 0;
  const ground = e => opaque(getComputedStyle(e).backgroundColor) || !e.parentElement
    ? getComputedStyle(e).backgroundColor : ground(e.parentElement);
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const ink = e => e.ownerSVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color;
  return [...document.querySelectorAll('main *, header a, footer p')]
    .filter(e => !['title', 'desc'].includes(e.tagName))
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .map(e => [ratio(light(parts(ink(e))), light(parts(ground(e)))), e.textContent.slice(0, 40)])
    .sort((x, y) => x[0] - y[0])[0];
})()
"""
"""The least contrast of a text with what is behind it, as WCAG 2 computes it, and the text."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = program()
    if chromium is None:
        absent("no chromium is installed")
    else:
        with browsing(chromium) as browser:
            yield browser


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Known()) as url:
        yield url


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    past = [record for name in HOSTILE_NAMES for record in records(name)]
    with served(Known(hostile_fleet(), past_records=past)) as url:
        yield url


def kept(browser: Browser, name: str) -> bytes:
    """A screenshot; also kept in the directory that SCREENSHOTS names, to be looked at."""
    picture = browser.screenshot()
    if directory := os.environ.get("SCREENSHOTS"):
        Path(directory, f"{name}.png").write_bytes(picture)
    return picture


@pytest.mark.parametrize(("width", "theme"), VIEWS)
def test_pages_fit_and_can_be_read(browser: Browser, url: str, width: int, theme: str) -> None:
    browser.view(width, theme)
    for path in PAGES:
        browser.open(url + path)
        assert browser.asked("document.documentElement.scrollWidth") <= width, path
        contrast, text = browser.asked(CONTRAST)
        assert contrast >= 4.5, (path, text)
        kept(browser, f"{path.strip('/').replace('/', '-') or 'fleet'}-{width}-{theme}")
    assert browser.complaints == []


def test_the_theme_follows_the_reader(browser: Browser, url: str) -> None:
    grounds = []
    for theme in ("light", "dark"):
        browser.view(800, theme)
        browser.open(url)
        grounds.append(browser.asked("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(20, 24, 29)"]


def test_charts_are_drawn_and_described(browser: Browser, url: str) -> None:
    browser.view(390, "light")
    browser.open(f"{url}/deployments/chat-70b")
    charts = browser.asked(
        "[...document.querySelectorAll('.charts svg')].map(s => [s.clientWidth, s.querySelector('desc').textContent])"
    )
    assert [described.split(";")[0] for _, described in charts] == [
        "412,310 requests, prompt and output together, from 20 tokens",
        "16 levels of concurrency, up to 16",
    ]
    assert all(300 <= width <= 390 for width, _ in charts)
    # letters on a phone are not smaller than 9 CSS pixels
    assert (
        browser.asked(
            "Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height))"
        )
        >= 9
    )


def test_the_keyboard_reaches_the_content_first(browser: Browser, url: str) -> None:
    browser.view(1280, "light")
    browser.open(url)
    assert browser.asked("document.querySelector('a').getAttribute('href')") == "#main"
    assert browser.asked("[...document.querySelectorAll('[tabindex]')].every(e => e.tabIndex === 0)")


@pytest.mark.parametrize("server", ["url", "hostile"])
def test_every_link_of_the_browser_s_own_reading_is_a_page(
    browser: Browser, server: str, request: pytest.FixtureRequest
) -> None:
    root = request.getfixturevalue(server)
    browser.view(1280, "light")
    browser.open(root)
    names = browser.asked("[...document.querySelectorAll('tbody a')].map(a => [a.href, a.textContent])")
    assert len(names) == len(fleet().deployments if server == "url" else HOSTILE_NAMES)
    for address, name in names:
        browser.open(address)
        heading = browser.asked("document.querySelector('h1').textContent")
        assert heading == name or "…" in name
        assert browser.asked("document.title").endswith(" · Serving Advisor")


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_names_are_text(browser: Browser, hostile: str, width: int) -> None:
    browser.view(width, "light")
    paths = ["/", "/history", *browser_links(browser, hostile)]
    for path in paths:
        browser.open(hostile + path)
        assert browser.asked("document.querySelectorAll('script, img, iframe, object, form, base').length") == 0
        assert browser.asked("document.querySelectorAll('style').length") == 1
        assert browser.asked("document.documentElement.scrollWidth") <= width, path
        assert "owned" not in browser.asked("document.title").replace("document.title='owned'", "")
    kept(browser, f"hostile-{width}")
    assert browser.complaints == []


def browser_links(browser: Browser, root: str) -> list[str]:
    """The paths of the deployments' pages, as the browser resolves them."""
    browser.open(root)
    found: list[str] = browser.asked("[...document.querySelectorAll('tbody a')].map(a => a.pathname)")
    return found


def test_nothing_is_asked_of_another_host(browser: Browser, url: str) -> None:
    browser.view(1280, "light")
    browser.open(f"{url}/deployments/chat-70b")
    assert browser.asked("performance.getEntriesByType('resource').map(e => e.name)") == []


def test_a_script_in_the_page_would_not_run(browser: Browser, url: str) -> None:
    browser.open(url)
    planted = """<img src="/x" onerror="document.title='owned'">"""
    browser.asked(f"document.body.insertAdjacentHTML('beforeend', `{planted}`)")
    browser.asked("new Promise(done => setTimeout(done, 300))")
    assert browser.asked("document.title") == "Fleet · Serving Advisor"
    assert any("Content Security Policy" in complaint for complaint in browser.complaints)
    browser.complaints.clear()
