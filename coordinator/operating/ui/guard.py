"""Lets only reading requests pass, addressed to this dashboard, and tells browsers what a page may do."""

from __future__ import annotations

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer: nothing from other hosts, no inline script or style, no frames, nothing kept."""
READING = ("GET", "HEAD")
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]*)?")
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """Wraps the application (ASGI).

    A dashboard on loopback answers only to names of this machine. Otherwise another site could point its own name at
    this address and read the dashboard through the reader's browser (DNS rebinding).

    Args:
        app: the application.
        names: host names that requests may be addressed to; None for any.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str] | None = LOOPBACK_NAMES) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or passes it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = self._app
        if scope["method"] not in READING:
            app = PlainTextResponse("the dashboard is read-only: use GET or HEAD\n", 405, {"Allow": ", ".join(READING)})
        elif self._names is not None and host_name(Headers(scope=scope).get("host", "")) not in self._names:
            app = PlainTextResponse("this dashboard answers only to localhost; see txbatch ui --host\n", 421)
        await app(scope, receive, send_guarded)


def host_name(host: str) -> str:
    """Returns the name in a Host header, without port and brackets, in lower case; "" if that is not all there is."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""
