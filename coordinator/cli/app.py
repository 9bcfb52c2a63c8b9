"""The commands and their options."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.acl_command import show_acl
from coordinator.cli.bench_command import bench as run_bench
from coordinator.cli.exits import errors_reported
from coordinator.cli.logs import logging_to_stderr
from coordinator.cli.run_arguments import RunArguments, adopt_option
from coordinator.cli.run_command import RunRequest, execute
from coordinator.cli.signals import STOP_TIMEOUT_S
from coordinator.cli.state_commands import ask, show_status
from coordinator.cli.state_commands import drop as drop_topology
from coordinator.server_choice import DEFAULT_DATA_DIR, choose_server
from coordinator.transactional.options import RunOptions
from state.redis_address import secrets_in
from state.redis_encryption import PLAINTEXT_VARIABLE
from state.redis_reader import URL_VARIABLE

DEFAULTS = RunOptions()

Redis = Annotated[
    str | None,
    typer.Option(
        "--redis",
        metavar="URL",
        help=f"Server that holds the state: redis://, rediss:// or unix://. Without it the environment's "
        f"{URL_VARIABLE} counts, which keeps a password out of the process list; else a private server is used.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help=f"Private server's directory. [default: {DEFAULT_DATA_DIR}]"),
]
AllowPlaintext = Annotated[
    bool,
    typer.Option(
        "--allow-plaintext",
        help=f"Speak to a server on another machine without TLS; {PLAINTEXT_VARIABLE}=1 says the same.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One line of JSON on standard output, nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and more of the log.")]
TopologyId = Annotated[str, typer.Argument(metavar="TOPOLOGY", help="Id of the topology.")]

app = typer.Typer(
    name="txbatch",
    help="Exactly-once batch jobs on PySpark, with their state in Redis.",
    epilog="Exit codes: 0 done · 1 the job failed · 2 usage, or a topology that could not run correctly · "
    "3 fenced, a newer run took over: do not restart · 4 the state is refused or unreachable · "
    "5 Spark is gone or cannot work · "
    "130, 143 stopped by Ctrl-C or SIGTERM before the input's end: run again to go on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            print(f"txbatch {version('txbatch')}")
        except PackageNotFoundError:
            print("txbatch, not installed")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of every command."""


@app.command("run", cls=RunArguments)
def run_topology(
    *,
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FACTORY", help="As in examples.word_count:topology, or jobs/word_count.py:topology."
        ),
    ],
    parameters: Annotated[
        list[str] | None, typer.Option("-p", "--param", metavar="KEY=VALUE", help="Parameter of the factory; repeat.")
    ] = None,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    master: Annotated[str, typer.Option(metavar="MASTER", help="Spark master.")] = "local[*]",
    conf: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Spark setting; repeat.")] = None,
    max_pending: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help=f"Transactions in flight at most. [default: {DEFAULTS.window()}]"),
    ] = None,
    commit_group_max: Annotated[
        int, typer.Option(min=1, metavar="N", help="Transactions of one commit at most.")
    ] = DEFAULTS.commit_group_max,
    adopt: Annotated[
        str | None,
        typer.Option(
            "--adopt",
            metavar="[=WORDS]",
            help="Continue on another input, if everything that was read is the same and nothing would be skipped or "
            "read again. What else may happen is named, several with commas: --adopt=skip, again, changed, or "
            "unchecked. A start without it tells which it would take.",
        ),
    ] = None,
    accept_state_changes: Annotated[
        bool,
        typer.Option(
            "--accept-state-changes",
            help="Continue although a state is no longer declared, or is declared with other types.",
        ),
    ] = False,
    stop_when_idle: Annotated[
        bool, typer.Option("--stop-when-idle", help="End a plain topology when its spouts have nothing more.")
    ] = False,
    stop_timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Longest time from SIGTERM to the end of the process.")
    ] = STOP_TIMEOUT_S,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a topology: a finite input to its end, a continuous one until Ctrl-C or SIGTERM.

    The first signal finishes what is under way, the second one stops, and SIGTERM has its time. Whatever ends a
    run, the next one continues after the last commit.

    A plain topology runs until Ctrl-C or SIGTERM, or until its spouts are idle if asked for; it has no state, so
    no server is used.
    """
    with _errors(debug=debug, redis_url=redis):
        server = choose_server(redis, data_dir, allow_plaintext=allow_plaintext)
        options = RunOptions(
            max_spout_pending=max_pending,
            commit_group_max=commit_group_max,
            adopt=adopt_option(adopt),
            accept_state_changes=accept_state_changes,
        )
        request = RunRequest(
            target, parameters or (), server, master, conf or (), options, as_json, stop_when_idle, stop_timeout
        )
        code = execute(request)
    raise typer.Exit(code)


@app.command()
def status(
    *,
    topology_id: TopologyId,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what is committed, and by whom it is owned."""
    with _errors(debug=debug, redis_url=redis):
        show_status(topology_id, choose_server(redis, data_dir, allow_plaintext=allow_plaintext), as_json=as_json)


@app.command()
def drop(
    *,
    topology_id: TopologyId,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    debug: Debug = False,
) -> None:
    """Remove a topology's state and everything txbatch knows of it."""
    with _errors(debug=debug, redis_url=redis):
        drop_topology(
            topology_id, choose_server(redis, data_dir, allow_plaintext=allow_plaintext), confirm=None if yes else ask
        )


@app.command()
def acl(
    *,
    topology_id: TopologyId,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the user.  [default: the topology's]")
    ] = None,
    functions: Annotated[
        bool, typer.Option("--functions/--no-functions", help="May load the function library, or finds it loaded.")
    ] = True,
    debug: Debug = False,
) -> None:
    """Print the least-privilege user of a topology, as a line of the server's ACL file."""
    with _errors(debug=debug):
        show_acl(topology_id, user, loads_functions=functions)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the benchmark of this checkout; what follows is handed on to it."""
    with _errors():
        code = run_bench(context.args)
    raise typer.Exit(code)


@contextmanager
def _errors(*, debug: bool = False, redis_url: str | None = None) -> Iterator[None]:
    """Around every command: what it logs and raises is said in the command's own form, without the password."""
    hidden = secrets_in(redis_url or os.environ.get(URL_VARIABLE, ""))
    with logging_to_stderr(debug=debug, hidden=hidden), errors_reported(debug=debug, hidden=hidden):
        yield
