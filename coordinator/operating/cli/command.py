"""Makes a command of a function, and holds the options that several commands take, each written once.

Single options are types. Options that belong together are a dataclass; `command` makes an option of each field.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass, is_dataclass
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from coordinator.operating.cli.exits import errors_reported
from coordinator.operating.cli.logs import LogLevel, RecordStream, log_error, logging_to_stderr
from coordinator.operating.cli.parameters import parse_pairs
from coordinator.server_choice import DEFAULT_DATA_DIR, ServerChoice, choose_server
from coordinator.transactional.options import EngineName
from coordinator.watching.log_records import LogFormat, formatter_of, logs_of
from state.records.durability import DurabilityLevel
from state.redis_client.address import PLAINTEXT_VARIABLE, from_environment, redact, secrets_in
from state.redis_owner.reader import URL_VARIABLE

SERVER = "Server and durability"
SPARK = "Spark"
WATCHING = "Watching"
"""Headings under which `txbatch run --help` groups options; see also `coordinator.operating.cli.run_options`."""
_SUGGESTED = re.compile(r"`(txbatch (?:drop|quarantine list) [^`]+)`")


def option(*names: str, panel: str | None = None, **given: Any) -> Any:
    """Returns an option; by default it is named after its parameter.

    `panel` is the heading under which ``txbatch run --help`` lists it; other arguments go to `typer.Option`.
    """
    return typer.Option(*names, rich_help_panel=panel, **given)


AsJson = Annotated[bool, option("--json", help="Print one line of JSON on standard output, nothing else.")]
Debug = Annotated[bool, option("--debug", help="Show the full log, and the traceback of an error.")]
Yes = Annotated[bool, option("--yes", "-y", help="Do not ask for confirmation.")]
TopologyId = Annotated[str, typer.Argument(metavar="TOPOLOGY", help="Topology id.")]
Txid = Annotated[int, typer.Argument(min=1, metavar="TXID", help="Number of the transaction.")]
FactoryTarget = Annotated[
    str, typer.Argument(metavar="MODULE:FACTORY", help="Makes the topology, as for `txbatch run`.")
]
ChangedTarget = Annotated[
    str, typer.Argument(metavar="MODULE:FACTORY", help="Makes the topology, as for `txbatch run`; its code may be new.")
]
Parameters = Annotated[
    list[str] | None, option("-p", "--param", metavar="KEY=VALUE", help="Parameter of the factory; may be repeated.")
]
Describing = Annotated[
    str | None,
    option(
        "--factory",
        metavar="MODULE:FACTORY",
        help="Have the spout of this topology describe what was read; spouts of txbatch need no telling.",
    ),
]
Slots = Annotated[
    int | None,
    option(
        panel=SPARK,
        min=1,
        metavar="N",
        help="Most Spark tasks in a stage; tasks beyond that share them. [default: as many as Spark has cores]",
        show_default=False,
    ),
]
Level = Annotated[
    DurabilityLevel | None,
    option(
        "--durability",
        panel=SERVER,
        help="What has to be confirmed of a commit before anything is released upstream, and before a run says it is "
        "done: the server's answer (memory), its disk (fsync), replicas (replica), or the answer of a service that is "
        "durable by contract, on your word (service). Without the option it is the disk for a run that "
        "deletes or moves its files, trims its streams or otherwise destroys input, and memory for any other.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    redis: Annotated[
        str | None,
        option(
            "--redis",
            panel=SERVER,
            metavar="URL",
            help="Server that holds the state: redis://, rediss:// or unix://, redis+sentinel:// or redis+cluster://. "
            f"The default is {URL_VARIABLE} from the environment, which keeps a password out of the process list; "
            "without either, a private server.",
        ),
    ] = None
    data_dir: Annotated[
        Path | None,
        option(
            "--data-dir",
            panel=SERVER,
            metavar="DIR",
            help=f"Directory of the private server. [default: {DEFAULT_DATA_DIR}]",
        ),
    ] = None
    allow_plaintext: Annotated[
        bool,
        option(
            "--allow-plaintext",
            panel=SERVER,
            help=f"Connect to a server on another machine without TLS; same as {PLAINTEXT_VARIABLE}=1.",
        ),
    ] = False

    def choice(self) -> ServerChoice:
        return choose_server(self.redis, self.data_dir, allow_plaintext=self.allow_plaintext)

    def secrets(self) -> dict[str, str]:
        """Returns the secret parts of the address; see `secrets_in`."""
        return secrets_in(self.redis or from_environment(URL_VARIABLE))

    def completed(self, text: str) -> str:
        """Returns a message whose suggested commands, in backticks, have these options, so that they work as printed.

        Most code that writes messages does not know the server options of the command line.
        """
        options = ""
        if self.redis is not None:
            options += f" --redis {shlex.quote(redact(self.redis))}"  # without the password
        if self.data_dir is not None:
            options += f" --data-dir {shlex.quote(str(self.data_dir))}"
        return _SUGGESTED.sub(lambda found: f"`{found[1]}{options}`", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    master: Annotated[str, option("--master", panel=SPARK, metavar="MASTER", help="Spark master.")] = "local[*]"
    conf: Annotated[
        list[str] | None,
        option("--conf", panel=SPARK, metavar="KEY=VALUE", help="Spark setting; may be repeated."),
    ] = None

    def settings(self) -> Mapping[str, str]:
        return parse_pairs("--conf", self.conf or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions(SparkOptions):
    engine: Annotated[
        EngineName,
        option(
            "--engine",
            panel=SPARK,
            help="spark, or local to run in this process, on one core, without Spark and Java: for small inputs and "
            "development, transactional topologies only. Each run may use another one.",
        ),
    ] = EngineName.SPARK

    def asked(self) -> dict[str, Any]:
        """Returns the options as fields of a `RunRequest`."""
        return {"master": self.master, "conf": self.settings(), "engine": self.engine}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """How a run logs: with either option, everything on standard error is a log record."""

    log_format: Annotated[
        LogFormat | None,
        option(
            "--log-format",
            panel=WATCHING,
            help="Write all that the run says on standard error as log records, progress and errors too: plain text "
            "with timestamps, or one JSON object a line.",
        ),
    ] = None
    log_level: Annotated[
        LogLevel | None,
        option(
            "--log-level",
            panel=WATCHING,
            help="Lowest level of these records. [default: info]",
            case_sensitive=False,
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether standard error carries log records; otherwise it is for a person at a terminal."""
        return self.log_format is not None or self.log_level is not None

    def formatter(self, hidden: Mapping[str, str]) -> logging.Formatter:
        return formatter_of(self.log_format or LogFormat.PLAIN, hidden)

    def lowest_level(self) -> int:
        return logging.getLevelNamesMapping()[(self.log_level or LogLevel.INFO).upper()]


