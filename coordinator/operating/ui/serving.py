"""Serves the dashboard until a signal ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from time import time
from types import FrameType

from coordinator.operating.ui.dashboard import Pages, dashboard
from coordinator.serving.guard import names_of
from coordinator.serving.http_server import listening, server_of, url_of
from state.redis_admin.topology_reader import TopologyReader


def serve(
    reader: TopologyReader, *, host: str, port: int, hide: Callable[[str], str], started: Callable[[str], None]
) -> None:
    """Serves until Ctrl-C or SIGTERM; called by ``txbatch ui``, which closes the reader.

    Args:
        reader: reads from the server.
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        hide: removes secrets from a text.
        started: called with the dashboard's address once it listens.

    Raises:
        TopologyError: the port is taken or not allowed.
    """
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    app = dashboard(Pages(reader, clock=time, zone=zone, hide=hide), names=names_of(host))
    with listening("the dashboard", host, port) as listener, ended_by_signals():
        started(url_of(host, listener))
        server_of(app).run(sockets=[listener])


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Lets signals end only the server: uvicorn would raise them again when it is done."""

    def heard(_number: int, _frame: FrameType | None) -> None:
        return

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
