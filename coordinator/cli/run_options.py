"""The options of a run, as ``txbatch run`` and the commands that publish again take them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from coordinator.cli.command_options import SERVER, WATCHING, Level, Slots
from coordinator.cli.exits import errors_reported
from coordinator.cli.signals import STOP_TIMEOUT_S
from coordinator.telemetry.metrics_server import DEFAULT_HOST
from coordinator.transactional.options import ADOPT_WORDS, RunOptions
from state.errors import TopologyError

PACE = "Pace"
FAILURES = "Failures"
CONTINUING = "Continuing after a change"
ENDING = "Ending"
DEFAULTS = RunOptions()
ADOPTS_UNCHANGED = "unchanged"
"""The value of a bare ``--adopt``: what was read is unchanged, and nothing is skipped or read again."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """The limits of a run, and the changes that it accepts: what `RunOptions` is made of."""

    max_pending: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Most transactions in flight. [default: as --wave-target-ms wants]",
            rich_help_panel=PACE,
        ),
    ] = None
    wave_target_ms: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="MS",
            help="How long a wave should take; the transactions in flight follow, unless --max-pending is given.",
            rich_help_panel=PACE,
        ),
    ] = round(1000 * DEFAULTS.wave_target_s)
    slots: Slots = None
    commit_group_max: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most transactions in one commit.", rich_help_panel=PACE)
    ] = DEFAULTS.commit_group_max
    max_attempts: MaxAttempts = DEFAULTS.max_attempts
    on_poison: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="What becomes of a batch that fails on every attempt: halt the run, or quarantine the batch: commit "
            "its transaction empty and keep it for `txbatch quarantine`.",
            rich_help_panel=FAILURES,
        ),
    ] = DEFAULTS.on_poison
    max_quarantined: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Most quarantined batches; poison beyond them halts the run.",
            rich_help_panel=FAILURES,
        ),
    ] = DEFAULTS.max_quarantined
    adopt: Adopt = None
    accept_state_changes: Annotated[
        bool,
        typer.Option(
            "--accept-state-changes",
            help="Continue even if a state is no longer declared, or is declared with other types.",
            rich_help_panel=CONTINUING,
        ),
    ] = False
    durability: Level = None
    durability_replicas: Annotated[
        int,
        typer.Option(
            "--durability-replicas",
            min=1,
            metavar="N",
            help="Replicas that have to confirm, with --durability replica.",
            rich_help_panel=SERVER,
        ),
    ] = DEFAULTS.durability_replicas
    history: Annotated[
        int,
        typer.Option(
            "--history",
            min=0,
            metavar="N",
            help="How many transactions keep their receipt, metadata and story, for `txbatch inspect`.",
            rich_help_panel=SERVER,
        ),
    ] = DEFAULTS.history
    pulse: Annotated[
        bool,
        typer.Option(
            "--pulse/--no-pulse",
            help="Whether to tell the server, once a second, what the run is doing.",
            rich_help_panel=SERVER,
        ),
    ] = True

    def options(self) -> RunOptions:
        """Returns the options of the run.

        Raises:
            TopologyError: one cannot be used.
        """
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return RunOptions(
            max_spout_pending=given.pop("max_pending"),
            wave_target_s=given.pop("wave_target_ms") / 1000,
            adopt=_adopted(given.pop("adopt")),
            **given,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepublishOptions:
    """What a run that publishes again accepts and asks for."""

    adopt: Adopt = None
    accept_state_changes: Annotated[
        bool,
        typer.Option(
            "--accept-state-changes",
            help="As for `txbatch run`: accept that states have changed.",
            rich_help_panel=CONTINUING,
        ),
    ] = False
    durability: Level = None

    def options(self, *, max_attempts: int = DEFAULTS.max_attempts) -> RunOptions:
        """Returns the options of the run.

        Raises:
            TopologyError: one cannot be used.
        """
        return RunOptions(
            max_attempts=max_attempts,
            adopt=_adopted(self.adopt),
            accept_state_changes=self.accept_state_changes,
            durability=self.durability,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOptions:
    """How a run ends."""

    stop_when_idle: Annotated[
        bool,
        typer.Option(
            "--stop-when-idle",
            help="End a plain topology once its spouts have nothing more to emit.",
            rich_help_panel=ENDING,
        ),
    ] = False
    stop_timeout: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="Longest time from SIGTERM to the end of the process.",
            rich_help_panel=ENDING,
        ),
    ] = STOP_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverOptions:
    """What observes a run."""

    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Serve /metrics for Prometheus, /healthz and /readyz while the run lasts; 0 takes a free port and "
            "says which.",
            rich_help_panel=WATCHING,
        ),
    ] = None
    metrics_host: Annotated[
        str,
        typer.Option(
            "--metrics-host",
            metavar="HOST",
            help="Address to serve them on; 0.0.0.0 for a container.",
            rich_help_panel=WATCHING,
        ),
    ] = DEFAULT_HOST
    traces: Annotated[
        bool,
        typer.Option(
            "--traces",
            help="Make an OpenTelemetry span of each transaction and attempt, for the SDK of this process.",
            rich_help_panel=WATCHING,
        ),
    ] = False


class RunArguments(TyperCommand):
    """Lets ``--adopt`` stand alone, for which the option parser would demand a value; groups options in the help."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            panel = "Arguments" if parameter.param_type_name == "argument" else "Options"
            shown = parameter.get_help_record(ctx)
            if shown is not None:
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or panel, []).append(shown)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        with errors_reported():
            _refuse_detached_words(args[:end])
        options = [f"--adopt={ADOPTS_UNCHANGED}" if argument == "--adopt" else argument for argument in args[:end]]
        return super().parse_args(ctx, [*options, *args[end:]])


def _refuse_detached_words(arguments: list[str]) -> None:
    for option, words in pairwise(arguments):
        if option == "--adopt" and set(words.split(",")) <= ADOPT_WORDS.keys():
            raise TopologyError(f"--adopt takes its words after an equals sign; write --adopt={words}")


def _adopted(given: str | None) -> bool | str:
    """Returns ``--adopt`` as `RunOptions.adopt` takes it."""
    if given is None:
        return False
    return True if given == ADOPTS_UNCHANGED else given
