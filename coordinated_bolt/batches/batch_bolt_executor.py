"""Runs batch bolts: one instance per attempt, made from the shipped spec.

Only this module calls the user's batch bolts, so it turns their exceptions into `Failure` values.

Source: backtype.storm.coordination.BatchBoltExecutor. Differs from Storm: `cleanup` is called.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any, NamedTuple, cast

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.columns import Rows
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import FinishedCallback, IBatchBolt, TimeoutCallback
from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.component import takes_batches
from coordinated_bolt.components.context import TopologyContext, install_hooks
from coordinated_bolt.streams.records import RecordReader
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import Tuple, TupleOrigin, cut
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_failure import failure_of
from coordinated_bolt.user_traceback import call, unread_answer
from coordinated_bolt.watching.metrics import TaskMetrics, no_clock
from coordinated_bolt.watching.task_observer import HookObserver, TaskObserver
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt

Stretch = tuple[TupleOrigin, Rows]
"""Rows of one origin, in order."""
NewCollector = Callable[[TransactionAttempt, HookObserver], AttemptCollector]


@dataclass(slots=True)
class _Live:
    """The bolt of one attempt, with its context and metrics; its collector is set before `prepare`."""

    bolt: IBatchBolt
    context: TopologyContext
    observer: HookObserver
    metrics: TaskMetrics
    collector: AttemptCollector | None = None


class _BoltKind(NamedTuple):
    """The facts that follow from the class of a task's bolts."""

    is_basic: bool
    takes_batches: bool
    notified_of_finish: bool
    records: RecordReader | None

    @classmethod
    def of(cls, spec: IBatchBolt | IBasicBolt, record_class: bytes) -> _BoltKind:
        is_basic = isinstance(spec, IBasicBolt)
        notified_of_finish = not is_basic and isinstance(spec, FinishedCallback)
        records = RecordReader(pickle.loads(record_class)) if record_class else None
        return cls(is_basic, takes_batches(type(spec)), notified_of_finish, records)


