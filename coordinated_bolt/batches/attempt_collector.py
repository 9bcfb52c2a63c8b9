"""The collector of batch bolts and emitters: routes emitted tuples, counts them and passes them to the outbox."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import length_hint
from typing import Any, NoReturn

from coordinated_bolt.batches.refused_tuples import RefusedTuples
from coordinated_bolt.columns import Columns
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.records import EmittedRow, is_record_class, names_of, row_of
from coordinated_bolt.streams.routing import Choosers, Router
from coordinated_bolt.streams.rows import ORDINARY
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import Tuple, TupleOrigin
from coordinated_bolt.transport.outbox import RowOutbox
from coordinated_bolt.user_code import is_users
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinated_bolt.watching.task_observer import HookObserver, TaskObserver
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.codec import digest64
from state.values.column_values import ORDERED

_KNOWN_EMPTY = frozenset({list, tuple, type({}.items())})
"""Types of `rows` whose emptiness is known without iterating."""


class AttemptCollector:
    """The `BatchOutputCollector` of one attempt on one task.

    Args:
        wiring: the emitting task.
        attempt: the attempt that all tuples belong to.
        outbox: takes the rows; the bolt's coordination closes it when the attempt ends.
        observer: notified of every emit, while it has watchers.

    Attributes:
        outbox: the same outbox.
        emitted: stream id -> tuples emitted.
    """

    def __init__(
        self, wiring: TaskWiring, attempt: TransactionAttempt, outbox: RowOutbox, observer: HookObserver | None = None
    ) -> None:
        self._wiring = wiring
        self._made_router: Router | _Closed | None = None
        self._streams = wiring.streams
        self.outbox = outbox
        self._attempt = attempt
        self._observer = observer or TaskObserver()
        self._watchers: Sequence[object] = () if observer is None else observer.watchers
        self.emitted = dict.fromkeys(wiring.streams, 0)
        self._made_refused: RefusedTuples | None = None
        self._closed: _Closed | None = None
        self._origins: dict[str, TupleOrigin] = {}
        self._received: tuple[TupleBatch, Iterator[Any]] | None = None

    @property
    def refused_tuples(self) -> RefusedTuples:
        """The refused tuples; created by the first call, since most attempts refuse nothing."""
        refused = self._made_refused
        if refused is None:
            refused = self._made_refused = RefusedTuples(self._wiring)
        return refused

    def close(self, *, is_good: bool = False) -> None:
        """Refuses all later tuples, emitted by a thread or through a kept collector.

        A good attempt would lack such a tuple, so the component's next attempt fails, see `taken_late`.
        """
        self._made_router = self._closed = _Closed(self._wiring, self._attempt, is_missed=is_good)

    def letters(self) -> list[bytes]:
        """Returns the refused tuples, packed.

        Raises:
            TransactionError, TypeError: a tuple could not be kept, even if the bolt has handled that error.
        """
        if self._made_refused is None:
            return []
        self._made_refused.check()
        return self._made_refused.letters

    @property
    def _router(self) -> Router | _Closed:
        """The router, created by the first emit: on many tasks, many attempts emit nothing."""
        router = self._made_router
        if router is None:
            wiring, attempt = self._wiring, self._attempt
            seed = digest64(b"%d %d %d" % (attempt.txid, attempt.attempt_id, wiring.task_id))
            router = self._made_router = Router(wiring.component_id, wiring.streams, seed)
        return router

    @property
    def emitted_count(self) -> int:
        """Tuples emitted on all streams."""
        return sum(self.emitted.values())

    def emit(self, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple; returns the task ids that receive it."""
        stream, row, receivers = self._router.route(values, stream_id)
        for task in receivers:
            self.outbox.add(task, stream, row)
        self.emitted[stream_id] += 1
        if self._watchers:
            self._observer.emitted(stream_id, row, receivers, self._attempt)
        return receivers

    def emit_all(self, rows: Iterable[EmittedRow], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples; like calling `emit` for each."""
        if type(rows) in _KNOWN_EMPTY and not rows and self._takes_rows(stream_id):
            return  # the usual case for small transactions
        stream, lists, choosers = self._router.route_all(rows, stream_id)
        if self._watchers:
            for row in lists:
                self.emit(row, stream_id)
            return
        for chooser, tasks in choosers:
            for position, share in chooser.split(lists).items():
                self.outbox.add_all(tasks[position], stream, share)
        self.emitted[stream_id] += len(lists)

    def emit_batch(self, batch: Any, stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, given as columns; like calling `emit` for each."""
        if self._is_empty(batch, stream_id):
            return
        stream, columns, choosers = self._router.route_batch(batch, stream_id)
        if self._watchers:
            self._emit_watched(stream_id, stream, columns, choosers)
        else:
            for chooser, tasks in choosers:
                for position, share in chooser.split(columns).items():
                    self.outbox.add_all(tasks[position], stream, share)
        self.emitted[stream_id] += len(columns)

    def _emit_watched(self, stream_id: str, stream: int, columns: Columns, choosers: Choosers) -> None:
        """Sends columns as columns, and then notifies the observer of each tuple and its receivers."""
        receivers: list[list[int]] = [[] for _ in range(len(columns))]
        places: dict[int, list[int]] = {}
        for place, row in enumerate(columns):
            for chooser, tasks in choosers:
                receivers[place] += [tasks[position] for position in chooser.choose(row)]
            for task in receivers[place]:
                places.setdefault(task, []).append(place)
        for task, chosen in places.items():
            self.outbox.add_all(task, stream, columns.take(chosen))
        for row, reached in zip(columns, receivers, strict=True):
            self._observer.emitted(stream_id, row, reached, self._attempt)

    def emit_direct(self, task_id: int, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        stream, row = self._router.route_direct(task_id, values, stream_id)
        self.outbox.add(task_id, stream, row)
        self.emitted[stream_id] += 1
        if self._watchers:
            self._observer.emitted(stream_id, row, [task_id], self._attempt)

    def gets_records(self, batch: TupleBatch, left: Iterator[Any]) -> None:
        """Takes the tuples from which records are made; called by the executor before the bolt gets the records.

        Args:
            batch: the tuples.
            left: an iterator whose length hint is the number of tuples still to come.
        """
        self._origins[batch.origin.name] = batch.origin
        self._received = batch, left

    def dead_letter(self, tup: Tuple | EmittedRow | Mapping[str, Any], reason: str) -> None:
        """Stores a tuple that cannot be processed, together with the transaction."""
        if self._closed is not None:
            self._closed.refuse()
        refused = self._refused_record(tup) if is_record_class(type(tup)) else tup
        self.refused_tuples.add(refused, reason)

    def _refused_record(self, record: Any) -> Tuple | dict[str, Any]:
        """Returns the tuple of a record: the one being executed, or one rebuilt from all of the record's values.

        A record that is not being executed, and lacks fields of the tuple, is refused as a mapping of its values.
        """
        values = {name: getattr(record, name) for name in names_of(type(record))}
        if self._received is not None:
            batch, left = self._received
            executed = batch[max(0, len(batch) - 1 - length_hint(left))]
            if all(name in batch.origin.index and executed[name] is value for name, value in values.items()):
                return executed
        if len(self._origins) == 1:
            (origin,) = self._origins.values()
            row = row_of(record, origin.fields)
            if row is not None:
                return Tuple(row, origin)
        return values

    def _is_empty(self, batch: Any, stream_id: str) -> bool:
        """Returns whether the batch is known, without iterating, to be empty columns of the stream."""
        if type(batch) not in ORDINARY or not ORDERED.issuperset(map(type, batch)) or any(batch):
            return False
        return self._takes_rows(stream_id) and len(batch) == len(self._streams[stream_id].spec.fields)

    def _takes_rows(self, stream_id: str) -> bool:
        stream = self._streams.get(stream_id)
        return stream is not None and not stream.spec.direct

    def count_into(self, metrics: TaskMetrics) -> None:
        """Adds the numbers of emitted, transferred and refused tuples to the attempt's metrics."""
        metrics.emitted = {stream_id: count for stream_id, count in self.emitted.items() if count}
        if self.outbox.transferred:
            names = {stream.index: stream_id for stream_id, stream in self._streams.items()}
            metrics.transferred = {names[index]: count for index, count in self.outbox.transferred.items()}
        if self._made_refused is not None:
            metrics.dead_letters = len(self._made_refused.letters)


class _Closed:
    """Replaces the router once the attempt has ended on its task: refuses everything."""

    def __init__(self, wiring: TaskWiring, attempt: TransactionAttempt, *, is_missed: bool) -> None:
        self._wiring, self._attempt, self._is_missed = wiring, attempt, is_missed

    def refuse(self, *_: Any) -> NoReturn:
        wiring, frame = self._wiring, sys._getframe(1)  # noqa: SLF001 - to find the user's line
        while frame.f_back is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        sentence = (
            f"a tuple was emitted after finish_batch had returned, of attempt {self._attempt} at "
            f"{frame.f_code.co_filename}:{frame.f_lineno}; emit it before that, and have finish_batch wait for threads "
            "that emit"
        )
        if self._is_missed:
            found = Failure(FailureKind.USER, wiring.component_id, wiring.task_index, f"RuntimeError: {sentence}\n")
            wiring.late.setdefault(wiring.component_id, found)
        raise RuntimeError(sentence)

    route = route_all = route_batch = route_direct = refuse


def taken_late(wiring: TaskWiring) -> Failure | None:
    """Returns, once, the failure for a tuple that the component emitted too late; called when a task ends an attempt.

    Such a tuple belongs to an attempt of this run and process that was reported, or even committed, without it. It is
    lost, but the run must not end as if nothing were missing.
    """
    return wiring.late.pop(wiring.component_id, None) if wiring.late else None
