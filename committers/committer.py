"""The marker that makes a batch bolt a committer."""

from __future__ import annotations

from abc import ABC


class ICommitter(ABC):  # noqa: B024 - a marker, as in Storm
    """Marks an `IBatchBolt` whose `finish_batch` runs strictly in txid order, in the commit phase.

    Only committers may declare state. What `finish_batch` writes through the state handles becomes
    visible in one atomic step together with the whole transaction, exactly once.

    Source: backtype.storm.transactional.ICommitter.
    """


EXTERNAL_EFFECTS = "external_effects"
"""Class attribute of a committer that also changes something outside declared state; when true, each
of its transactions is committed alone, after everything below it is durable."""
