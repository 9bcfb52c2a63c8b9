"""What is special about the arguments of ``txbatch run``: an option that may stand alone or carry words."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

ALONE = "unchanged"
"""What ``--adopt`` without a word stands for: what was read is unchanged, and nothing is skipped or read again."""


class RunArguments(TyperCommand):
    """Lets ``--adopt`` stand alone, which the option parser would take for an option that lacks its value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        options = [f"--adopt={ALONE}" if argument == "--adopt" else argument for argument in args[:end]]
        return super().parse_args(ctx, [*options, *args[end:]])


def adopt_option(given: str | None) -> bool | str:
    """The option as `RunOptions.adopt` takes it."""
    if given is None:
        return False
    return True if given == ALONE else given