class BatchBoltExecutor:
    """The bolts of one task, keyed by attempt.

    Args:
        wiring: the task.
        new_collector: makes the collector of an attempt.
        observer: notified of each step of every attempt's bolt, before the hooks of the topology and of the bolt.
        clock: nanoseconds, for the metrics; read twice per stretch of tuples.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        new_collector: NewCollector,
        *,
        observer: TaskObserver | None = None,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._wiring = wiring
        self._new_collector = new_collector
        self._observer = observer
        self._clock = clock
        self._attempts: dict[TransactionAttempt, _Live] = {}
        self._kind: _BoltKind | None = None  # known once there is a first bolt

    @property
    def component_id(self) -> str:
        """The component whose bolts these are."""
        return self._wiring.component_id

    def execute(self, attempt: TransactionAttempt, stretches: Sequence[Stretch]) -> Failure | None:
        """Lets the attempt's bolt execute tuples, in order or as batches, up to the first failure."""
        executed: Any = None
        try:
            live = self._live(attempt)
            execute: Callable[[Any], object] = self._watched(live) if live.observer.watchers else live.bolt.execute
            in_batches = self._kind is not None and self._kind.takes_batches
            for stream, same_stream in groupby(stretches, _stream_of):
                started_ns, tuple_count = self._clock(), 0
                for origin, rows in same_stream:
                    tuple_count += len(rows)
                    if in_batches and rows:
                        executed = TupleBatch(rows, origin)
                        self._execute_batch(live, executed)
                        continue
                    for executed in self._tuples(live, rows, origin):
                        if (answer := execute(executed)) is not None:
                            raise unread_answer(live.bolt.execute, answer)
                live.metrics.add_stretch(stream, tuple_count, self._clock() - started_ns)
        except BaseException as error:
            if is_interruption(error):
                raise
            return self._failure(error, executed)
        return None

    def finished_id(self, attempt: TransactionAttempt) -> Failure | None:
        """Lets the attempt's bolt finish its batch, even an empty one unless the bolt skips empty batches."""
        if self._wiring.skips_empty_batches and attempt not in self._attempts:
            self._skip()
            return None
        try:
            live = self._live(attempt)
            started_ns = self._clock()
            self._finish(attempt, live.bolt)
            live.metrics.finish_ns += self._clock() - started_ns
            live.metrics.batches += 1
        except BaseException as error:
            if is_interruption(error):
                raise
            return self._failure(error, None)
        return None

    def timeout_id(self, attempt: TransactionAttempt) -> None:
        """Notifies the attempt's bolt, if it is a `TimeoutCallback`, that the attempt has failed on this task."""
        live = self._attempts.get(attempt)
        if live is not None and isinstance(live.bolt, TimeoutCallback):
            try:
                live.bolt.timeout_id(attempt)
            except BaseException as error:
                if is_interruption(error):
                    raise
                return  # the attempt has already failed, for a more telling reason

    def drop(self, attempt: TransactionAttempt) -> Failure | None:
        """Cleans up and drops the attempt's bolt and hooks, after success, failure or timeout."""
        live = self._attempts.pop(attempt, None)
        failure = None
        cleanups = [] if live is None else [live.bolt.cleanup, *(hook.cleanup for hook in live.context.hooks)]
        for cleanup in cleanups:
            try:
                cleanup()
            except BaseException as error:
                if is_interruption(error):
                    raise
                failure = failure or self._failure(error, None)
        return failure

    def counters(self, attempt: TransactionAttempt) -> dict[str, int]:
        """Returns the attempt's counters so far.

        Raises:
            TypeError, ValueError: the bolt wrote an invalid name or amount into the counters.
        """
        live = self._attempts.get(attempt)
        return live.context.counted() if live else {}

    def collector(self, attempt: TransactionAttempt) -> AttemptCollector | None:
        """Returns the attempt's collector, if it has a bolt."""
        live = self._attempts.get(attempt)
        return live.collector if live else None

    def metrics(self, attempt: TransactionAttempt) -> TaskMetrics:
        """Returns the attempt's metrics so far."""
        live = self._attempts.get(attempt)
        return live.metrics if live else TaskMetrics()

    def _finish(self, attempt: TransactionAttempt, bolt: IBatchBolt) -> None:
        call(bolt.finish_batch)
        if self._kind is not None and self._kind.notified_of_finish:
            call(cast("FinishedCallback", bolt).finished_id, attempt)

    def _skip(self) -> None:
        """Finishes an empty batch without a bolt."""

    def _live(self, attempt: TransactionAttempt) -> _Live:
        live = self._attempts.get(attempt)
        if live is None:
            spec: IBatchBolt | IBasicBolt = pickle.loads(self._wiring.spec)
            kind = self._kind
            if kind is None:
                kind = self._kind = _BoltKind.of(spec, self._wiring.record_class)
            bolt = BasicBoltExecutor(cast("IBasicBolt", spec)) if kind.is_basic else cast("IBatchBolt", spec)
            context = self._wiring.context()
            observer = HookObserver(self._observer, context)
            live = _Live(bolt, context, observer, TaskMetrics())
            self._attempts[attempt] = live
            # from here on cleanup follows, even after an exception
            install_hooks(context, self._wiring.hook_specs)
            live.collector = self._new_collector(attempt, live.observer)
            call(bolt.prepare, context.conf, context, live.collector, attempt)
        return live

    def _execute_batch(self, live: _Live, batch: TupleBatch) -> None:
        """Calls the bolt's `execute_batch`, then notifies its observer of each tuple with an equal part of the time."""
        if not live.observer.watchers:
            call(live.bolt.execute_batch, batch)
            return
        tuples = list(batch)  # the bolt may change the batch
        started_ns = self._clock()
        call(live.bolt.execute_batch, batch)
        share_ns = (self._clock() - started_ns) // len(tuples)
        for tup in tuples:
            live.observer.executed(tup, share_ns)

    def _tuples(self, live: _Live, rows: Rows, origin: TupleOrigin) -> Iterator[Any]:
        """Yields the arguments for the bolt's `execute`: tuples, or records; hooks always get tuples."""
        records = None if self._kind is None else self._kind.records
        if records is None or live.collector is None or live.observer.watchers:
            return map(Tuple, rows, repeat(origin))
        batch = TupleBatch(rows, origin)
        made, left = records.read(batch)
        live.collector.gets_records(batch, left)
        return made

    def _watched(self, live: _Live) -> Callable[[Tuple], object]:
        """Returns a function that calls the bolt's `execute` and then notifies its observer."""
        tell, clock = live.observer.executed, self._clock
        execute: Callable[[Any], object] = live.bolt.execute
        records, collector = None if self._kind is None else self._kind.records, live.collector

        def record_of(tup: Tuple) -> Any:
            assert records is not None
            assert collector is not None
            batch = TupleBatch([tup.values], tup.origin)
            made, left = records.read(batch)
            collector.gets_records(batch, left)
            return next(made)

        def watched(tup: Tuple) -> object:
            started_ns = clock()
            answer = execute(tup if records is None else record_of(tup))
            tell(tup, clock() - started_ns)
            return answer

        return watched

    def _failure(self, error: BaseException, executed: Any) -> Failure:
        text = "" if executed is None else cut(executed, what="tuple")
        return failure_of(error, self._wiring.component_id, self._wiring.task_index, text)


def _stream_of(stretch: Stretch) -> str:
    """Returns the name of the stretch's stream in metrics."""
    return stretch[0].name


class BasicBoltExecutor(IBatchBolt, TimeoutCallback):
    """One basic bolt as the batch bolt of one attempt.

    Args:
        bolt: the user's bolt, not prepared yet.

    Source: backtype.storm.topology.BasicBoltExecutor, as TransactionalTopologyBuilder.setBolt wraps it. Differs from
    Storm: like a batch bolt, each (task, attempt) gets its own instance, so the bolt's attributes last for one attempt;
    `FailedException` fails the attempt and not one tuple.
    """

    def __init__(self, bolt: IBasicBolt) -> None:
        self._bolt = bolt

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        self._collector, self._attempt = collector, attempt
        call(self._bolt.prepare, conf, context)

    def execute(self, tup: Tuple) -> None:
        return self._bolt.execute(tup, self._collector)  # the caller checks what it returns

    def execute_batch(self, batch: TupleBatch) -> None:
        call(self._bolt.execute_batch, batch, self._collector)

    def finish_batch(self) -> None:
        if isinstance(self._bolt, FinishedCallback):
            call(self._bolt.finished_id, self._attempt)

    def timeout_id(self, attempt: TransactionAttempt) -> None:
        if isinstance(self._bolt, TimeoutCallback):
            self._bolt.timeout_id(attempt)

    def cleanup(self) -> None:
        self._bolt.cleanup()
