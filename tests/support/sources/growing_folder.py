"""A followed folder for tests: whole runs over it on LocalCluster, files put into it, and moments to interfere at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import LocalCluster, RunOptions, Topology, TransactionalRun
from coordinator.sources import Follow, TextFiles
from state import ListState
from state.fault_points import installed
from tests.support.topologies.components import collecting


class Keep(BaseBatchBolt, ICommitter):
    """Appends every line to a list; raises at one it was told to."""

    lines = ListState("lines", value=str)
    hated: ClassVar[str] = ""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.mine: list[str] = []

    def execute(self, tup):
        if tup["line"] == Keep.hated:
            raise ValueError("a line nobody likes")
        self.mine.append(tup["line"])

    def finish_batch(self):
        self.lines.extend(self.mine)


class KeepNumbers(Keep):
    """Appends the number of every line in its file, too."""

    numbers = ListState("numbers", value=int)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.found: list[int] = []

    def execute(self, tup):
        super().execute(tup)
        self.found.append(tup["line_number"])

    def finish_batch(self):
        super().finish_batch()
        self.numbers.extend(self.found)


def submit(
    cluster: LocalCluster,
    inbox: Path,
    *,
    lines_per_batch: int = 3,
    parallelism: int = 1,
    adopt: str | bool = False,
    on_poison: str = "halt",
    **more: Any,
) -> TransactionalRun:
    topology = growing(inbox, lines_per_batch=lines_per_batch, parallelism=parallelism, **more)
    options = RunOptions(max_spout_pending=2, adopt=adopt, on_poison=on_poison, retry_backoff_s=0.0)
    return cluster.submit(topology, options=options)


def settled(cluster: LocalCluster, inbox: Path, **more: Any) -> TransactionalRun:
    """A run that has committed whatever is there."""
    run = submit(cluster, inbox, **more)
    run.run_until_idle()
    return run


def idle_lines(run: TransactionalRun) -> list[str]:
    """What was ever committed, in its order, once the run finds nothing more."""
    run.run_until_idle()
    lines: list[str] = run.state("lines")
    return lines


def growing(
    inbox: Path,
    *,
    topology_id: str = "growing",
    pattern: str = "*.txt",
    lines_per_batch: int = 3,
    parallelism: int = 1,
    with_numbers: bool = False,
    filesystem: Any = None,
    **follow: Any,
) -> Topology:
    given: dict[str, Any] = {"complete": "rename", "poll_s": 0.0} | follow
    origin = ("line_number",) if with_numbers else ()
    more: dict[str, Any] = {"with_origin": origin, "filesystem": filesystem}
    spout = TextFiles(str(inbox / pattern), lines_per_batch, follow=Follow(**given), **more)
    return collecting(topology_id, spout, KeepNumbers() if with_numbers else Keep(), source="lines", tasks=parallelism)


def put(inbox: Path, name: str, *lines: str, pack: Any = bytes) -> Path:
    path = inbox / f"{name}.txt"
    path.with_suffix(".part").write_bytes(pack("".join(f"{line}\n" for line in lines).encode()))
    return path.with_suffix(".part").rename(path)


def committed(run: TransactionalRun) -> Counter[str]:
    return Counter(run.state("lines") or ())


def drained(run: TransactionalRun) -> Counter[str]:
    run.drain()
    run.run_until_idle()
    assert run.is_done
    assert not run.statistics.is_interrupted, "an input without an end is not interrupted by a drain"
    return committed(run)


class Crash(KeyboardInterrupt):
    """The end of a process, as a test sees it: no code of users or of ours stops it."""

    @staticmethod
    def happen() -> None:
        raise Crash


@contextmanager
def at_point(point: str, do: Callable[[], Any], *, visit: int = 1) -> Iterator[None]:
    """Has something done when a fault point is reached for the n-th time."""
    left = [visit]

    def reached(name: str) -> None:
        left[0] -= name == point
        if name == point and not left[0]:
            do()

    with installed(reached):
        yield


def files_below(folder: Path) -> list[Path]:
    """Every file in a folder and below, hidden ones too."""
    return sorted(path for path in folder.rglob("*") if path.is_file())
