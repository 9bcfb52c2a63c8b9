"""The results of a run, kept as JSON after every measurement, so that a run may stop anywhere and continue later.

Figures of different machines, versions or settings are never mixed: the file says under which it was begun.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.suite.cells import Cell, Measurement

SAME = ("machine", "versions", "settings", "code")
"""The parts of `about` that have to be the same for all measurements of a file."""


class ResultsError(Exception):
    """A results file cannot be used; the message says why and what to do."""


@dataclass(slots=True)
class Round:
    """One measurement of a cell.

    Attributes:
        measurement: what was measured.
        load: load average of the machine when it ended.
        at: when it ended, in ISO form.
    """

    measurement: Measurement
    load: float
    at: str


@dataclass(slots=True)
class CellResults:
    """All measurements of a cell.

    Attributes:
        cell: what was measured.
        rounds: the measurements, oldest first.
        arrivals_per_s: of a latency cell: the same in all rounds; 0 until the first.
        failure: why the last attempt failed; empty if it did not.
    """

    cell: Cell
    rounds: list[Round] = field(default_factory=list)
    arrivals_per_s: float = 0.0
    failure: str = ""


class Results:
    """The results file.

    Args:
        path: of the file; its folder has to exist.
        about: facts of this run; see `machine.facts`.
        cells: what was measured so far, by the cell's key.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], cells: Mapping[str, CellResults]) -> None:
        self.path, self.about = path, about
        self._cells = dict(cells)

    @classmethod
    def opened(cls, path: Path, about: Mapping[str, Any]) -> Results:
        """Returns the results of an earlier run to be continued, or new ones.

        Raises:
            ResultsError: the file was begun under other circumstances, or is none of ours.
        """
        if not path.exists():
            return cls(path, about, {})
        found = cls.read(path)
        for name in SAME:
            if found.about.get(name) != about.get(name):
                raise ResultsError(
                    f"results in {str(path)!r} were measured with other {name}: "
                    f"{_difference(found.about, about, name)}; "
                    "continue them as they were begun, or name another file with --results"
                )
        return found

    @classmethod
    def read(cls, path: Path) -> Results:
        """Returns the results of a file.

        Raises:
            ResultsError: it is none of ours.
        """
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return cls(path, stored["about"], {key: _cell_results(entry) for key, entry in stored["cells"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(
                f"results in {str(path)!r} cannot be read ({error!r}); name another file with --results"
            ) from error

    def of(self, cell: Cell) -> CellResults:
        """Returns a cell's results, which may be empty."""
        return self._cells.setdefault(cell.key, CellResults(cell))

    def __iter__(self) -> Iterator[CellResults]:
        """Every cell that was measured or tried."""
        return (found for found in self._cells.values() if found.rounds or found.failure)

    def save(self) -> None:
        """Writes the file, whole or not at all."""
        entries = {found.cell.key: asdict(found) for found in self}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"about": self.about, "cells": entries}, indent=1), encoding="utf-8")
        os.replace(part, self.path)  # noqa: PTH105 - one step


def _cell_results(entry: Mapping[str, Any]) -> CellResults:
    rounds = [
        Round(Measurement.from_fields(found["measurement"]), found["load"], found["at"]) for found in entry["rounds"]
    ]
    return CellResults(Cell(**entry["cell"]), rounds, entry["arrivals_per_s"], entry["failure"])


def _difference(before: Mapping[str, Any], now: Mapping[str, Any], name: str) -> str:
    """Returns the first difference, by name if both are tables."""
    old, new = before.get(name), now.get(name)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return f"{key} was {old.get(key)!r}, is {new.get(key)!r}"
    return f"was {old!r}, is {new!r}"
