"""Passes only read requests addressed to this server, and restricts browsers by security headers."""

from __future__ import annotations

import ipaddress
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
"""Headers of every answer: nothing from other hosts, no inline script or style, no frames, no caching."""
READING = ("GET", "HEAD")
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]*)?")
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """Wraps the application (ASGI).

    A server on loopback answers only to names of this machine. Otherwise another site could point its own name at
    this address and read it through the reader's browser (DNS rebinding).

    Args:
        names: host names to which requests may be addressed; None for any.
        what: the name of the served application, for messages.
        option: the command's option for another address, for messages.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str] | None, *, what: str, option: str) -> None:
        self._app, self._names, self._what, self._option = app, names, what, option

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = self._app
        if scope["method"] not in READING:
            app = PlainTextResponse(f"{self._what} is read-only: use GET or HEAD\n", 405, {"Allow": ", ".join(READING)})
        elif self._names is not None and host_name(Headers(scope=scope).get("host", "")) not in self._names:
            app = PlainTextResponse(f"{self._what} answers only to localhost; see {self._option}\n", 421)
        await app(scope, receive, send_guarded)


def host_name(host: str) -> str:
    """Returns the name in a Host header, without port and brackets, in lower case; "" for an invalid header."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def names_of(host: str) -> frozenset[str] | None:
    """Returns the host names allowed in requests to a server at an address; None for any."""
    return LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else None


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can connect to an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
