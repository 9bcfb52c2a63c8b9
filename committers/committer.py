"""The marker that makes a batch bolt a committer."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar


class ICommitter(ABC):  # noqa: B024 - a marker, as in Storm
    """Marks an `IBatchBolt` whose `finish_batch` runs strictly in txid order, in the commit phase.

    Only committers may declare state. What `finish_batch` writes through the state handles becomes
    visible in one atomic step together with the whole transaction, exactly once.

    Source: backtype.storm.transactional.ICommitter.
    """

    external_effects: ClassVar[bool] = False
    """True for a committer that also changes something outside declared state: each of its transactions is
    committed alone, and its commit phase runs only after everything below it is committed."""
