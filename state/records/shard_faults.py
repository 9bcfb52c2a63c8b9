"""Whether a shard has applied home's decisions: the one rule for readers of all shards and for `verify`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

CONSISTENCY_FIELDS = ("generation", "committed", "chain", "dropping", "begun", "ended", "topology")
"""The fields of a control hash that decide it, with the number of shards; home's chain comes from its metadata."""


class ShardFault(StrEnum):
    """Why a shard's content is not part of the topology's state; each value completes a sentence about the shard."""

    NONE = ""
    DROPPING = "is being dropped"
    TORN = "has a part of a write"
    GONE = "has lost its record"
    OTHER_LIFE = "is of another life of the topology"
    BEHIND = "has not applied all that was decided"
    AHEAD = "has applied more than home has decided"
    OTHER_HISTORY = "has another history than home"

    @property
    def passes(self) -> bool:
        """Whether a run that is committing can cause the fault for a moment."""
        return self in (ShardFault.NONE, ShardFault.BEHIND, ShardFault.AHEAD)


def shard_fault(home: Mapping[str, str], shard: Mapping[str, str]) -> ShardFault:
    """Compares a shard with home by their `CONSISTENCY_FIELDS` fields.

    A first start takes over home first. Until the first commit, a shard may lack its record, or have the record of a
    first start that home has lost.
    """
    decided, applied = (int(each.get("committed") or 0) for each in (home, shard))
    if "dropping" in shard:
        return ShardFault.DROPPING
    if shard.get("begun") != shard.get("ended"):
        return ShardFault.TORN
    if not shard.get("generation"):
        return ShardFault.GONE if decided else ShardFault.NONE
    if shard["generation"] != home.get("generation") and (decided or applied):
        return ShardFault.OTHER_LIFE
    if applied != decided:
        return ShardFault.BEHIND if applied < decided else ShardFault.AHEAD
    return ShardFault.NONE if shard.get("chain", "") == home.get("chain", "") else ShardFault.OTHER_HISTORY
