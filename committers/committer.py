"""The marker that makes a batch bolt a committer."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar


class ICommitter(ABC):  # noqa: B024 - a marker, as in Storm
    """Marks an `IBatchBolt` whose `finish_batch` runs strictly in txid order, in the commit phase.

    Only committers may declare state. What `finish_batch` writes through the state handles becomes
    visible in one atomic step together with the whole transaction, exactly once.

    Never promised is that lower transactions are visible in Redis by then: handles read as if they were, a
    client of your own does not. Nor that the transaction goes on to be committed: what `finish_batch` does besides
    its writes may be done again, and for an attempt that then fails elsewhere.

    Source: backtype.storm.transactional.ICommitter. Differs from Storm: transactions are committed in groups, and
    a committer that only writes may be run before its transaction's turn has come; nothing of it is published
    earlier. See `external_effects`.
    """

    external_effects: ClassVar[bool] = False
    """True for a committer that also changes, or reads, something outside declared state: each of its transactions is
    committed alone, and its commit phase runs only after everything below it is committed."""
