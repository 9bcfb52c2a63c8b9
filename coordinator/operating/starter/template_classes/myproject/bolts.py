"""The bolts: visits are summed up by page on many tasks, and the sums are added to the state."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt, BatchOutputCollector, TopologyContext, Tuple
from state import HashState, TransactionAttempt


class SumVisits(BaseBatchBolt):
    """Sums up this task's visits of one transaction by page, and refuses those that cannot be true."""

    output_fields = ("page", "visits", "seconds")

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        super().prepare(conf, context, collector, attempt)
        self.visits: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        page, seconds = tup["page"], tup["seconds"]
        if seconds < 0:
            self.collector.dead_letter(tup, f"a visit cannot take {seconds} seconds")
            return
        self.visits[page] += 1
        self.seconds[page] += seconds

    def finish_batch(self) -> None:
        self.collector.emit_all((page, visits, self.seconds[page]) for page, visits in self.visits.items())


class StoreVisits(BaseBatchBolt, ICommitter):
    """Adds the sums of each transaction to the state, in the order of the transactions."""

    visits = HashState("visits", value=int)
    seconds = HashState("seconds", value=int)

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        super().prepare(conf, context, collector, attempt)
        self.new_visits: Counter[str] = Counter()
        self.new_seconds: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        self.new_visits[tup["page"]] += tup["visits"]
        self.new_seconds[tup["page"]] += tup["seconds"]

    def finish_batch(self) -> None:
        self.visits.increment_many(self.new_visits)
        self.seconds.increment_many(self.new_seconds)
