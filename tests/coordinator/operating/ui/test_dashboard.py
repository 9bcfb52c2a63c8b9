"""Every page of the dashboard, by requests in process, on a server in memory."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import fakeredis
import pytest
from starlette.testclient import TestClient

from coordinator.operating.ui.dashboard import PART_HEADER
from coordinator.serving.guard import HEADERS
from coordinator.serving.http_server import server_of
from state.redis_admin.topology_reader import TopologyReader
from tests.conftest import Backend
from tests.support.dashboard.opened import opened
from tests.support.dashboard.stored import FIGURES, MARKUP, NOW, failed_story, store_all, store_topology, story
from tests.support.stores.builders import dump

PAGES = (
    "/",
    *(f"/topologies/{name}" for name in ("words", "orders", "ledger", "clicks", "untold", "odd")),
    *(f"/topologies/words/transactions{which}" for which in ("", "?show=failed", "?before=20", "/17", "/42", "/99")),
    *(f"/topologies/orders/{part}" for part in ("transactions", "dead-letters", "quarantine")),
    *("/topologies/words/dead-letters", "/topologies/words/quarantine", "/topologies/odd/transactions"),
    *("/topologies/untold/transactions", "/topologies/untold/transactions/42"),
)
LOST = {
    **{f"/topologies/gone{rest}": 404 for rest in ("", "/transactions", "/transactions/1", "/dead-letters")},
    **{f"/topologies/words/transactions{which}": 404 for which in ("/0", "/x", f"/{'9' * 5_000}", "?show=nothing")},
    **dict.fromkeys(("/topologies/gone/quarantine", "/topologies/words/transactions/find?txid=no"), 404),
    **dict.fromkeys(("/topologies/a%20b", "/nothing", "/static/../dashboard.py"), 404),
    "/topologies/broken": 502,
}
VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """A page taken apart: its tags are balanced, and nothing in it came from a value."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.headings: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        given = dict(attrs)
        assert not [name for name in given if name.startswith("on") or name == "style"]
        if tag in ("h1", "h2", "h3"):
            self.headings.append(tag)
        self.ids += [str(given["id"])] if given.get("id") else []
        self.links += [str(given[name]) for name in ("href", "src", "action") if given.get(name)]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def client() -> Iterator[fakeredis.FakeRedis]:
    with fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,))) as made:
        yield made


@pytest.fixture
def browser(client: fakeredis.FakeRedis) -> Iterator[TestClient]:
    store_all(client)
    with opened(client) as made:
        yield made


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_its_links_stay_here_and_foreign_text_is_never_markup(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 200
    assert "redis://cache:6379" in answer.text, "every page names the server"
    page = Page(answer.text)
    assert page.headings[0] == "h1"
    assert page.headings.count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    assert [link for link in page.links if not link.startswith(("/", "#"))] == []
    assert "<script>" not in answer.text, "our own script has an address"
    assert "alert('1')" not in answer.text
    assert "\x1b" not in answer.text


def test_markup_in_an_error_shows_as_itself(browser: TestClient) -> None:
    assert "disk full &lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\\x1b[2J" in browser.get("/topologies/ledger").text
    answer = browser.get("/topologies/words/transactions", params={"show": MARKUP})
    assert answer.status_code == 404
    assert "<script>" not in answer.text


@pytest.mark.parametrize(("path", "status"), LOST.items(), ids=[path[:60] for path in LOST])
def test_what_is_not_there_is_said_on_a_page(browser: TestClient, path: str, status: int) -> None:
    answer = browser.get(path)
    assert answer.status_code == status
    assert Page(answer.text).headings[:1] in (["h1"], [])
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "path", [*PAGES, *LOST, "/static/style.css", "/static/live.js", "/static/icon.svg"], ids=lambda path: path[:60]
)
def test_every_answer_has_the_headers_that_keep_others_out(browser: TestClient, path: str) -> None:
    headers = browser.get(path).headers
    assert {name: headers.get(name) for name in HEADERS} == HEADERS


def test_all_pages_are_reached_from_the_first_one(browser: TestClient) -> None:
    seen, todo = set[str](), ["/"]
    while todo:
        path = todo.pop()
        if path not in seen and not path.startswith("#"):
            seen.add(path)
            answer = browser.get(path)
            assert answer.status_code == 200, path
            if answer.headers["content-type"].startswith("text/html"):
                found = (link for link in Page(answer.text).links if not link.endswith("/find"))
                todo += [link for link in found if link in PAGES or not re.search(r"/transactions/\d+$", link)]
    assert {path for path in PAGES if "?" not in path and not path.endswith("/99")} <= seen


@pytest.mark.parametrize("path", [path for path in PAGES if "?" not in path])
def test_the_script_is_given_the_main_part_alone(browser: TestClient, path: str) -> None:
    part = browser.get(path, headers={PART_HEADER: "live"}).text
    whole = browser.get(path).text
    main = re.compile(r"<main.*</main>", re.DOTALL)
    assert main.search(part)[0] == main.search(whole)[0]  # type: ignore[index]
    assert "<header" not in part
    assert "<title>" in part


def test_looking_changes_nothing(client: fakeredis.FakeRedis, browser: TestClient) -> None:
    before = dump(client)
    for path in (*PAGES, *LOST):
        browser.get(path)
    assert dump(client) == before


