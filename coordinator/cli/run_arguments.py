"""Parses ``--adopt`` of ``txbatch run``, an option that may stand alone or have a value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from typer.core import TyperCommand

from coordinator.cli.exits import errors_reported
from coordinator.transactional.options import ADOPT_WORDS
from state.errors import TopologyError

ALONE = "unchanged"
"""The value of a bare ``--adopt``: what was read is unchanged, and nothing is skipped or read again."""


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
        options = [f"--adopt={ALONE}" if argument == "--adopt" else argument for argument in args[:end]]
        return super().parse_args(ctx, [*options, *args[end:]])


def _refuse_detached_words(arguments: list[str]) -> None:
    for option, words in pairwise(arguments):
        if option == "--adopt" and set(words.split(",")) <= ADOPT_WORDS.keys():
            raise TopologyError(f"--adopt takes its words after an equals sign; write --adopt={words}")


def adopt_option(given: str | None) -> bool | str:
    """Returns the option as `RunOptions.adopt` takes it."""
    if given is None:
        return False
    return True if given == ALONE else given
