"""The dashboard as a Starlette application behind a guard: each path has a page, rendered from its view."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from coordinator.operating.ui.views.aside_views import PAGE, LettersView, QuarantineView, letters_view, quarantine_view
from coordinator.operating.ui.views.component_rows import FlowRates
from coordinator.operating.ui.views.topologies_view import heading_of, topologies_view
from coordinator.operating.ui.views.topology_view import TopologyView, topology_view
from coordinator.operating.ui.views.transaction_views import (
    TransactionsView,
    TransactionView,
    transaction_view,
    transactions_view,
)
from coordinator.operating.ui.views.words import Clock
from coordinator.serving.guard import LOOPBACK_NAMES, Guard
from state.errors import StateError, StateUnreachableError, TopologyError
from state.printable import message_of
from state.records.topology_overview import TopologyOverview
from state.records.transaction_story import StoryChoice
from state.redis_admin.topology_reader import TopologyReader

FOLDER = Path(__file__).parent
PART_HEADER = "X-Txbatch-Part"
"""Header sent by the script, which replaces only the main part of the page."""
POLL_MS = 2_000
TXID_DIGITS = 16


class Pages:
    """Answers requests; Starlette calls its methods on threads, one for each request.

    They read from the server one at a time, so that many readers are one client to it.

    Args:
        clock: seconds since the epoch.
        zone: time zone in which times are shown.
        hide: removes secrets from a text.
    """

    def __init__(
        self,
        reader: TopologyReader,
        *,
        clock: Callable[[], float],
        zone: tzinfo = UTC,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._reader, self._clock, self._zone, self._hide = reader, clock, zone, hide
        self._rates = FlowRates()
        self._mutex = threading.Lock()
        loader = FileSystemLoader(FOLDER / "templates")
        self._templates = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )

    def topologies(self, request: Request) -> Response:
        with self._mutex:
            view = topologies_view(self._reader.topologies(), self._now())
        return self._page(request, "topologies.html", view=view)

    def topology(self, request: Request) -> Response:
        def view(seen: TopologyOverview) -> TopologyView:
            rates = {} if seen.pulse is None else self._rates.of(seen.topology_id, seen.pulse)
            return topology_view(seen, rates, self._now())

        return self._about(request, "topology.html", view, with_samples=True)

    def transactions(self, request: Request) -> Response:
        choice, before = _choice(request), _number(request, "before")

        def view(seen: TopologyOverview) -> TransactionsView | None:
            page, now = self._reader.transactions(seen.topology_id, before=before, choice=choice), self._now()
            if page is None:
                return None
            return transactions_view(heading_of(seen, now), page, choice=choice, before=before, clock=now)

        return self._about(request, "transactions.html", view)

    def transaction(self, request: Request) -> Response:
        txid = _whole(request.path_params["txid"])
        if not txid:
            raise HTTPException(404, "transactions are numbered from 1")

        def view(seen: TopologyOverview) -> TransactionView | None:
            known, now = self._reader.transaction(seen.topology_id, txid), self._now()
            return None if known is None else transaction_view(heading_of(seen, now), known, now)

        return self._about(request, "transaction.html", view)

    def find(self, request: Request) -> Response:
        txid = _number(request, "txid")
        if txid is None:
            raise HTTPException(404, "give the number of a transaction, as in 17")
        return RedirectResponse(request.url_for("transaction", **request.path_params, txid=txid).path, 303)

    def letters(self, request: Request) -> Response:
        offset = _number(request, "from") or 0

        def view(seen: TopologyOverview) -> LettersView:
            found = self._reader.letters(seen.topology_id, offset=offset, limit=PAGE)
            return letters_view(heading_of(seen, self._now()), found)

        return self._about(request, "letters.html", view)

    def quarantine(self, request: Request) -> Response:
        def view(seen: TopologyOverview) -> QuarantineView:
            found, now = self._reader.quarantined(seen.topology_id), self._now()
            return quarantine_view(heading_of(seen, now), found, now)

        return self._about(request, "quarantine.html", view)

    def failed(self, request: Request, error: Exception) -> Response:
        """Returns an error page with the reason."""
        match error:
            case HTTPException(status_code=status, detail=detail):
                title, said = ("Not found" if status == 404 else "Not possible"), str(detail)
            case TopologyError():
                status, title, said = 404, "Not found", message_of(error)
            case StateUnreachableError():
                status, title, said = 503, "The server does not answer", message_of(error)
            case _:
                status, title, said = 502, "The server refused", message_of(error)
        return self._page(request, "failed.html", status, title=title, said=self._hide(said))

    def _about(
        self,
        request: Request,
        template: str,
        view_of: Callable[[TopologyOverview], object | None],
        *,
        with_samples: bool = False,
    ) -> Response:
        topology_id = request.path_params["topology_id"]
        with self._mutex:
            seen = self._reader.overview(topology_id, with_samples=with_samples)
            view = None if seen is None else view_of(seen)
        if view is None:
            raise HTTPException(404, f"topology {topology_id!r} is not stored on this server")
        return self._page(request, template, view=view)

    def _page(self, request: Request, template: str, status: int = 200, **shown: Any) -> Response:
        text = self._templates.get_template(template).render(
            layout="part.html" if PART_HEADER in request.headers else "page.html",
            path=lambda name, **parameters: request.url_for(name, **parameters).path,
            server=self._hide(self._reader.server),
            zone=self._now().zone_name,
            poll_ms=POLL_MS,
            **shown,
        )
        return HTMLResponse(text, status, {"Vary": PART_HEADER})

    def _now(self) -> Clock:
        return Clock(self._clock(), self._zone)


def dashboard(pages: Pages, *, names: frozenset[str] | None = LOOPBACK_NAMES) -> Guard:
    """Returns the application, for requests addressed to these host names; the guard sees its error pages, too."""
    about = "/topologies/{topology_id}"
    routes = [
        Route("/", pages.topologies, name="topologies", methods=["GET"]),
        Route(about, pages.topology, name="topology", methods=["GET"]),
        Route(f"{about}/transactions", pages.transactions, name="transactions", methods=["GET"]),
        Route(f"{about}/transactions/find", pages.find, name="find", methods=["GET"]),
        Route(f"{about}/transactions/{{txid}}", pages.transaction, name="transaction", methods=["GET"]),
        Route(f"{about}/dead-letters", pages.letters, name="letters", methods=["GET"]),
        Route(f"{about}/quarantine", pages.quarantine, name="quarantine", methods=["GET"]),
        Mount("/static", StaticFiles(directory=FOLDER / "static"), name="static"),
    ]
    failures: Mapping[Any, Any] = dict.fromkeys((HTTPException, StateError, TopologyError), pages.failed)
    app = Starlette(routes=routes, exception_handlers=failures)
    return Guard(app, names, what="the dashboard", option="txbatch ui --host")


def _choice(request: Request) -> StoryChoice:
    asked = request.query_params.get("show", StoryChoice.ALL.value)
    if asked not in list(StoryChoice):
        raise HTTPException(404, f"transactions cannot be chosen by {asked!r}")
    return StoryChoice(asked)


def _number(request: Request, name: str) -> int | None:
    return _whole(request.query_params.get(name, "").strip().replace(",", ""))


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= TXID_DIGITS else None
