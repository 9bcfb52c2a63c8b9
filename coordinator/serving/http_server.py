"""Serves an application over HTTP, within limits that no client can exceed, silent ones included."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from state.errors import TopologyError

_LOG = logging.getLogger("txbatch")
STOP_S = 2
SAID_EVERY_S = 10.0
NOT_SERVED = "a connection was not served: %s"
CONNECTIONS_MAX = 64
"""Most open connections; each takes a descriptor, and the process needs some for other purposes."""
REQUEST_TIMEOUT_S = 10.0
"""A client that has not sent a complete request after this long is disconnected."""


class LimitedProtocol(H11Protocol):
    """One connection: closed at once if there are too many, and after a while without a request."""

    _seen: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as theirs
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
        else:
            self.loop.call_later(REQUEST_TIMEOUT_S, self._hang_up_if_silent)

    def _hang_up_if_silent(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is self._seen and (self._seen is None or self._seen.response_complete):
            self.transport.abort()
            return
        self._seen = self.cycle
        self.loop.call_later(REQUEST_TIMEOUT_S, self._hang_up_if_silent)


class LimitedServer(uvicorn.Server):
    """A server that logs a line if it cannot accept connections, such as without free descriptors, and continues."""

    _silent_until_s = 0.0

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._fail)
        await super().serve(sockets)

    def _fail(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif loop.time() >= self._silent_until_s:  # the loop tries once for each waiting connection
            self._silent_until_s = loop.time() + SAID_EVERY_S
            _LOG.warning(NOT_SERVED, error.strerror or error)


def _answering(app: ASGIApp) -> ASGIApp:
    """Returns an application that answers 503, without a traceback, if the system lacks resources for a request."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except OSError as error:
            _LOG.warning(NOT_SERVED, error.strerror or error)
            await plain_text(503, "the server lacks what it needs to answer; try again\n")(scope, receive, send)

    return answered


def server_of(app: ASGIApp, *, log_level: str = "warning") -> uvicorn.Server:
    """Returns a server of an application, to run on listening sockets, on any thread."""
    return LimitedServer(
        uvicorn.Config(
            _answering(app),
            http=LimitedProtocol,
            log_level=log_level,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            limit_concurrency=CONNECTIONS_MAX,
            backlog=CONNECTIONS_MAX,
            timeout_graceful_shutdown=STOP_S,
        )
    )


@contextmanager
def listening(what: str, host: str, port: int) -> Iterator[socket.socket]:
    """Yields a listening socket for a server.

    Raises:
        TopologyError: the port is taken or not allowed, or the host is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        is_elsewhere = isinstance(error, socket.gaierror) or getattr(error, "errno", 0) == errno.EADDRNOTAVAIL
        remedy = (
            "give a name or an address of this machine" if is_elsewhere else "choose another port, or 0 for a free one"
        )
        raise TopologyError(f"{what} cannot be served on {host} port {port}: {error}; {remedy}") from error
    with listener:
        yield listener


def url_of(host: str, listener: socket.socket) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"


def plain_text(status: int, text: str) -> ASGIApp:
    """Returns an application that answers with a text."""
    return PlainTextResponse(text, status)