ServesTyper = Callable[..., None]


def command(body: Callable[..., int | None]) -> ServesTyper:
    """Returns a function for typer: it takes all options, reports the errors of `body`, and exits with its code.

    Args:
        body: does the work, and returns the exit code, or None for 0. Its parameters are keyword-only. A parameter
            whose type is a dataclass, such as `ServerOptions`, stands for an option for each field. Every command also
            has ``--debug``.
    """
    values: dict[str, type] = {}
    parameters: list[Parameter] = []
    hints = get_type_hints(body, include_extras=True)
    for each in inspect.signature(body).parameters.values():
        hint = hints[each.name]
        if is_dataclass(hint):
            assert isinstance(hint, type)
            values[each.name] = hint
            parameters += _options_of(hint)
        else:
            parameters.append(each.replace(annotation=hint))
    parameters.append(Parameter("debug", Parameter.KEYWORD_ONLY, default=False, annotation=Debug))

    @functools.wraps(body)
    def run(*, debug: bool, **given: Any) -> None:
        for name, kind in values.items():
            given[name] = kind(**{option.name: given.pop(option.name) for option in _options_of(kind)})
        server = next((value for value in given.values() if isinstance(value, ServerOptions)), None)
        log = next((value for value in given.values() if isinstance(value, LogOptions)), None)
        with command_errors(debug=debug, server=server, log=log):
            code = body(**given)
        if code is not None:
            raise typer.Exit(code)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # for typer, which reads both
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options_of(kind: type) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [each.replace(annotation=hints[each.name]) for each in inspect.signature(kind).parameters.values()]


@contextmanager
def command_errors(
    *, debug: bool = False, server: ServerOptions | None = None, log: LogOptions | None = None
) -> Iterator[None]:
    """Wraps every command: prints its logs and its error in the command's own form, without the password.

    If log options are given, everything is printed as log records.
    """
    server = server or ServerOptions()
    hidden = server.secrets()
    styled: dict[str, Any] = {}
    if log is not None and log.is_given:
        styled = {"form": log.formatter(hidden), "level": log.lowest_level()}
    with (
        logs_of(None) as subject,
        logging_to_stderr(debug=debug, hidden=hidden, **styled),
        closing(RecordStream(subject)) if styled else nullcontext() as printed,
        nullcontext() if printed is None else redirect_stderr(printed),
        errors_reported(
            debug=debug,
            hidden=hidden,
            completed=server.completed,
            report=partial(log_error, debug=debug) if styled else None,
        ),
    ):
        yield


def command_group(summary: str) -> typer.Typer:
    """Returns a group of commands, such as ``txbatch state``."""
    return typer.Typer(help=summary, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
