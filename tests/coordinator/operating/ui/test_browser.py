"""The dashboard in a headless Chromium: size, keyboard, names and contrast, and a server that goes and returns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.conftest import redis_program, running_server
from tests.support.dashboard.browsing import axe_source, chromium, complaints, tab
from tests.support.dashboard.served import Served, served
from tests.support.dashboard.stored import FIGURES, samples, store_all, store_topology, story
from tests.support.stores.mortal_server import MortalServer

pytestmark = [pytest.mark.browser, pytest.mark.redis]

PAGES = {
    "topologies": "/",
    "topology": "/topologies/words",
    "ended": "/topologies/ledger",
    "silent": "/topologies/clicks",
    "untold": "/topologies/untold",
    "transactions": "/topologies/words/transactions",
    "transaction": "/topologies/words/transactions/17",
    "not cut": "/topologies/words/transactions/99",
    "dead letters": "/topologies/words/dead-letters",
    "quarantine": "/topologies/words/quarantine",
    "unknown": "/topologies/gone",
}
LOOKS = {"wide, light": (1280, "light"), "wide, dark": (1280, "dark"), "narrow, light": (360, "light")}
REACHABLE = "a[href], button:not([hidden]), input, summary, [tabindex='0']"
FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  const isSeen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  return [at.tagName, at.getAttribute('href') || at.id || at.getAttribute('aria-label') || at.textContent, isSeen,
          box.top >= 0 && box.left >= 0 && box.top < innerHeight];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def axe(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_source(tmp_path_factory.mktemp("axe"))


@pytest.fixture(scope="module")
def shown() -> Iterator[Served]:
    """A dashboard of one topology of every sort."""
    with running_server(redis_program()) as url, served(url) as dashboard:
        with redis.Redis.from_url(url) as client:
            store_all(client)
        yield dashboard


@contextmanager
def page_of(browser: Any, dashboard: Served, path: str, **options: Any) -> Iterator[Any]:
    """A page of a dashboard, opened."""
    with tab(browser, **options) as opened:
        opened.page.goto(dashboard.url + path)
        yield opened.page


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
def test_a_page_fits_and_has_names_and_contrast(browser, axe, shown, path, look) -> None:
    with tab(browser, width=look[0], scheme=look[1]) as opened:
        opened.page.goto(shown.url + path)
        width = opened.page.evaluate("document.documentElement.scrollWidth")
        assert width <= look[0], "it scrolls sideways"
        assert complaints(opened.page, axe) == []
        assert [each for each in opened.wrong if "404" not in each] == [], "the browser refuses something of ours"


def test_on_a_narrow_screen_no_tile_is_empty_and_a_graph_shows_that_there_is_more(browser: Any, shown: Served) -> None:
    with tab(browser, width=360) as opened:
        opened.page.goto(shown.url + PAGES["topology"])
        edges = "found => found.map(each => Math.round(each.getBoundingClientRect().right))"
        (whole,), tiles = (opened.page.locator(each).evaluate_all(edges) for each in (".figures", ".figures div"))
        assert abs(tiles[-1] - whole) <= 2
        style = "found => found.map(each => getComputedStyle(each).backgroundAttachment)"
        (attached,) = opened.page.locator(".scroll").evaluate_all(style)
        assert attached.startswith("local, local, scroll, scroll")


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser: Any, shown: Served, path: str) -> None:
    with page_of(browser, shown, path) as page:
        expected = page.locator(REACHABLE).evaluate_all("found => found.filter(each => each.checkVisibility()).length")
        stops = []
        for _ in range(expected):
            page.keyboard.press("Tab")
            stops.append(page.evaluate(FOCUSED))
        assert [stop[:2] for stop in stops if not stop[2]] == [], "no focus is seen on these"
        assert [stop[:2] for stop in stops if not stop[3]] == [], "these are off the screen"
        assert page.evaluate(
            f"[...document.querySelectorAll({REACHABLE!r})].filter(e => e.checkVisibility()).at(-1) "
            "=== document.activeElement"
        ), "the last one is reached after as many steps as there are stops"


def test_the_skip_link_leads_to_the_figures(browser: Any, shown: Served) -> None:
    with tab(browser) as opened:
        opened.page.goto(shown.url + PAGES["topology"])
        opened.page.keyboard.press("Tab")
        assert opened.page.evaluate("document.activeElement.className") == "skip"
        opened.page.keyboard.press("Enter")
        assert opened.page.evaluate("document.activeElement.id") == "main"


def test_without_javascript_everything_is_there(browser: Any, shown: Served) -> None:
    with tab(browser, java_script_enabled=False) as opened:
        opened.page.goto(shown.url + PAGES["topology"])
        assert opened.page.locator("svg.chart").count() == 8
        assert not opened.page.locator("#pause").is_visible()
        opened.page.goto(shown.url + PAGES["transactions"])
        opened.page.locator("#txid").fill("17")
        opened.page.locator("form button").click()
        assert opened.page.url.endswith("/transactions/17")


class TestWhatChanges:
    """Pages that are kept up to date."""

    @pytest.fixture
    def client(self) -> Iterator[redis.Redis]:
        with running_server(redis_program()) as url, redis.Redis.from_url(url) as made:
            store_topology(made, "words", stories={n: story(n) for n in range(1, 43)}, history=range(1, 43), letters=60)
            yield made

    @pytest.fixture
    def dashboard(self, client: redis.Redis) -> Iterator[Served]:
        with served(f"unix://{client.connection_pool.connection_kwargs['path']}") as opened:
            yield opened

    def test_figures_change_under_the_reader_and_focus_and_scroll_stay(self, browser, client, dashboard) -> None:
        with tab(browser, height=500) as opened:
            page = opened.page
            page.goto(dashboard.url + PAGES["transactions"])
            page.locator("a", has_text=re.compile("^40$")).focus()
            page.evaluate("scrollTo(0, 300)")
            store_topology(
                client, "words", committed=45, stories={n: story(n) for n in (43, 44, 45)}, history=[43, 44, 45]
            )
            client.hset("{words}:txbatch:control", "history_from", "1")
            page.locator("a", has_text=re.compile("^45$")).wait_for()
            assert page.evaluate("document.activeElement.textContent") == "40"
            assert page.locator("tbody tr").count() == 45
            assert abs(page.evaluate("scrollY") - 300) < 150, "the browser may keep what is read in its place"
            assert opened.wrong == []

    def test_open_details_and_typed_text_stay(self, browser: Any, client: redis.Redis, dashboard: Served) -> None:
        store_topology(client, "words", quarantined=1)
        with page_of(browser, dashboard, PAGES["quarantine"]) as page:
            page.locator("summary").click()
            store_topology(client, "words", quarantined=2)
            page.locator("#case-31").wait_for()
            assert page.locator("details[open]").count() == 1
            page.goto(dashboard.url + PAGES["transactions"])
            page.locator("#txid").fill("17")
            store_topology(client, "words", committed=43, stories={43: story(43)}, history=[43])
            page.locator("a", has_text=re.compile("^43$")).wait_for()
            assert page.locator("#txid").input_value() == "17"

    def test_a_paused_page_stays_as_it_is(self, browser: Any, client: redis.Redis, dashboard: Served) -> None:
        with page_of(browser, dashboard, PAGES["topology"]) as page:
            page.locator("#pause").click()
            store_topology(client, "words", figures=replace(FIGURES, lag_s=7.7))
            page.wait_for_timeout(5_000)  # twice the time after which it would look again
            assert page.get_by_text("7.7 s").count() == 0
            page.locator("#pause").click()
            page.get_by_text("7.7 s").first.wait_for()

    def test_a_dashboard_that_was_ended_is_said_and_its_page_continues(self, browser, client, dashboard) -> None:
        with page_of(browser, dashboard, PAGES["topology"]) as page:
            dashboard.stop()
            page.locator("#away", has_text="The dashboard does not answer since").wait_for()
            assert page.get_by_text("12.5 k").first.is_visible(), "the last figures stay"
            dashboard.start()
            page.locator("#away").wait_for(state="hidden")


def test_a_server_that_was_killed_is_said_and_its_figures_return(browser: Any, tmp_path: Path) -> None:
    server = MortalServer(redis_program(), "--appendonly", "yes")
    with server, served(server.url) as dashboard, tab(browser) as opened:
        with redis.Redis.from_url(server.url) as client:
            store_topology(client, "words", told=samples())
        page = opened.page
        page.goto(dashboard.url + PAGES["topology"])
        assert page.get_by_text("12.5 k").first.is_visible()
        server.kill()
        page.locator("#away", has_text="The server does not answer since").wait_for()
        assert page.get_by_text("12.5 k").first.is_visible(), "the last figures stay"
        page.screenshot(path=tmp_path / "away.png")
        with tab(browser) as late:
            late.page.goto(dashboard.url + PAGES["topology"])
            assert late.page.get_by_role("heading", name="The server does not answer").is_visible()
            server.start()
            late.page.get_by_role("heading", name="words").wait_for()
        page.locator("#away").wait_for(state="hidden")
        assert page.get_by_text("12.5 k").first.is_visible()
