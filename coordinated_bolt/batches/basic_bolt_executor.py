"""Runs a basic bolt in a transactional topology.

Within an attempt no tuple is acked by itself: whatever the bolt emits belongs to the attempt, which succeeds
or fails as a whole. A basic bolt therefore only has to look like a batch bolt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import BatchOutputCollector, IBatchBolt
from coordinated_bolt.components.callbacks import FinishedCallback, TimeoutCallback
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import Tuple
from state.attempt import TransactionAttempt


class BasicBoltExecutor(IBatchBolt, TimeoutCallback):
    """One basic bolt as the batch bolt of one attempt.

    Args:
        bolt: the user's bolt, not prepared yet.

    Source: backtype.storm.topology.BasicBoltExecutor, as TransactionalTopologyBuilder.setBolt wraps it.
    Differs from Storm: like a batch bolt, each (task, attempt) gets its own instance, so what the bolt keeps
    lasts for one attempt; `FailedException` fails the attempt and not one tuple.
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
        self._bolt.prepare(conf, context)

    def execute(self, tup: Tuple) -> None:
        self._bolt.execute(tup, self._collector)

    def execute_batch(self, batch: TupleBatch) -> None:
        self._bolt.execute_batch(batch, self._collector)

    def finish_batch(self) -> None:
        if isinstance(self._bolt, FinishedCallback):
            self._bolt.finished_id(self._attempt)

    def timeout_id(self, attempt: TransactionAttempt) -> None:
        if isinstance(self._bolt, TimeoutCallback):
            self._bolt.timeout_id(attempt)

    def cleanup(self) -> None:
        self._bolt.cleanup()
