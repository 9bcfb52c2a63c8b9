"""The dashboard as a Starlette application: a page for each path, rendered from its view."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from coordinator.operating.ui.guard import LOOPBACK_NAMES, Guard
from coordinator.operating.ui.views.aside_views import PAGE, LettersView, QuarantineView, letters_view, quarantine_view
from coordinator.operating.ui.views.component_rows import FlowRates
from coordinator.operating.ui.views.topologies_view import heading_of, topologies_view
from coordinator.operating.ui.views.topology_view import TopologyView, topology_view
from coordinator.operating.ui.views.transaction_view import TransactionView, transaction_view
from coordinator.operating.ui.views.transactions_view import TransactionsView, transactions_view
from coordinator.operating.ui.views.words import Clock
from state.errors import StateError, StateUnreachableError, TopologyError
from state.printable import said_by
from state.records.topology_overview import TopologyOverview
from state.records.transaction_story import StoryChoice
from state.redis_topology.onlooker import Onlooker

FOLDER = Path(__file__).parent
PART_HEADER = "X-Txbatch-Part"
"""Sent by the script, which replaces the page's main part only."""
POLL_MS = 2_000
TXID_DIGITS = 16

_AWAY = "The server does not answer"
_REFUSED = "The server refused"
_NOT_FOUND = "Not found"


class Pages:
    """Answers requests; Starlette calls its methods on threads, one for each request.

    They look at the server one at a time: many readers are one client to it.

    Args:
        onlooker: looks at the server.
        clock: seconds since the epoch.
        zone: the time zone in which times are shown.
        hide: removes secrets from the text of an error.
    """

    def __init__(
        self,
        onlooker: Onlooker,
        *,
        clock: Callable[[], float],
        zone: tzinfo = UTC,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._onlooker, self._clock, self._zone, self._hide = onlooker, clock, zone, hide
        self._rates = FlowRates()
        self._mutex = threading.Lock()
        loader = FileSystemLoader(FOLDER / "templates")
        self._templates = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )

    def topologies(self, request: Request) -> Response:
        """Shows the topologies of the server."""
        with self._mutex:
            view = topologies_view(self._onlooker.topologies(), self._now())
        return self._page(request, "topologies.html", view=view)

    def topology(self, request: Request) -> Response:
        """Shows one topology."""

        def view(seen: TopologyOverview) -> TopologyView:
            rates = {} if seen.pulse is None else self._rates.of(seen.topology_id, seen.pulse)
            return topology_view(seen, rates, self._now())

        return self._about(request, "topology.html", view, with_samples=True)

    def transactions(self, request: Request) -> Response:
        """Shows the history of a topology."""
        choice, before = _choice(request), _number(request, "before")

        def view(seen: TopologyOverview) -> TransactionsView | None:
            page, now = self._onlooker.transactions(seen.topology_id, before=before, choice=choice), self._now()
            if page is None:
                return None
            return transactions_view(heading_of(seen, now), page, choice=choice, before=before, clock=now)

        return self._about(request, "transactions.html", view)

    def transaction(self, request: Request) -> Response:
        """Shows one transaction."""
        text = request.path_params["txid"]
        txid = int(text) if text.isdecimal() and len(text) <= TXID_DIGITS else 0
        if txid < 1:
            raise HTTPException(404, "transactions are numbered from 1")

        def view(seen: TopologyOverview) -> TransactionView | None:
            known, now = self._onlooker.transaction(seen.topology_id, txid), self._now()
            return None if known is None else transaction_view(heading_of(seen, now), known, now)

        return self._about(request, "transaction.html", view)

    def find(self, request: Request) -> Response:
        """Redirects to the transaction whose number was typed."""
        txid = _number(request, "txid")
        if txid is None:
            raise HTTPException(404, "give the number of a transaction, as in 17")
        return RedirectResponse(request.url_for("transaction", **request.path_params, txid=txid).path, 303)

    def letters(self, request: Request) -> Response:
        """Shows the dead letters of a topology."""
        offset = _number(request, "from") or 0

        def view(seen: TopologyOverview) -> LettersView:
            found = self._onlooker.letters(seen.topology_id, offset=offset, limit=PAGE)
            return letters_view(heading_of(seen, self._now()), found)

        return self._about(request, "letters.html", view)

    def quarantine(self, request: Request) -> Response:
        """Shows the quarantine of a topology."""

        def view(seen: TopologyOverview) -> QuarantineView:
            found, now = self._onlooker.quarantined(seen.topology_id), self._now()
            return quarantine_view(heading_of(seen, now), found, now)

        return self._about(request, "quarantine.html", view)

    def failed(self, request: Request, error: Exception) -> Response:
        """Shows an error page that says why there is nothing else to show."""
        match error:
            case HTTPException(status_code=status, detail=detail):
                title, said = (_NOT_FOUND if status == 404 else "Not possible"), str(detail)
            case TopologyError():
                status, title, said = 404, _NOT_FOUND, said_by(error)
            case StateUnreachableError():
                status, title, said = 503, _AWAY, said_by(error)
            case _:
                status, title, said = 502, _REFUSED, said_by(error)
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
            seen = self._onlooker.overview(topology_id, with_samples=with_samples)
            view = None if seen is None else view_of(seen)
        if view is None:
            raise HTTPException(404, f"topology {topology_id!r} is not stored on this server")
        return self._page(request, template, view=view)

    def _page(self, request: Request, template: str, status: int = 200, **shown: Any) -> Response:
        is_part = PART_HEADER in request.headers
        path = partial(_path, request)
        now = self._now()
        text = self._templates.get_template(template).render(
            layout="part.html" if is_part else "page.html",
            path=path,
            server=self._hide(self._onlooker.server),
            zone=now.zone_name,
            poll_ms=POLL_MS,
            **shown,
        )
        return HTMLResponse(text, status, {"Vary": PART_HEADER})

    def _now(self) -> Clock:
        return Clock(self._clock(), self._zone)


def dashboard(pages: Pages, *, names: frozenset[str] | None = LOOPBACK_NAMES) -> Guard:
    """Returns the application; its answers to its own errors pass the guard too.

    Args:
        pages: answer the requests.
        names: host names that requests may be addressed to; None for any.
    """
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
    return Guard(Starlette(routes=routes, exception_handlers=failures), names)


def _path(request: Request, name: str, **parameters: Any) -> str:
    return request.url_for(name, **parameters).path


def _choice(request: Request) -> StoryChoice:
    asked = request.query_params.get("show", StoryChoice.ALL.value)
    if asked not in list(StoryChoice):
        raise HTTPException(404, f"transactions cannot be chosen by {asked!r}")
    return StoryChoice(asked)


def _number(request: Request, name: str) -> int | None:
    """Returns a number from the query; None if it is missing or not a number."""
    text = request.query_params.get(name, "").strip().replace(",", "")
    return int(text) if text.isdecimal() and len(text) <= TXID_DIGITS else None
