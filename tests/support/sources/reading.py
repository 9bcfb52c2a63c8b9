"""Sources of files driven by hand: cut on the driver, read by one task, with everything that was emitted."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

from coordinated_bolt import TopologyContext
from coordinator import RunSoFar
from coordinator.sources.files.file_spout import FileSpout
from state import TransactionAttempt
from state.codec import pack_exact, unpack
from tests.support.sources.recorder import Recorder


def context(topology_id: str = "letters", *, task_index: int = 0, task_count: int = 1) -> TopologyContext:
    tasks, heard = {"lines": tuple(range(1, task_count + 1))}, {"dead_letters": ("repair",)}
    return TopologyContext(topology_id, "lines", task_index, task_count, task_index + 1, tasks, subscribers=heard)


def standing(coordinator: Any, last_txid: int = 0, last: Any = None, **more: Any) -> Any:
    """A coordinator that the run has told how far it is."""
    coordinator.run_so_far = RunSoFar(last_txid, last, **more)
    return coordinator


def cut(source: FileSpout, previous: Any = None, limit: int | None = None) -> list[Any]:
    """Transactions, as they are stored."""
    with closing(source.get_coordinator({}, context())) as coordinator:
        batches: list[Any] = []
        if previous is not None:
            standing(coordinator, 1, previous).resume()
        while coordinator.is_ready() and len(batches) != limit:
            previous = unpack(pack_exact(coordinator.initialize_transaction(len(batches) + 1, previous)))
            batches.append(previous)
        return batches


def read(source: FileSpout, batches: Iterable[Any], task: TopologyContext | None = None) -> list[tuple[str, list[Any]]]:
    """What is emitted for some transactions: stream and values."""
    collector = Recorder()
    with closing(source.get_emitter({}, task or context())) as emitter:
        for number, metadata in enumerate(batches, start=1):
            emitter.emit_batch(TransactionAttempt(number, 2), metadata, collector)
    return collector.sent


def rows_of(source: FileSpout) -> list[list[Any]]:
    return [row for _, row in read(source, cut(source))]
