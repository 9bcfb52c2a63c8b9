"""What a driver process is told, and what it leaves about itself."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Fate:
    """A signal that the process sends itself: at which visit, counted from 1, of which fault point.

    Attributes:
        point: one of `state.fault_points.POINTS`.
        visit: which one.
        signal_number: SIGKILL, or SIGSTOP for a zombie.
        repeats: whether it is the same again after as many visits; such a fate sleeps until `Notes.stir`.
    """

    point: str
    visit: int
    signal_number: int = signal.SIGKILL
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class DriverSpec:
    """One driver process.

    Attributes:
        url: of the server.
        topology_id: of the run.
        kind, reads, end_path: see `ledger_job.topology`.
        notes_path: where it writes what became of it.
        history_path: where it writes down its commits; empty for nowhere.
        seed: of attempt ids and of the order of frames.
        max_pending, commit_group_max, early_commit: see `RunOptions`.
        socket_timeout_s: how long a call waits for its answer before it is repeated.
        fate: where it ends or stops by itself.
        bug: one of `planted_bugs.BUGS`; empty for none.
        master: of Spark; empty for the engine in the process itself.
        conf: settings of Spark.
        drops: whether it drops the topology instead of running it.
    """

    url: str
    topology_id: str
    kind: str
    reads: bool
    end_path: str
    notes_path: str
    seed: int
    max_pending: int = 8
    commit_group_max: int = 8
    early_commit: bool = True
    socket_timeout_s: float = 30.0
    fate: Fate | None = None
    bug: str = ""
    master: str = ""
    conf: tuple[str, ...] = ()
    drops: bool = False
    history_path: str = ""

    def to_line(self) -> str:
        """As one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Reads what `to_line` wrote."""
        given: dict[str, Any] = json.loads(line)
        fate = given.pop("fate")
        conf = tuple(given.pop("conf"))
        return cls(**given, conf=conf, fate=None if fate is None else Fate(**fate))


class Notes:
    """What a driver process notes of itself, a line each; times are of the machine's monotonic clock."""

    def __init__(self, path: str) -> None:
        self._path, self._stirred = Path(path), Path(f"{path}.stirred")

    def add(self, what: str, **more: Any) -> None:
        """Notes something; it is in the file when this returns, whatever becomes of the process."""
        line = json.dumps({"what": what, "at_s": time.monotonic(), **more})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def stir(self) -> None:
        """Wakes the fate of a process that repeats; called by others."""
        self._stirred.touch()

    def calm(self) -> None:
        """Has the process run on undisturbed; called by others."""
        self._stirred.unlink(missing_ok=True)

    def is_stirred(self) -> bool:
        """Whether it was woken."""
        return self._stirred.exists()

    def all(self) -> dict[str, dict[str, Any]]:
        """What was noted -> the last note of that kind."""
        if not self._path.exists():
            return {}
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return {note["what"]: note for note in map(json.loads, lines)}


def fate_visit(fate: Fate, notes: Notes) -> Callable[[str], None]:
    """What `fault_points.install` gets in a process that has a fate."""
    left = fate.visit

    def visit(point: str) -> None:
        nonlocal left
        if point != fate.point or left == 0 or (fate.repeats and not notes.is_stirred()):
            return
        left -= 1
        if left == 0:
            left = fate.visit if fate.repeats else 0
            notes.add("fate", point=point)
            os.kill(os.getpid(), fate.signal_number)

    return visit
