"""The options of the commands, each written once: single ones as types, those that belong together as values.

`coordinator.operating.cli.command` makes the options of a value's fields: their names, help and bounds are in the
annotations.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from coordinator.operating.cli.logs import LogLevel
from coordinator.operating.cli.parameters import parse_pairs
from coordinator.server_choice import DEFAULT_DATA_DIR, ServerChoice, choose_server
from coordinator.watching.telemetry.log_formats import LogFormat, formatter_of
from state.records.durability import DurabilityLevel
from state.redis_client.address import redact
from state.redis_client.encryption import PLAINTEXT_VARIABLE
from state.redis_topology.reader import URL_VARIABLE

SERVER = "Server and durability"
SPARK = "Spark"
WATCHING = "Watching"
"""What options are for, as `txbatch run --help` groups them; see also `coordinator.operating.cli.run_options`."""
_SUGGESTED = re.compile(r"`(txbatch (?:drop|quarantine list) [^`\s]+)`")


def option(*names: str, panel: str | None = None, **given: Any) -> Any:
    """Returns an option; without names, it is called as its parameter.

    `panel` is the heading under which ``txbatch run --help`` lists it; the rest goes to `typer.Option`.
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
        "done: the server's answer (memory), its disk, or replicas. Without the option it is the disk for a run that "
        "deletes or moves its files, trims its streams or otherwise destroys input, and memory for any other.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The server that was typed."""

    redis: Annotated[
        str | None,
        option(
            "--redis",
            panel=SERVER,
            metavar="URL",
            help=f"Server that holds the state: redis://, rediss:// or unix://. The default is {URL_VARIABLE} from the "
            "environment, which keeps a password out of the process list; without either, a private server.",
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

    def completed(self, text: str) -> str:
        """Returns a message in which each suggested command in backticks repeats these options, to work as printed.

        Most messages are written where nobody knows which server options the command line was given.
        """
        options = ""
        if self.redis is not None:
            options += f" --redis {shlex.quote(redact(self.redis))}"  # without the password
        if self.data_dir is not None:
            options += f" --data-dir {shlex.quote(str(self.data_dir))}"
        return _SUGGESTED.sub(lambda found: f"`{found[1]}{options}`", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """The Spark that was typed."""

    master: Annotated[str, option("--master", panel=SPARK, metavar="MASTER", help="Spark master.")] = "local[*]"
    conf: Annotated[
        list[str] | None,
        option("--conf", panel=SPARK, metavar="KEY=VALUE", help="Spark setting; may be repeated."),
    ] = None

    def settings(self) -> Mapping[str, str]:
        return parse_pairs("--conf", self.conf or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """How a run logs: with either option, all that it says on standard error is log records."""

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
        """Whether standard error carries log records; otherwise the command speaks to a person at a terminal."""
        return self.log_format is not None or self.log_level is not None

    def formatter(self, hidden: Mapping[str, str]) -> logging.Formatter:
        return formatter_of(self.log_format or LogFormat.PLAIN, hidden)

    def lowest_level(self) -> int:
        return logging.getLevelNamesMapping()[(self.log_level or LogLevel.INFO).upper()]
