"""``txbatch ui``: the dashboard, in a browser."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from typing import Annotated, Any

import typer

from coordinator.operating.cli.command import AsJson, ServerOptions, command
from coordinator.operating.cli.terminal import say, say_json, without
from state.errors import TopologyError

MISSING = "the dashboard needs {module}, which is not installed; run: pip install 'txbatch[ui]'"
LIBRARIES = frozenset({"starlette", "uvicorn", "jinja2"})
EXPOSED = (
    "txbatch: warning: anyone who can reach {host} sees this dashboard, which asks for no password and shows names, "
    "errors and refused tuples; leave --host out, or put it behind something that asks"
)


@command
def ui(
    *,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to serve it on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve it on; 0 takes a free one.")] = 7480,
    typed: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Serve a dashboard of the topologies on a server, until Ctrl-C: what runs, how fast, what failed and why.

    It only reads, so it may be started and stopped at any time, during a run and afterwards.
    """
    server = typed.choice()
    serving, guard = map(_imported, ("coordinator.operating.ui.serving", "coordinator.serving.guard"))
    if not guard.is_loopback(host):
        say(EXPOSED.format(host=host), to=sys.stderr, flush=True)
    hide = partial(without, typed.secrets())
    with server.reader() as reader:
        reader.topologies()  # what is wrong with the server is said here, not in the browser
        started = partial(_started, str(server), as_json=as_json)
        serving.serve(reader, host=host, port=port, hide=hide, started=started)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in LIBRARIES:
            raise
        raise TopologyError(MISSING.format(module=error.name)) from error


def _started(server: str, address: str, *, as_json: bool) -> None:
    if as_json:
        say_json({"url": address}, flush=True)
    else:
        say(f"dashboard of {server}: {address} (Ctrl-C ends it)", flush=True)
