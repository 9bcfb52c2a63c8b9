"""The marker that makes a batch bolt a committer."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar


class ICommitter(ABC):  # noqa: B024 - a marker, as in Storm
    """Marks an `IBatchBolt` whose `finish_batch` runs strictly in txid order, in the commit phase.

    Only committers may declare state. Its writes through state handles become visible exactly once, in one atomic step
    together with the whole transaction.

    Two things are not promised. Lower transactions may not be visible in Redis yet: state handles read as if they were,
    but a Redis client of your own does not. And the transaction may never be committed: any other effect of
    `finish_batch` may happen again, or for an attempt that fails elsewhere.

    Source: backtype.storm.transactional.ICommitter. Differs from Storm: transactions are committed in groups, and
    a committer that only writes may run before its transaction's turn, although nothing is published earlier.
    See `external_effects`.
    """

    external_effects: ClassVar[bool] = False
    """True for a committer that changes or reads something outside declared state: each of its transactions is
    committed alone, and its commit phase runs only after all lower transactions are committed."""
