"""The only way to print to standard output and error: quoted text cannot break a line of the caller's.

Every command prints here, so that no stored field, value or message can recolour the terminal, reverse its text, or
pass for another line. A test forbids other ways.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, redirect_stdout
from typing import IO, TYPE_CHECKING, Any, TextIO

from state.printable import json_line, printable

if TYPE_CHECKING:
    from rich.console import Console


def say(*lines: str, to: TextIO | None = None, end: str = "\n", flush: bool = False) -> None:
    """Writes each argument as one line; the only control characters kept are tabs.

    The caller splits its own text at line breaks.
    """
    print("\n".join(printable(line, kept="\t") for line in lines), file=to or sys.stdout, end=end, flush=flush)


def say_json(
    value: Any, *, to: TextIO | None = None, default: Callable[[Any], Any] | None = None, flush: bool = False
) -> None:
    """Writes a value as one line of JSON; for `default` see `json.dumps`."""
    print(json_line(value, default=default), file=to or sys.stdout, flush=flush)


def without(hidden: Mapping[str, str], text: str) -> str:
    for secret, instead in hidden.items():
        text = text.replace(secret, instead)
    return text


def ask(question: str) -> bool:
    """Asks on the terminal.

    Raises:
        TopologyError: standard input is not a terminal.
    """
    from state.errors import TopologyError  # here: `txbatch --help` waits for nothing

    if not sys.stdin.isatty():
        raise TopologyError(f"{question} Standard input is not a terminal to ask on; give --yes to delete")
    say(f"{question} [y/N] ", end="", to=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def user_output_aside() -> AbstractContextManager[TextIO]:
    """Sends output of user code in the block to standard error: standard output is for the result."""
    return redirect_stdout(sys.stderr)


def copy_out(source: IO[bytes]) -> None:
    """Copies the content of a file to standard output: an export, whose lines are safe as they are."""
    shutil.copyfileobj(source, sys.stdout.buffer)
    sys.stdout.flush()


def console(*, stderr: bool = False) -> Console:
    """Returns a console for live displays; only its own control sequences reach the terminal."""
    from rich.console import Console, ConsoleOptions, RenderableType  # here: most commands draw nothing
    from rich.segment import Segment

    class Screen(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text, kept="\n"), style, control)

    return Screen(stderr=stderr, highlight=False)
