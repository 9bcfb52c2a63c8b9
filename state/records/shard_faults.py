"""Whether a shard holds what home has decided: the one rule that readers of all shards and `verify` go by. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

STANDING = ("generation", "committed", "chain", "dropping", "begun", "ended", "topology")
"""The fields of a control hash that tell, and over how many shards; home has the chain as metadata, put among them."""


class ShardFault(StrEnum):
    """Why a shard's content does not belong to the topology's state; each completes a sentence about the shard."""

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
        """Whether a run that commits meanwhile shows shards so."""
        return self in (ShardFault.NONE, ShardFault.BEHIND, ShardFault.AHEAD)


def shard_fault(home: Mapping[str, str], shard: Mapping[str, str]) -> ShardFault:
    """Compares the standing of a shard with that of home.

    A first start takes home first. Until something is committed, a shard may lack its record, or have that of a first
    start which home has lost.
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
