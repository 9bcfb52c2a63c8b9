"""The options of a run, for ``txbatch run`` and the commands that republish."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Any

from typer.core import TyperCommand

from coordinator.operating.cli.command import SERVER, SPARK, WATCHING, Level, Slots, option
from coordinator.operating.cli.exits import errors_reported
from coordinator.operating.cli.signals import STOP_TIMEOUT_S
from coordinator.transactional.options import ADOPT_WORDS, RunOptions
from coordinator.watching.telemetry.metrics_server import DEFAULT_HOST
from state.errors import TopologyError

PACE = "Pace"
FAILURES = "Failures"
CONTINUING = "Continuing after a change"
ENDING = "Ending"
DEFAULTS = RunOptions()
ADOPTS_UNCHANGED = "unchanged"
"""The value of a bare ``--adopt``: the input read so far is unchanged, and nothing is skipped or read again."""


_TYPED = {
    "max_spout_pending": "max-pending",
    "wave_target_s": "wave-target-ms",
    "commit_target_s": "commit-target-ms",
    "executors_timeout_s": "executors-timeout",
    "pulse": "no-pulse",
}
"""Field of `RunOptions` -> name of its option, where the two differ."""


def options_given(options: RunOptions) -> list[str]:
    """Returns the options that differ from their defaults, as they are typed."""
    names = [entry.name for entry in fields(options) if getattr(options, entry.name) != getattr(DEFAULTS, entry.name)]
    return [f"--{_TYPED.get(name, name).replace('_', '-')}" for name in names]


def at_least(least: int, *names: str, panel: str, help: str) -> Any:  # noqa: A002 - typer's name
    return option(*names, panel=panel, min=least, metavar="N", help=help)


MaxAttempts = Annotated[
    int, at_least(1, "--max-attempts", panel=FAILURES, help="Attempts at a transaction before it is given up.")
]
Adopt = Annotated[
    str | None,
    option(
        "--adopt",
        panel=CONTINUING,
        metavar="[=WORDS]",
        help="Continue on another input, provided that everything read so far is unchanged and nothing would be "
        "skipped or read again. To accept more, name it: --adopt=skip, again, changed, renamed or unchecked, "
        "separated by commas. A start without the option says which words it needs, or that none will do.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """The limits of a run, and the changes that it accepts; becomes a `RunOptions`."""

    max_pending: Annotated[
        int | None,
        at_least(1, panel=PACE, help="Most transactions in flight. [default: as --wave-target-ms wants]"),
    ] = None
    wave_target_ms: Annotated[
        int,
        option(
            panel=PACE,
            min=1,
            metavar="MS",
            help="How long a wave should take; the transactions in flight follow, unless --max-pending is given.",
        ),
    ] = round(1000 * DEFAULTS.wave_target_s)
    slots: Slots = None
    executors_timeout: Annotated[
        float,
        option(
            panel=SPARK,
            min=1,
            metavar="SECONDS",
            help="Longest wait for an executor; then the run ends with exit code 5.",
        ),
    ] = DEFAULTS.executors_timeout_s
    commit_group_max: Annotated[int, at_least(1, panel=PACE, help="Most transactions in one commit.")] = (
        DEFAULTS.commit_group_max
    )
    commit_target_ms: Annotated[
        int,
        option(
            panel=PACE,
            min=0,
            metavar="MS",
            help="How long the call that commits a group may keep the server busy, and its other clients waiting; 0 "
            "sets no limit.",
        ),
    ] = round(1000 * (DEFAULTS.commit_target_s or 0))
    max_attempts: MaxAttempts = DEFAULTS.max_attempts
    on_poison: Annotated[
        str,
        option(
            panel=FAILURES,
            metavar="WORD",
            help="What to do with a batch that fails on every attempt: halt the run, or quarantine the batch: commit "
            "its transaction empty and keep it for `txbatch quarantine`.",
        ),
    ] = DEFAULTS.on_poison
    max_quarantined: Annotated[
        int,
        at_least(1, panel=FAILURES, help="Most quarantined batches; poison beyond them halts the run."),
    ] = DEFAULTS.max_quarantined
    max_bad_fraction: Annotated[
        float | None,
        option(
            panel=FAILURES,
            min=0,
            max=1,
            metavar="F",
            help="End the run before more than this part of the records it has read is bad, as 0.01; from 100 records "
            "on. [default: no limit]",
        ),
    ] = DEFAULTS.max_bad_fraction
    adopt: Adopt = None
    accept_state_changes: Annotated[
        bool,
        option(
            "--accept-state-changes",
            panel=CONTINUING,
            help="Continue even if a state is no longer declared, or is declared with other types.",
        ),
    ] = False
    durability: Level = None
    durability_replicas: Annotated[
        int, at_least(1, panel=SERVER, help="Replicas that have to confirm, with --durability replica.")
    ] = DEFAULTS.durability_replicas
    history: Annotated[
        int,
        at_least(
            0,
            panel=SERVER,
            help="How many transactions keep their receipt, metadata and story, for `txbatch inspect`.",
        ),
    ] = DEFAULTS.history
    pulse: Annotated[
        bool,
        option(
            "--pulse/--no-pulse",
            panel=SERVER,
            help="Whether to tell the server, once a second, what the run is doing.",
        ),
    ] = True

    def options(self) -> RunOptions:
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return RunOptions(
            max_spout_pending=given.pop("max_pending"),
            wave_target_s=given.pop("wave_target_ms") / 1000,
            commit_target_s=given.pop("commit_target_ms") / 1000,
            adopt=_adopted(given.pop("adopt")),
            executors_timeout_s=given.pop("executors_timeout"),
            **given,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepublishOptions:
    """The options of a run that republishes."""

    adopt: Adopt = None
    accept_state_changes: Annotated[
        bool,
        option(
            "--accept-state-changes",
            panel=CONTINUING,
            help="As for `txbatch run`: accept that states have changed.",
        ),
    ] = False
    durability: Level = None

    def options(self, *, max_attempts: int = DEFAULTS.max_attempts) -> RunOptions:
        return RunOptions(
            max_attempts=max_attempts,
            adopt=_adopted(self.adopt),
            accept_state_changes=self.accept_state_changes,
            durability=self.durability,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOptions:
    stop_when_idle: Annotated[
        bool,
        option(
            "--stop-when-idle",
            panel=ENDING,
            help="End a plain topology once its spouts have nothing more to emit.",
        ),
    ] = False
    stop_timeout: Annotated[
        float,
        option(
            panel=ENDING,
            min=1,
            metavar="SECONDS",
            help="Longest time from SIGTERM to the end of the process.",
        ),
    ] = STOP_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverOptions:
    metrics_port: Annotated[
        int | None,
        option(
            panel=WATCHING,
            min=0,
            max=65535,
            metavar="PORT",
            help="Serve /metrics for Prometheus, /healthz and /readyz while the run lasts; 0 takes a free port and "
            "says which.",
        ),
    ] = None
    metrics_host: Annotated[
        str, option(panel=WATCHING, metavar="HOST", help="Address to serve them on; 0.0.0.0 for a container.")
    ] = DEFAULT_HOST
    traces: Annotated[
        bool,
        option(
            "--traces",
            panel=WATCHING,
            help="Make an OpenTelemetry span of each transaction and attempt, for the SDK of this process.",
        ),
    ] = False


class RunArguments(TyperCommand):
    """Allows ``--adopt`` without a value, which the option parser would demand; groups options in the help."""

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
    for typed, words in pairwise(arguments):
        if typed == "--adopt" and set(words.split(",")) <= ADOPT_WORDS.keys():
            raise TopologyError(f"--adopt takes its words after an equals sign; write --adopt={words}")


def _adopted(given: str | None) -> bool | str:
    """Returns the value of ``--adopt`` for `RunOptions.adopt`."""
    if given is None:
        return False
    return True if given == ADOPTS_UNCHANGED else given
