"""The commands of ``txbatch``, grouped by purpose; each is imported when it is first needed.

So ``txbatch --help`` imports none of them, and a command imports nothing that only others need.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coordinator.operating.cli.terminal import say

PLACES = {
    "Start": {
        "init": ("commands.setup:init", "Write a small project into a new folder"),
        "doctor": ("commands.examine:doctor", "Examine server, Spark, machine and code before a run"),
        "acl": ("commands.setup:acl", "Print a line for the server's ACL file"),
        "run": ("commands.run:app", "Run a topology"),
    },
    "Look": {
        "list": ("commands.list_topologies:list_topologies", "List the topologies on a server"),
        "status": ("commands.status:status", "Show what is committed, and what the topology's run is doing"),
        "inspect": ("commands.inspect:inspect", "Show one transaction"),
        "why": ("commands.why:why", "Show which transactions changed one value"),
        "state": (
            "commands.state:app",
            "Look at a topology's state, export it, put an export back, rename a state or compute it again",
        ),
        "ui": ("commands.ui:ui", "Serve a dashboard of the topologies on a server"),
        "explain": ("commands.explain:explain", "Explain an error"),
    },
    "Repair": {
        "verify": ("commands.examine:verify", "Check that the records of a topology are undamaged"),
        "quarantine": ("commands.quarantine:app", "Look at quarantined batches, republish or drop them"),
        "dead-letters": (
            "commands.dead_letters:app",
            "Look at the tuples that bolts and sources have refused, export, republish or drop them",
        ),
        "drop": ("commands.drop:drop", "Delete a topology's state and everything txbatch stores about it"),
    },
    "Develop": {
        "plan": ("commands.plan:plan", "Show how a run would execute a topology"),
        "dry-run": (
            "commands.dry_run:dry_run",
            "Run batches in this process, or a transaction again, and show every component's tuples",
        ),
        "prove": ("commands.prove:prove", "Play a topology under faults, and name what its code does wrong"),
        "bench": ("commands.checkout:bench", "Run the benchmark of this checkout"),
    },
}
"""Purpose -> command -> (its module and function, the beginning of its help)."""


class Commands(Mapping[str, Any]):
    """Name -> command; each is imported when it is first looked up."""

    def __init__(self) -> None:
        self._places = {name: place for commands in PLACES.values() for name, (place, _) in commands.items()}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _loaded(name, self._places[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _loaded(name: str, place: str) -> Any:
    """Imports a command, which Ctrl-C may interrupt."""
    module, _, attribute = place.partition(":")
    try:
        found = getattr(importlib.import_module(f"coordinator.operating.cli.{module}"), attribute)
    except KeyboardInterrupt:
        raise InterruptedError from None  # Typer handles KeyboardInterrupt in its own way
    if not isinstance(found, typer.Typer):
        found, command = typer.Typer(add_completion=False, rich_markup_mode=None), found
        found.command(name)(command)
    made = typer.main.get_command(found)
    made.name = name
    return made


class CommandsByPurpose(TyperGroup):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = Commands()

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        for purpose, commands in PLACES.items():
            with formatter.section(purpose):
                formatter.write_dl([(name, summary) for name, (_, summary) in commands.items()])


app = typer.Typer(
    name="txbatch",
    cls=CommandsByPurpose,
    help="Exactly-once batch jobs on PySpark, with their state in Redis.",
    epilog="Exit codes: 0 done · 1 the job failed · 2 wrong usage, or a topology that cannot run correctly · "
    "3 fenced, a newer run took over: do not restart · 4 the state was refused or is unreachable · "
    "5 Spark failed or is gone · "
    "130, 143 stopped by Ctrl-C or SIGTERM before the end of the input: run again to continue.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            say(f"txbatch {version('txbatch')}")
        except PackageNotFoundError:
            say("txbatch, not installed")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of every command."""
