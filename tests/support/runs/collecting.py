"""A committer that has its whole batch at hand when the batch ends."""

from __future__ import annotations

from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt


class Collecting(BaseBatchBolt, ICommitter):
    """Keeps the tuples of its batch; a subclass says what it does with them in `finish_batch`."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        super().prepare(conf, context, collector, attempt)
        self.tuples: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.tuples.append(tup)

    def column(self, field: str) -> list[Any]:
        """The values of a field, in the order in which tuples came."""
        return [tup[field] for tup in self.tuples]
