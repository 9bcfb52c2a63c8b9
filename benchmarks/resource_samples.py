"""Samples of what a run uses, kept so that a run of any length has a bounded number of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process_tree import Role, Usage

MOST_SAMPLES = 2000
MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a run.

    Attributes:
        at_s: seconds since the first sample.
        committed: transactions committed so far.
        usage: what each role used.
        spark_files: files in Spark's local folder.
        spark_bytes: their size.
        server_bytes: size of the server's data on disk.
    """

    at_s: float
    committed: int
    usage: Mapping[Role, Usage]
    spark_files: int
    spark_bytes: int
    server_bytes: int


class Samples:
    """The samples of a run: evenly spaced, and at most `most` however long it takes.

    Once there are too many, every other one is dropped, and from then on every other one is taken.

    Args:
        most: an even number.
    """

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self._most = most
        self._offered, self._step = 0, 1
        self.kept: list[Sample] = []

    def add(self, sample: Sample) -> None:
        """Keeps a sample, if it is its turn."""
        if self._offered % self._step == 0:
            self.kept.append(sample)
        self._offered += 1
        if len(self.kept) > self._most:
            self.kept = self.kept[::2]
            self._step *= 2


def at_marks(samples: Sequence[Sample], limit: int) -> list[Sample]:
    """Returns the first sample at or after each mark, or else the last one."""
    return [next((sample for sample in samples if sample.committed >= mark * limit), samples[-1]) for mark in MARKS]


def folder_size(folder: Path) -> tuple[int, int]:
    """Returns number and total size of a folder's files, without those that vanish meanwhile."""
    count = size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.stat(Path(place) / name).st_size  # noqa: PTH116 - a socket has a size, too
            except OSError:
                continue
            count += 1
    return count, size
