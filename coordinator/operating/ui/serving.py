"""Serves the dashboard until a signal ends it."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from time import time
from types import FrameType

import uvicorn

from coordinator.operating.ui.dashboard import LOOPBACK_NAMES, Pages, dashboard
from state.errors import TopologyError
from state.redis_topology.onlooker import Onlooker

STOP_S = 2
CONNECTIONS_MAX = 64


def serve(
    onlooker: Onlooker, *, host: str, port: int, hide: Callable[[str], str], started: Callable[[str], None]
) -> None:
    """Serves until Ctrl-C or SIGTERM; called by ``txbatch ui``, which closes the onlooker.

    Args:
        onlooker: of the server.
        host: to listen on.
        port: to listen on; 0 takes a free one.
        hide: removes secrets from a text.
        started: called with the dashboard's address once it listens.

    Raises:
        TopologyError: the port is taken or not allowed.
    """
    names = LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else None
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    app = dashboard(Pages(onlooker, clock=time, zone=zone, hide=hide), names=names)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        limit_concurrency=CONNECTIONS_MAX,
        timeout_graceful_shutdown=STOP_S,
    )
    with listening(host, port) as listener, ended_by_signals():
        started(f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can connect to an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise TopologyError(
            f"the dashboard cannot be served on {host} port {port}: {error}; choose another --port, or 0 for a free one"
        ) from error
    with listener:
        yield listener


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Lets signals end the server and nothing else: uvicorn would raise them again when it is done."""

    def heard(_number: int, _frame: FrameType | None) -> None:
        return

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
