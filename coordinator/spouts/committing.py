"""A spout that wants to know what is durable: to acknowledge it upstream, or to let go of what it held.

Told in the driver, after the commit: first persist, then tell. Executors know nothing of it, so a commit can
never be counted among the tuples of a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from state.attempt import TransactionAttempt


class SpoutCommitter(ABC):
    """Is told which transactions are durable. One lives in the driver; nothing here runs in parallel.

    Whatever it raises, a `FailedException` too, undoes no commit: the run ends at once with it, nothing more is
    published, and the next run begins by telling again.

    Source: backtype.storm.transactional.ICommitterTransactionalSpout.Emitter.
    Differs from Storm: lives in the driver and is told after the commit, not asked to take part in it.
    """

    @abstractmethod
    def commit(self, attempt: TransactionAttempt) -> None:
        """Tells that an attempt is durable, in txid order, at least once for every txid.

        A run begins by telling the last group of transactions that earlier runs have committed, since it cannot
        know whether they lived to tell it. So make it idempotent by ``attempt.txid``, across processes.
        """

    def cleanup_before(self, txid: int) -> None:  # noqa: B027 - optional by design
        """Tells that nothing below `txid` is needed any more; `txid` itself may be told again.

        Called after the `commit` of every group.
        """

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, when the run ends."""


class ICommitterTransactionalSpout(ABC):
    """Mixed into the spec of any kind of spout that wants to be told what is durable.

    Source: backtype.storm.transactional.ICommitterTransactionalSpout.
    Differs from Storm: goes with partitioned and opaque spouts too.
    """

    @abstractmethod
    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        """Makes the object that is told (driver, once a run)."""
