"""Shows the progress of a run on standard error: a live line on a terminal, a line every few seconds elsewhere.

It begins at once with the steps of the start, and then shows what is committed.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Self, TextIO, TypeVar

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Task as ProgressTask
from rich.text import Text

from coordinator.operating.cli.figures import ShownFigures
from coordinator.operating.cli.terminal import console, say
from state.printable import SENTENCE_LIMIT, one_line

SENTENCE_EVERY_S = 5.0
BAR_WIDTH = 16
ELAPSED_WIDTH = 7
GAPS_WIDTH = 5
"""The spinner, and the spaces between the columns."""
FIRST_WAVE = "running the first wave"
Statistics = TypeVar("Statistics")


class RunProgress(ABC, Generic[Statistics]):
    """Shows the progress of a run; entered before the run starts and left after it has ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(is_done=error is None)

    def starting(self, step: str) -> None:
        """Called before each step of the start, with a description of the step."""
        self.say(step)

    @abstractmethod
    def begun(self) -> None:
        """Called once, when Spark is up and the run owns the topology."""

    @abstractmethod
    def update(self, statistics: Statistics) -> None:
        """Called after every event of the run."""

    @abstractmethod
    def say(self, sentence: str) -> None:
        """Shows a sentence."""

    @abstractmethod
    def note(self, sentence: str) -> None:
        """Shows a sentence that stays."""

    @abstractmethod
    def close(self, *, is_done: bool) -> None:
        """Called once, when the run is done or has failed; nothing is shown afterwards."""


class SentenceProgress(RunProgress[Statistics]):
    """Prints a sentence at the start, every few seconds, and at the end.

    With `is_log`, the sentences are log records, and another record has the result of a run that ends well.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        clock: Callable[[], float],
        figures: ShownFigures[Statistics],
        *,
        is_log: bool = False,
    ) -> None:
        self._write, self._clock, self._figures, self._is_log = write, clock, figures, is_log
        self._said_s = clock()

    def __enter__(self) -> Self:
        if not self._is_log:
            self.say("starting")
        return self

    def begun(self) -> None:
        self.say("running")

    def update(self, statistics: Statistics) -> None:
        self._figures.update(statistics)
        if self._clock() - self._said_s >= SENTENCE_EVERY_S:
            self.say(self._figures.line())

    def say(self, sentence: str) -> None:
        self._said_s = self._clock()
        self._write(sentence)

    def note(self, sentence: str) -> None:
        self.say(sentence)

    def close(self, *, is_done: bool) -> None:
        says_result = not self._is_log if is_done else self._figures.has_result()
        if says_result:
            self.say(self._figures.summary())


class LiveProgress(RunProgress[Statistics]):
    """Shows one live line: the step of the start, then figures, with a bar if the size of the input is known.

    With `leaves_line`, a summary replaces the line at the end, because nothing else prints a summary.
    """

    def __init__(self, name: str, console: Console, figures: ShownFigures[Statistics], *, leaves_line: bool) -> None:
        self._leaves_line = leaves_line
        self._figures = figures
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _BarIfSized(),
            _FiguresColumn(self._figures, console),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            refresh_per_second=5,
            redirect_stdout=False,
        )
        self._name = name
        self._task = self._live.add_task(f"{name}: starting", total=None)
        self._shows_first_wave = False

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def begun(self) -> None:
        self.say(FIRST_WAVE)
        self._shows_first_wave = True

    def update(self, statistics: Statistics) -> None:
        self._figures.update(statistics)
        if self._shows_first_wave and self._figures.has_ended_first_wave():
            self._shows_first_wave = False
            self._live.update(self._task, description=self._name)
        fraction = self._figures.fraction()
        if fraction is not None:
            self._live.update(self._task, total=1.0, completed=fraction)

    def say(self, sentence: str) -> None:
        self._shows_first_wave = False  # a later sentence, such as that the run is ending, stays
        self._live.update(self._task, description=one_line(f"{self._name}: {sentence}"))
        self._live.refresh()

    def note(self, sentence: str) -> None:
        self._live.console.print(Text(one_line(f"{self._name}: {sentence}", SENTENCE_LIMIT)), soft_wrap=True)

    def close(self, *, is_done: bool) -> None:
        self._live.stop()
        if (is_done and self._leaves_line) or (not is_done and self._figures.has_result()):
            self._live.console.print(Text(f"{self._name}: {self._figures.summary()}"), soft_wrap=True)


class _BarIfSized(ProgressColumn):
    """A bar, unless the size of the input is unknown: a pulsing bar would show nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._bar = BarColumn(bar_width=BAR_WIDTH)

    def render(self, task: ProgressTask) -> RenderableType:
        return Text() if task.total is None else self._bar.render(task)


class _FiguresColumn(TextColumn, Generic[Statistics]):
    """As many figures as the terminal has room for."""

    def __init__(self, figures: ShownFigures[Statistics], console: Console) -> None:
        super().__init__("")
        self._figures, self._console = figures, console

    def render(self, task: ProgressTask) -> Text:
        bar_width = 0 if task.total is None else BAR_WIDTH
        room = self._console.width - len(task.description) - bar_width - ELAPSED_WIDTH - GAPS_WIDTH
        return Text(fitted(self._figures.parts(), room), no_wrap=True)


def fitted(parts: Sequence[str], width: int) -> str:
    """Joins as many parts, from the first on, as fit into the width in characters, but at least one."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else part
        if line and len(longer) > width:
            break
        line = longer
    return line


def progress_on_stderr(
    name: str, clock: Callable[[], float], figures: ShownFigures[Statistics], *, leaves_line: bool
) -> RunProgress[Statistics]:
    """Returns a live line if standard error is a terminal, otherwise single sentences; see `LiveProgress`."""
    screen = console(stderr=True)
    if screen.is_terminal and not screen.is_dumb_terminal:
        return LiveProgress(name, screen, figures, leaves_line=leaves_line)
    return SentenceProgress(line_writer(name, sys.stderr), clock, figures)


def line_writer(name: str, stream: TextIO) -> Callable[[str], None]:
    """Returns a function that prints a sentence as a line that begins with the topology id."""
    return lambda sentence: say(f"{name}: {sentence}", to=stream, flush=True)
