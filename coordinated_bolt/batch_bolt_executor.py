"""Runs batch bolts: one instance per attempt, made from the shipped spec.

User code is called here and nowhere else, so this is where its exceptions become `Failure` values.

Source: backtype.storm.coordination.BatchBoltExecutor. Differs from Storm: `cleanup` is called.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from itertools import repeat

from coordinated_bolt.basic_bolt_executor import BasicBoltExecutor
from coordinated_bolt.basic_bolts import IBasicBolt
from coordinated_bolt.bolts import BatchOutputCollector, IBatchBolt
from coordinated_bolt.callbacks import FinishedCallback, TimeoutCallback
from coordinated_bolt.context import TopologyContext
from coordinated_bolt.failure import Failure
from coordinated_bolt.tuples import Tuple, TupleOrigin, shortened
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt

NewCollector = Callable[[TransactionAttempt], BatchOutputCollector]


class BatchBoltExecutor:
    """The bolts of one task, keyed by attempt.

    Args:
        wiring: the task.
        new_collector: makes the collector of an attempt.
    """

    def __init__(self, wiring: TaskWiring, new_collector: NewCollector) -> None:
        self._wiring = wiring
        self._new_collector = new_collector
        self._bolts: dict[TransactionAttempt, IBatchBolt] = {}
        self._contexts: dict[TransactionAttempt, TopologyContext] = {}

    def execute(self, attempt: TransactionAttempt, origin: TupleOrigin, rows: Iterable[list[object]]) -> Failure | None:
        """Has the attempt's bolt execute tuples of one origin, in order, up to the first failure."""
        tup: Tuple | None = None
        try:
            execute = self._bolt(attempt).execute
            for tup in map(Tuple, rows, repeat(origin)):
                execute(tup)
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            return self._failure(error, tup)
        return None

    def finished_id(self, attempt: TransactionAttempt) -> Failure | None:
        """Has the attempt's bolt finish its batch, an empty one too."""
        try:
            self._finish(attempt, self._bolt(attempt))
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            return self._failure(error, None)
        return None

    def timeout_id(self, attempt: TransactionAttempt) -> None:
        """Tells the attempt's bolt, if it wants to know, that the attempt has failed on this task."""
        bolt = self._bolts.get(attempt)
        if bolt is not None and isinstance(bolt, TimeoutCallback):
            try:
                bolt.timeout_id(attempt)
            except Exception:  # noqa: BLE001 - user code may raise anything
                return  # the attempt has failed already, for a reason that explains more

    def drop(self, attempt: TransactionAttempt) -> Failure | None:
        """Lets go of the attempt's bolt, after success, failure or timeout."""
        bolt = self._bolts.pop(attempt, None)
        self._contexts.pop(attempt, None)
        if bolt is not None:
            try:
                bolt.cleanup()
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                return self._failure(error, None)
        return None

    def counters(self, attempt: TransactionAttempt) -> dict[str, int]:
        """What the attempt's bolt has counted so far."""
        context = self._contexts.get(attempt)
        return dict(context.counters) if context else {}

    def _finish(self, attempt: TransactionAttempt, bolt: IBatchBolt) -> None:
        bolt.finish_batch()
        if isinstance(bolt, FinishedCallback):
            bolt.finished_id(attempt)

    def _bolt(self, attempt: TransactionAttempt) -> IBatchBolt:
        bolt = self._bolts.get(attempt)
        if bolt is None:
            spec: IBatchBolt | IBasicBolt = pickle.loads(self._wiring.spec)
            bolt = BasicBoltExecutor(spec) if isinstance(spec, IBasicBolt) else spec
            self._bolts[attempt] = bolt  # before prepare: cleanup follows it even if it raises
            context = self._contexts[attempt] = self._wiring.context()
            bolt.prepare(self._wiring.conf, context, self._new_collector(attempt), attempt)
        return bolt

    def _failure(self, error: Exception, tup: Tuple | None) -> Failure:
        text = "" if tup is None else shortened(tup)
        return Failure.from_exception(error, self._wiring.component_id, self._wiring.task_index, text)
