"""Spouts that are notified of durable transactions, to acknowledge them upstream or to free their input.

They are notified in the driver, after the commit: persist first, then notify. Executors take no part, so a commit is
never counted among the tuples of a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from state.attempt import TransactionAttempt


class SpoutCommitter(ABC):
    """Notified of durable transactions. One lives in the driver; its methods are never called in parallel.

    An exception from it, even a `FailedException`, undoes no commit. The run ends with it at once, nothing more is
    published, and the next run begins by notifying again.

    Source: backtype.storm.transactional.ICommitterTransactionalSpout.Emitter. Differs from Storm: lives in the driver
    and is notified after the commit instead of taking part in it.
    """

    @abstractmethod
    def commit(self, attempt: TransactionAttempt) -> None:
        """Called when an attempt is as durable as the run has asked, in txid order, at least once for every txid.

        For a quarantined batch it is called with the old txid when the batch is republished; if dropped, never.

        See `RunOptions.durability`. A run begins by repeating the notifications of the transactions that earlier runs
        committed last, because it cannot know whether they were made. So make it idempotent by ``attempt.txid``, across
        processes.
        """

    def keep(self, batches: Collection[Any]) -> None:  # noqa: B027 - optional by design
        """Called before `commit` with the batches that are quarantined now; does nothing by default.

        Their input must not be freed: it is read again when they are republished.

        Args:
            batches: each in its stored form. For a spout whose coordinator cuts: the metadata. For a partitioned spout:
                partition number -> the metadata of its part. For an opaque one: partition number -> (position before
                its part, None at the beginning; position after it).
        """

    def cleanup_before(self, txid: int) -> None:  # noqa: B027 - optional by design
        """Called after the `commit` calls of every group: nothing below `txid` is needed any more.

        `commit` may be called for `txid` itself again.
        """

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, when the run ends."""


class ICommitterTransactionalSpout(ABC):
    """A mixin for the spec of any kind of spout that has to be notified of durable transactions.

    Attributes:
        destruction: how the committer destroys its input, as a clause such as "done files are deleted"; "" if its input
            can still be read again. A run that destroys input, on Spark or without, waits for durability fsync unless
            its user names a level: otherwise a power cut could take the results of that input.

    Source: backtype.storm.transactional.ICommitterTransactionalSpout.
    Differs from Storm: partitioned and opaque spouts may use it too.
    """

    destruction: str = "its spout's committer releases input"

    @abstractmethod
    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        """Makes the committer (driver, once a run)."""
