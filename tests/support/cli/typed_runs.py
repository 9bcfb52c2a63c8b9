"""Runs of the command line without Spark: as they are typed, and what stands in for the run."""

from __future__ import annotations

import os
import signal
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from coordinator.operating.cli.run_command import TypedRun
from coordinator.run_request import RunRequest
from coordinator.server_choice import ServerChoice
from coordinator.watching.statistics.run_statistics import RunStatistics


def typed_run(**changes: Any) -> TypedRun:
    """A run of the job of lines; `changes` are fields of `TypedRun` or of its request."""
    asked: dict[str, Any] = {"server": ServerChoice(None, Path("data")), "master": "local[2]", "conf": {}}
    asked |= {entry.name: changes.pop(entry.name) for entry in fields(RunRequest) if entry.name in changes}
    typed: dict[str, Any] = {"target": "job_of_lines:topology", "parameters": {}, "as_json": True}
    return TypedRun(**{**typed, **changes}, request=RunRequest(**asked))


class FakeRunner:
    """Runs nothing: sends signals to this process, then returns statistics; for `run_as`, and `run_plain` with `kind`.

    Attributes:
        topology, asked: what it was given; None before.
        drain_count: how often it was drained.
    """

    def __init__(self, *signals: int, kind: Any = RunStatistics, before_start: bool = False, **statistics: Any) -> None:
        self.signals, self.before_start = signals, before_start
        if kind is RunStatistics:  # a run that has committed has written something
            statistics = {"changes": statistics.get("committed", 0), **statistics}
        self.statistics = kind(**statistics)
        self.topology: Any = None
        self.asked: Any = None
        self.drain_count = 0

    def drain(self) -> None:
        self.drain_count += 1

    def __call__(self, topology: Any, request: RunRequest | None = None, **arguments: Any) -> Any:
        self.topology, self.asked = topology, request or SimpleNamespace(**arguments)
        if not self.before_start:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # as Spark's start, which puts its own
            self.asked.on_start(self)
        for number in self.signals:
            os.kill(os.getpid(), number)
        if isinstance(self.statistics, RunStatistics) and self.statistics.attempts:
            self.asked.on_progress(self.statistics)
        return self.statistics


def never(*_: object, **__: object) -> Any:
    """Stands in for the runner of the other kind of topology."""
    raise AssertionError("this topology is of the other kind")