def test_what_scrolls_sideways_has_a_shade_where_there_is_more_and_figures_fill_their_rows(browser: TestClient) -> None:
    style = browser.get("/static/style.css").text
    rules = dict(re.findall(r"^(\.(?:scroll|figures|figures div)) \{(.*?)\}", style, re.DOTALL | re.MULTILINE))
    assert re.findall(r"(left|right) / \d+px 100% (local|scroll)", rules[".scroll"]) == [
        *(("left", "local"), ("right", "local")),
        *(("left", "scroll"), ("right", "scroll")),
    ]
    assert ("flex-wrap: wrap" in rules[".figures"], "flex: 1 0" in rules[".figures div"]) == (True, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/topologies/words", "/static/style.css", "/nothing"])
def test_only_reading_requests_are_answered(browser: TestClient, method: str, path: str) -> None:
    answer = browser.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_has_no_body(browser: TestClient) -> None:
    answer = browser.head("/")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("localhost:7480", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("LOCALHOST", 200)),
        *(("evil.example", 421), ("localhost.evil.example", 421), ("", 421)),
        *(("localhost:80@evil.example", 421), ("evil.example@localhost", 421), ("localhost:port", 421)),
        *(("[::1]evil.example", 421), ("[::1]:80@evil.example", 421), ("[::1", 421), ("LOCALHOST:80", 200)),
        *(("localhost.", 421), ("localhost/x", 421), ("localhost:80:80", 421)),
    ],
)
def test_a_name_that_others_gave_this_address_is_not_answered(browser: TestClient, host: str, status: int) -> None:
    assert browser.get("/", headers={"host": host}).status_code == status


def test_a_dashboard_for_others_answers_to_any_name(client: fakeredis.FakeRedis) -> None:
    with opened(client, names=None) as browser:
        assert browser.get("/", headers={"host": "figures.example"}).status_code == 200


def test_a_transaction_is_found_by_its_number(browser: TestClient) -> None:
    answer = browser.get("/topologies/words/transactions/find?txid=1,7")
    assert (answer.status_code, answer.headers["location"]) == (303, "/topologies/words/transactions/17")


def test_rates_appear_at_the_second_look(client: fakeredis.FakeRedis) -> None:
    store_topology(client, "words")
    with opened(client) as browser:
        assert "40.0 k tuples\n" in browser.get("/topologies/words").text
        components = {
            name: replace(done, tuples_in=done.tuples_in + 2_468) for name, done in FIGURES.components.items()
        }
        store_topology(client, "words", figures=replace(FIGURES, at=NOW + 2, components=components))
        assert "1,234 tuples/s\n" in browser.get("/topologies/words").text


@pytest.mark.redis
def test_ten_thousand_transactions_are_read_page_by_page(redis_backend: Backend) -> None:
    client = redis_backend.client()
    stories = {txid: story(txid) for txid in range(1, 10_001)} | {5: failed_story(5), 7_777: failed_story(7_777)}
    store_topology(client, "words", committed=10_000, stories=stories, history=range(1, 10_001))
    with opened(client) as browser:
        newest = browser.get("/topologies/words/transactions").text
        assert len(newest) < 60_000
        assert newest.count("data-key=") == 50
        assert ">10,000</a>" in newest
        assert ">9,950</a>" not in newest
        assert "?before=9951" in newest
        failed = browser.get("/topologies/words/transactions?show=failed").text
        assert re.findall(r'data-key="(\d+)"', failed) == ["7777", "5"]
        last = browser.get("/topologies/words/transactions?before=51").text
        assert last.count("data-key=") == 50
        assert "Older" not in last


def test_an_empty_server_says_how_to_begin_and_hides_secrets_in_an_error(client: fakeredis.FakeRedis) -> None:
    with opened(client, hide=lambda text: text.replace("gone", "…")) as browser:
        assert "No topology is stored on this server" in browser.get("/").text
        answer = browser.get("/topologies/gone")
        assert "topology &#39;…&#39; is not stored" in answer.text


def test_a_server_that_is_away_is_said_and_shown_again_when_it_is_back(client: fakeredis.FakeRedis) -> None:
    store_all(client)
    server = client.connection_pool.connection_kwargs["server"]
    with opened(client) as browser:
        assert browser.get("/topologies/words").status_code == 200
        server.connected = False
        for path in ("/", "/topologies/words", "/topologies/words/transactions/17"):
            answer = browser.get(path, headers={PART_HEADER: "live"})
            assert answer.status_code == 503
            assert "The server does not answer" in answer.text
        server.connected = True
        assert browser.get("/topologies/words").status_code == 200


def test_an_error_of_our_own_is_answered_with_the_headers_too(client: fakeredis.FakeRedis, monkeypatch) -> None:
    def broken(_self: TopologyReader) -> None:
        raise ZeroDivisionError("a bug, with a secret in its text")

    monkeypatch.setattr(TopologyReader, "topologies", broken)
    app = opened(client).app
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as browser:
        answer = browser.get("/")
    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


def test_what_the_system_has_no_descriptors_for_is_said_in_a_line_and_no_traceback(caplog):
    async def starved(scope, receive, send):
        raise lacking

    lacking = OSError(errno.EMFILE, "Too many open files")
    app: Any = server_of(starved).config.app
    assert TestClient(app).get("/").status_code == 503
    assert [(each.message, each.exc_info) for each in caplog.records][-1] == (
        "a connection was not served: Too many open files",
        None,
    )
