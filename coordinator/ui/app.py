"""The dashboard as a Starlette application: a page for each path, rendered from its view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

from coordinator.ui.guard import LOOPBACK_NAMES, Guard
from coordinator.ui.lookout import Lookout
from state.errors import StateError, StateUnreachableError, TopologyError
from state.printable import said_by
from state.records.story_choice import StoryChoice

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

    Args:
        lookout: looks at the server.
        hide: removes secrets from the text of an error.
    """

    def __init__(self, lookout: Lookout, hide: Callable[[str], str]) -> None:
        self._lookout, self._hide = lookout, hide
        loader = FileSystemLoader(FOLDER / "templates")
        self._templates = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )

    def topologies(self, request: Request) -> Response:
        """Shows the topologies of the server."""
        return self._page(request, "topologies.html", view=self._lookout.topologies())

    def topology(self, request: Request) -> Response:
        """Shows one topology."""
        return self._about(request, "topology.html", self._lookout.topology)

    def transactions(self, request: Request) -> Response:
        """Shows the history of a topology."""
        choice, before = _choice(request), _number(request, "before")
        return self._about(
            request, "transactions.html", partial(self._lookout.transactions, choice=choice, before=before)
        )

    def transaction(self, request: Request) -> Response:
        """Shows one transaction."""
        text = request.path_params["txid"]
        txid = int(text) if text.isdecimal() and len(text) <= TXID_DIGITS else 0
        if txid < 1:
            raise HTTPException(404, "transactions are numbered from 1")
        return self._about(request, "transaction.html", partial(self._lookout.transaction, txid=txid))

    def find(self, request: Request) -> Response:
        """Redirects to the transaction whose number was typed."""
        txid = _number(request, "txid")
        if txid is None:
            raise HTTPException(404, "give the number of a transaction, as in 17")
        return RedirectResponse(request.url_for("transaction", **request.path_params, txid=txid).path, 303)

    def letters(self, request: Request) -> Response:
        """Shows the dead letters of a topology."""
        return self._about(
            request, "letters.html", partial(self._lookout.letters, offset=_number(request, "from") or 0)
        )

    def quarantine(self, request: Request) -> Response:
        """Shows the quarantine of a topology."""
        return self._about(request, "quarantine.html", self._lookout.quarantine)

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

    def _about(self, request: Request, template: str, look: Callable[[str], Any]) -> Response:
        topology_id = request.path_params["topology_id"]
        view = look(topology_id)
        if view is None:
            raise HTTPException(404, f"topology {topology_id!r} is not stored on this server")
        return self._page(request, template, view=view)

    def _page(self, request: Request, template: str, status: int = 200, **shown: Any) -> Response:
        is_part = PART_HEADER in request.headers
        path = partial(_path, request)
        clock = self._lookout.clock()
        text = self._templates.get_template(template).render(
            layout="part.html" if is_part else "page.html",
            path=path,
            server=self._hide(self._lookout.server),
            moment=clock.moment(clock.now),
            zone=clock.zone_name,
            poll_ms=POLL_MS,
            **shown,
        )
        return HTMLResponse(text, status, {"Vary": PART_HEADER})


def dashboard(
    lookout: Lookout,
    *,
    hide: Callable[[str], str] = str,
    names: frozenset[str] | None = LOOPBACK_NAMES,
) -> Guard:
    """Returns the application; its answers to its own errors pass the guard too.

    Args:
        lookout: looks at the server.
        hide: removes secrets from the text of an error.
        names: host names that requests may be addressed to; None for any.
    """
    pages = Pages(lookout, hide)
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
