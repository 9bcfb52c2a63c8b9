"""Options that several commands have, and what every command's body runs in."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, redirect_stderr
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from coordinator.cli.exits import errors_reported
from coordinator.cli.logs import RecordStream, logging_to_stderr
from coordinator.cli.streams.log_style import LogLevel, LogStyle, log_error
from coordinator.cli.suggestions import server_options
from coordinator.log_fields import logs_of
from coordinator.server_choice import DEFAULT_DATA_DIR, ServerChoice, choose_server
from coordinator.telemetry.log_formats import LogFormat, formatter_of
from state.records.durability import DurabilityLevel
from state.redis_client.address import secrets_in
from state.redis_client.encryption import PLAINTEXT_VARIABLE
from state.redis_topology.reader import URL_VARIABLE

SERVER = "Server and durability"
SPARK = "Spark"
PACE = "Pace"
FAILURES = "Failures"
CONTINUING = "Continuing after a change"
ENDING = "Ending"
WATCHING = "Watching"
"""What options are for, as `txbatch run --help` groups them."""

Redis = Annotated[
    str | None,
    typer.Option(
        "--redis",
        metavar="URL",
        help=f"Server that holds the state: redis://, rediss:// or unix://. The default is {URL_VARIABLE} from the "
        "environment, which keeps a password out of the process list; without either, a private server.",
        rich_help_panel=SERVER,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help=f"Directory of the private server. [default: {DEFAULT_DATA_DIR}]",
        rich_help_panel=SERVER,
    ),
]
AllowPlaintext = Annotated[
    bool,
    typer.Option(
        "--allow-plaintext",
        help=f"Connect to a server on another machine without TLS; same as {PLAINTEXT_VARIABLE}=1.",
        rich_help_panel=SERVER,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON on standard output, nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full log, and the traceback of an error.")]
MaxPending = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Most transactions in flight. [default: as --wave-target-ms wants]",
        rich_help_panel=PACE,
    ),
]
WaveTarget = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="MS",
        help="How long a wave should take; the transactions in flight follow, unless --max-pending is given.",
        rich_help_panel=PACE,
    ),
]
Slots = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Most Spark tasks in a stage; tasks beyond that share them. [default: as many as Spark has cores]",
        show_default=False,
        rich_help_panel=SPARK,
    ),
]
TopologyId = Annotated[str, typer.Argument(metavar="TOPOLOGY", help="Topology id.")]
SparkMaster = Annotated[str, typer.Option("--master", metavar="MASTER", help="Spark master.", rich_help_panel=SPARK)]
SparkConf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting; may be repeated.", rich_help_panel=SPARK),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("-p", "--param", metavar="KEY=VALUE", help="Parameter of the factory; may be repeated."),
]

Describing = Annotated[
    str | None,
    typer.Option(
        "--factory",
        metavar="MODULE:FACTORY",
        help="Have the spout of this topology describe what was read; spouts of txbatch need no telling.",
    ),
]

Adopt = Annotated[
    str | None,
    typer.Option(
        "--adopt",
        metavar="[=WORDS]",
        help="Continue on another input, provided that everything read so far is unchanged and nothing would be "
        "skipped or read again. To accept more, name it: --adopt=skip, again, changed or unchecked, separated by "
        "commas. A start without the option says which words it needs, or that none will do.",
        rich_help_panel=CONTINUING,
    ),
]
Level = Annotated[
    DurabilityLevel | None,
    typer.Option(
        "--durability",
        help="What has to be confirmed of a commit before anything is released upstream, and before a run says it is "
        "done: the server's answer (memory), its disk, or replicas. Without the option it is the disk for a run that "
        "deletes or moves its files, trims its streams or otherwise destroys input, and memory for any other.",
        rich_help_panel=SERVER,
    ),
]
Replicas = Annotated[
    int,
    typer.Option(
        "--durability-replicas",
        min=1,
        metavar="N",
        help="Replicas that have to confirm, with --durability replica.",
        rich_help_panel=SERVER,
    ),
]
History = Annotated[
    int,
    typer.Option(
        "--history",
        min=0,
        metavar="N",
        help="How many transactions keep their receipt, metadata and story, for `txbatch inspect`.",
        rich_help_panel=SERVER,
    ),
]
Pulse = Annotated[
    bool,
    typer.Option(
        "--pulse/--no-pulse",
        help="Whether to tell the server, once a second, what the run is doing.",
        rich_help_panel=SERVER,
    ),
]
MaxAttempts = Annotated[
    int,
    typer.Option(
        "--max-attempts",
        min=1,
        metavar="N",
        help="Attempts at a transaction before it is given up.",
        rich_help_panel=FAILURES,
    ),
]
OnPoison = Annotated[
    str,
    typer.Option(
        metavar="WORD",
        help="What becomes of a batch that fails on every attempt: halt the run, or quarantine the batch: commit "
        "its transaction empty and keep it for `txbatch quarantine`.",
        rich_help_panel=FAILURES,
    ),
]
MaxQuarantined = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Most quarantined batches; poison beyond them halts the run.", rich_help_panel=FAILURES
    ),
]
OtherStates = Annotated[
    bool,
    typer.Option(
        "--accept-state-changes",
        help="Continue even if a state is no longer declared, or is declared with other types.",
        rich_help_panel=CONTINUING,
    ),
]
AcceptStateChanges = Annotated[
    bool,
    typer.Option(
        "--accept-state-changes",
        help="As for `txbatch run`: accept that states have changed.",
        rich_help_panel=CONTINUING,
    ),
]
StopTimeout = Annotated[
    float,
    typer.Option(
        min=1, metavar="SECONDS", help="Longest time from SIGTERM to the end of the process.", rich_help_panel=ENDING
    ),
]
StopWhenIdle = Annotated[
    bool,
    typer.Option(
        "--stop-when-idle",
        help="End a plain topology once its spouts have nothing more to emit.",
        rich_help_panel=ENDING,
    ),
]
CommitGroupMax = Annotated[
    int, typer.Option(min=1, metavar="N", help="Most transactions in one commit.", rich_help_panel=PACE)
]
Traces = Annotated[
    bool,
    typer.Option(
        "--traces",
        help="Make an OpenTelemetry span of each transaction and attempt, for the SDK of this process.",
        rich_help_panel=WATCHING,
    ),
]
LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option(
        "--log-format",
        help="Write all that the run says on standard error as log records, progress and errors too: plain text with "
        "timestamps, or one JSON object a line.",
        rich_help_panel=WATCHING,
    ),
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level",
        help="Lowest level of these records. [default: info]",
        case_sensitive=False,
        rich_help_panel=WATCHING,
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=0,
        max=65535,
        metavar="PORT",
        help="Serve /metrics for Prometheus, /healthz and /readyz while the run lasts; 0 takes a free port and says "
        "which.",
        rich_help_panel=WATCHING,
    ),
]
MetricsHost = Annotated[
    str,
    typer.Option(
        "--metrics-host",
        metavar="HOST",
        help="Address to serve them on; 0.0.0.0 for a container.",
        rich_help_panel=WATCHING,
    ),
]
ReplayTarget = Annotated[
    str,
    typer.Argument(metavar="MODULE:FACTORY", help="Makes the topology, as for `txbatch run`; its code may be new."),
]


@contextmanager
def command_errors(
    *,
    debug: bool = False,
    redis_url: str | None = None,
    data_dir: Path | None = None,
    log: LogStyle | None = None,
) -> Iterator[None]:
    """Wraps every command: prints what it logs and raises in the command's own form, without the password.

    With a log style, all of it is log records.
    """
    hidden = secrets_in(redis_url or os.environ.get(URL_VARIABLE, ""))
    options = server_options(redis_url, data_dir)
    styled: dict[str, Any] = {}
    if log is not None:
        styled = {"form": formatter_of(log.form, hidden), "level": logging.getLevelNamesMapping()[log.level.upper()]}
    with (
        logs_of(None) as subject,
        logging_to_stderr(debug=debug, hidden=hidden, **styled),
        nullcontext() if log is None else closing(RecordStream(subject)) as printed,
        nullcontext() if printed is None else redirect_stderr(printed),
        errors_reported(
            debug=debug,
            hidden=hidden,
            options=options,
            report=None if log is None else partial(log_error, debug=debug),
        ),
    ):
        yield


@contextmanager
def server_of_command(
    redis_url: str | None, data_dir: Path | None, *, allow_plaintext: bool, debug: bool
) -> Iterator[ServerChoice]:
    """Wraps a command that works on one server, as `command_errors` does, and yields the server it is to use."""
    with command_errors(debug=debug, redis_url=redis_url, data_dir=data_dir):
        yield choose_server(redis_url, data_dir, allow_plaintext=allow_plaintext)
