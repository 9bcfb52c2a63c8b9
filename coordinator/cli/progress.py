"""Shows the progress of a run on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TextIO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Task as ProgressTask
from rich.text import Text

from coordinator.cli.figures import RunFigures

LINE_EVERY_S = 5.0
Statistics = TypeVar("Statistics")


class RunProgress(ABC, Generic[Statistics]):
    """Shows the progress of a run; entered before the run starts and left after it has ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(is_done=error is None)

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


class LineProgress(RunProgress[Statistics]):
    """Prints a line at the start, every few seconds, and at the end.

    Args:
        name: the topology id.
        stream: standard error.
        clock: the run's clock, in seconds.
        figures: of the run.
    """

    def __init__(self, name: str, stream: TextIO, clock: Callable[[], float], figures: RunFigures[Statistics]) -> None:
        self._name, self._stream, self._clock, self._figures = name, stream, clock, figures
        self._shown_s = clock()

    def __enter__(self) -> Self:
        self.say("starting")
        return self

    def begun(self) -> None:
        self.say("running")

    def update(self, statistics: Statistics) -> None:
        self._figures.update(statistics)
        if self._clock() - self._shown_s >= LINE_EVERY_S:
            self.say(self._figures.line())

    def say(self, sentence: str) -> None:
        self._shown_s = self._clock()
        print(f"{self._name}: {sentence}", file=self._stream, flush=True)

    def note(self, sentence: str) -> None:
        self.say(sentence)

    def close(self, *, is_done: bool) -> None:
        if is_done or self._figures.has_result():
            self.say(self._figures.summary())


class BarProgress(RunProgress[Statistics]):
    """Shows a bar with the current figures; while the size of the input is unknown, the bar only pulses.

    Args:
        name: the topology id.
        console: standard error.
        figures: of the run.
        leaves_line: replace the bar by a summary at the end, because nothing else prints one.
    """

    def __init__(self, name: str, console: Console, figures: RunFigures[Statistics], *, leaves_line: bool) -> None:
        self._leaves_line = leaves_line
        self._figures = figures
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            _FiguresColumn(self._figures),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            refresh_per_second=5,
            redirect_stdout=False,
        )
        self._name = name
        self._task = self._bar.add_task(f"{name}: starting", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def begun(self) -> None:
        self._bar.update(self._task, description=self._name)

    def update(self, statistics: Statistics) -> None:
        self._figures.update(statistics)
        fraction = self._figures.fraction()
        if fraction is not None:
            self._bar.update(self._task, total=1.0, completed=fraction)

    def say(self, sentence: str) -> None:
        self._bar.update(self._task, description=f"{self._name}: {sentence}")

    def note(self, sentence: str) -> None:
        self._bar.console.print(Text(f"{self._name}: {sentence}"), soft_wrap=True)

    def close(self, *, is_done: bool) -> None:
        self._bar.stop()
        if (is_done and self._leaves_line) or (not is_done and self._figures.has_result()):
            self._bar.console.print(Text(f"{self._name}: {self._figures.summary()}"), soft_wrap=True)


class _FiguresColumn(TextColumn, Generic[Statistics]):
    def __init__(self, figures: RunFigures[Statistics]) -> None:
        super().__init__("")
        self._figures = figures

    def render(self, task: ProgressTask) -> Text:
        return Text(self._figures.line()) if self._figures.has_begun() else Text()


def progress_on_stderr(
    name: str, clock: Callable[[], float], figures: RunFigures[Statistics], *, leaves_line: bool
) -> RunProgress[Statistics]:
    """Returns a bar if standard error is a terminal, else lines; see `BarProgress` and `LineProgress`."""
    console = Console(stderr=True, highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        return BarProgress(name, console, figures, leaves_line=leaves_line)
    return LineProgress(name, sys.stderr, clock, figures)
