"""Batches that a Python program makes on the driver: each becomes one transaction, in order.

A batch is stored with its transaction before it is emitted, so a replay, even by a later run, emits the stored batch
and does not ask the program. The batch is deleted once a later one is committed. So the size of a batch is bounded;
larger data is better read on the executors, by `DataFrameBatches` or a spout of your own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinated_bolt.streams.tuples import cut
from coordinator.spouts.answers import not_of_this_spout
from coordinator.spouts.memory_input import Row, checked_fields
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt
from state.codec import CodecError, digest64, pack_exact
from state.errors import FailedException, SourceError, TopologyError
from state.printable import counted
from state.troubles import Trouble
from state.values.own_copy import own_copy

MAX_BATCH_BYTES = 4 * 1024 * 1024
"""Largest size of a packed batch: it is stored, and sent to every task that emits."""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Batch = Sequence[Row] | None
"""The rows of a transaction; None if there is no batch yet."""


class Batches(ITransactionalSpout):
    """Rows of batches from an iterable: one transaction per batch; the input ends with the iterable.

    Args:
        make: makes the iterable (driver, once a run). If it has a parameter without a default, it is called with the
            number of batches that earlier runs have taken, and returns the batches after those. Otherwise it returns
            all batches from the beginning; a run is refused if the ones already taken have changed. A batch is a list
            of rows; a row is a list or tuple of plain values. The run waits for each batch: an iterable that has to
            wait for its next batch yields None meanwhile.
        fields: names of a row's values.

    Raises:
        TopologyError: a parameter cannot be used.
    """

    def __init__(self, make: Callable[..., Iterable[Batch]], fields: Sequence[str]) -> None:
        if not callable(make):
            raise TopologyError(f"make of Batches is {make!r}; give a function that returns an iterable of batches")
        self.make: Callable[..., Iterable[Batch]] | None = make
        self.fields = checked_fields(self, fields)
        self._name = f"{getattr(make, '__module__', '?')}.{getattr(make, '__qualname__', type(make).__qualname__)}"

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self.fields)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        assert self.make is not None  # only the shipped copy lacks it
        return BatchesCoordinator(self.make, self.fields, context.topology_id)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        return BatchesEmitter(context)

    def describe(self, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        return f"batches of {self._name}, fields {', '.join(map(repr, self.fields))}"

    def __getstate__(self) -> dict[str, Any]:
        # batches are made on the driver, by functions that need not pickle
        return {**self.__dict__, "make": None}


class BatchesCoordinator(SpoutCoordinator):
    """Takes batch by batch; metadata: a digest of all batches so far, the rows, and how many batches (driver).

    Args:
        make: see `Batches`.
        fields: names of a row's values.
        topology_id: for messages.
    """

    def __init__(self, make: Callable[..., Iterable[Batch]], fields: tuple[str, ...], topology_id: str) -> None:
        self._make, self._fields, self._topology_id = make, fields, topology_id
        self._resumes = _takes_a_number(make)
        self._batches: Iterator[Batch] = iter(())
        self._held: list[list[Any]] | None = None
        self._has_ended = self._has_raised = False
        self._number, self._digest = 0, 0

    def resume(self) -> None:
        taken, digest = self._stored(self.run_so_far.last_txid, self.run_so_far.last)
        if self._resumes:
            self._number, self._digest = taken, digest
            self._batches = self._made(taken)
            return
        self._batches = self._made()
        while self._number < taken:
            self._pull()
            if self._held is None and self._has_ended:
                raise self._other(taken, f"there are {self._number} now")
            if self._held is not None:
                self._take()
        if self._digest != digest:
            raise self._other(taken, "those are others now")

    def is_ready(self) -> bool:
        self._pull()
        return self._held is not None

    def initialize_transaction(self, txid: int, previous: Any) -> list[Any]:
        self._pull()
        if self._held is None:
            raise FailedException(f"txid {txid} cannot be cut: there is no further batch now")
        rows = self._take()
        return [self._digest, rows, self._number]

    def is_exhausted(self) -> bool:
        self._pull()
        return self._has_ended and self._held is None

    def compare(self, former: FormerInput) -> InputChange | None:
        """Returns None for other input if `make` takes a number: nothing can be compared; else `resume` compares."""
        return InputChange() if former.is_same or not self._resumes else None

    def estimated_bytes(self, metadata: Any) -> int:
        return len(pack_exact(metadata))

    def close(self) -> None:
        close = getattr(self._batches, "close", None)  # generators have one
        if close is not None:
            close()

    def _made(self, *taken: int) -> Iterator[Batch]:
        made: Any = self._make(*taken)
        if made is None:
            raise SourceError(
                f"make of topology {self._topology_id!r} returned None: have it return a list of batches, or yield each"
            )
        return iter(made)

    def _pull(self) -> None:
        """Takes the next batch from the iterable, unless one is waiting to be cut."""
        if self._held is not None or self._has_ended:
            return
        try:
            batch = next(self._batches)
        except StopIteration:
            if self._has_raised and inspect.isgenerator(self._batches):
                raise SourceError(
                    f"the generator of topology {self._topology_id!r} raised an error after batch {self._number}, "
                    "which ended "
                    "it, so this run does not get the batches after that: run again; yield None where it has to wait"
                ) from None
            self._has_ended = True
            return
        except Exception:
            self._has_raised = True
            raise
        if batch is not None:
            self._held = self._checked(batch)

    def _take(self) -> list[list[Any]]:
        rows, self._held = self._held, None
        assert rows is not None
        self._number += 1
        self._digest = digest64(b"%016x" % self._digest, pack_exact(rows))
        return rows

    def _checked(self, batch: Sequence[Row]) -> list[list[Any]]:
        where = f"batch {self._number + 1} of topology {self._topology_id!r}"
        if isinstance(batch, str | bytes) or not isinstance(batch, Sequence):
            raise SourceError(
                f"{where} is a {type(batch).__name__}; yield a list of rows, or None if there is none now"
            )
        rows = [self._row(where, number, row) for number, row in enumerate(batch, 1)]
        if (byte_count := len(pack_exact(rows))) > MAX_BATCH_BYTES:
            raise SourceError(
                f"{where} takes {byte_count} bytes, but each batch is stored with its transaction: yield batches of "
                "at most "
                f"{MAX_BATCH_BYTES} bytes, or have the executors read the data, as by DataFrameBatches"
            )
        return rows

    def _row(self, where: str, number: int, row: Row) -> list[Any]:
        """Returns a row as it is stored and emitted; for example, a NumPy integer becomes an int."""
        if not isinstance(row, list | tuple) or len(row) != len(self._fields):
            raise SourceError(
                f"{where} has the row {cut(row)}, which is not a list of {len(self._fields)} values, as the fields "
                f"{list(self._fields)} ask for"
            )
        names: Any = getattr(row, "_fields", None) or getattr(row, "__fields__", self._fields)  # for Spark's Row
        if {*names} == {*self._fields} and tuple(names) != self._fields:
            raise SourceError(
                f"{where} has the row {cut(row)}, whose names are in another order than the fields {list(self._fields)}"
                ": a row is taken by its places, so give both in one order"
            )
        values = []
        for name, value in zip(self._fields, row, strict=True):
            try:
                values.append(own_copy(value))
            except CodecError as error:
                raise SourceError(f"field {name!r} of row {number} in {where} {error}") from None
        return values

    def _stored(self, last_txid: int, last: Any) -> tuple[int, int]:
        """Returns how many batches were taken (fewer than txids, among several inputs), and their digest."""
        match last:
            case None if not last_txid:
                return 0, 0
            case [int(digest), list(_)]:  # from a version that did not count
                return last_txid, digest
            case [int(digest), list(_), int(taken)]:
                return taken, digest
        raise not_of_this_spout(f"{type(last).__name__} {str(last)[:80]!r}", "a batch", self._topology_id)

    def _other(self, taken: int, story: str) -> SourceError:
        return SourceError(
            f"topology {self._topology_id!r} has taken {taken} batches before, and {story}: make the iterable yield "
            f"the same batches again, or start over by `txbatch drop {self._topology_id}`"
        )


def words_of(metadata: Any) -> list[str]:
    """Returns a batch in words: the number of rows, and the first row.

    Raises:
        SourceError: the metadata is not that of a batch.
    """
    match metadata:
        case [int(_), list(rows), *_]:
            begins = [f"begins with {row!r}" for row in rows[:1]]
            return [", ".join([counted(len(rows), "row"), *begins])]
    raise SourceError(f"{metadata!r:.80} is not a batch").about(Trouble.OTHER_SOURCE)


def _takes_a_number(make: Callable[..., Any]) -> bool:
    """Returns whether a function has a parameter without a default."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except ValueError:  # some C functions have no signature
        return False
    return any(each.default is each.empty and each.kind in POSITIONAL for each in parameters)


class BatchesEmitter(SpoutEmitter):
    """Emits this task's share of a batch (executor).

    Args:
        context: the task.
    """

    def __init__(self, context: TopologyContext) -> None:
        self._context = context

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        rows = metadata[1]
        collector.emit_all(rows[self._context.task_index :: self._context.task_count])
