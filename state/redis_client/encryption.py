"""Allows plain text only to addresses on this machine, and to those the user allows explicitly."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Mapping

from state.errors import TopologyError
from state.redis_client.address import check_address, host_of, redact
from state.troubles import Trouble

PLAINTEXT_VARIABLE = "TXBATCH_ALLOW_PLAINTEXT"

Resolve = Callable[[str], Iterable[str]]


def require_encryption(
    url: str,
    *,
    allow_plaintext: bool = False,
    environment: Mapping[str, str] = os.environ,
    resolve: Resolve | None = None,
) -> None:
    """Refuses to talk to another machine in plain text, unless the user allows it.

    Called wherever an address enters: by `run`, by commands that look at state, and on executors that take it
    from their environment. Exempt are a Unix socket, a loopback address and a name that resolves to loopback only.

    Args:
        url: the server's address.
        allow_plaintext: whether the user allows plain text.
        environment: ``TXBATCH_ALLOW_PLAINTEXT=1`` in it allows plain text too.
        resolve: host -> its addresses; None asks the system.

    Raises:
        TopologyError: the address is malformed, or would need plain text that is not allowed.
    """
    check_address(url)
    if not url.startswith("redis://") or allow_plaintext or environment.get(PLAINTEXT_VARIABLE) == "1":
        return
    host = host_of(url)
    if not host or _is_loopback(host, resolve or _resolved):
        return
    raise TopologyError(
        f"server {redact(url)} is on another machine and the connection would be in plain text: others could read "
        f"password and state on the way; use rediss://, or, on a network you trust, --allow-plaintext "
        f"(allow_plaintext=True in Python, {PLAINTEXT_VARIABLE}=1 in the environment)"
    ).about(Trouble.PLAINTEXT)


def _is_loopback(host: str, resolve: Resolve) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        addresses = list(resolve(host))
    return bool(addresses) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in addresses)


def _resolved(host: str) -> list[str]:
    try:
        return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(host, None)})
    except (OSError, UnicodeError):  # an unknown name is not this machine
        return []
