"""Spouts that are notified of what is durable, to acknowledge it upstream or to free what a retry would need.

They are notified in the driver, after the commit: persist first, then tell. Executors take no part, so a commit can
never be counted among the tuples of a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from state.attempt import TransactionAttempt


class SpoutCommitter(ABC):
    """Hears which transactions are durable. One lives in the driver; its methods are never called in parallel.

    An exception from it, even a `FailedException`, undoes no commit. The run ends with it at once, nothing more is
    published, and the next run begins by telling again.

    Source: backtype.storm.transactional.ICommitterTransactionalSpout.Emitter.
    Differs from Storm: lives in the driver and hears of the commit afterwards instead of taking part in it.
    """

    @abstractmethod
    def commit(self, attempt: TransactionAttempt) -> None:
        """Called when an attempt is as durable as the run has asked, in txid order, at least once for every txid.

        A quarantined batch is notified of when it is republished, under its old txid, and never if it is dropped.

        See `RunOptions.durability`. A run begins by telling the transactions that earlier runs committed last, because
        it cannot know whether they got that far. So make it idempotent by ``attempt.txid``, across processes.
        """

    def keep(self, batches: Collection[Any]) -> None:  # noqa: B027 - optional by design
        """Called before `commit` with the batches that are quarantined now, none by default.

        What was read for them must not be freed: it is read again when they are republished.

        Args:
            batches: of each, its stored form: the metadata by which the spout's coordinator cut it; of a partitioned
                spout, number of a partition -> the metadata of its part; of an opaque one, number of a partition ->
                (position before its part, None at the beginning; position after it).
        """

    def cleanup_before(self, txid: int) -> None:  # noqa: B027 - optional by design
        """Called after the `commit` calls of every group: nothing below `txid` is needed any more.

        `commit` may be called for `txid` itself again.
        """

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, when the run ends."""


class ICommitterTransactionalSpout(ABC):
    """A mixin for the spec of any kind of spout that has to hear what is durable.

    Attributes:
        destruction: what the committer destroys of its input, as a clause such as "done files are deleted"; "" if its
            input can still be read again. A run that destroys input, on Spark or without, waits for durability fsync
            unless its user names a level: a power cut could otherwise take what that input has contributed.

    Source: backtype.storm.transactional.ICommitterTransactionalSpout.
    Differs from Storm: partitioned and opaque spouts may use it too.
    """

    destruction: str = "its spout's committer releases input"

    @abstractmethod
    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        """Makes the committer (driver, once a run)."""
