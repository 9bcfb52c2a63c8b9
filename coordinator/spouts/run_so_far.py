"""How far a topology is, and what a changed input means for that: reported by the spout, judged by the run.

A run that continues on another input must neither skip anything nor read anything twice unless the user accepts it.
Only the spout can compare inputs, because only it knows what a position means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """How far a topology is, over this run and earlier ones.

    A spout's txids number its own batches: replays of quarantined batches are left out.

    Attributes:
        last_txid: the highest txid that was cut, 0 if there is none; the next one is one higher.
        last: what was returned for it: the metadata of `initialize_transaction`, or the number of partitions; None if
            nothing is stored, as at the start of a run of an opaque spout.
        committed_txid: the last committed txid, 0 if there is none.
    """

    last_txid: int = 0
    last: Any = None
    committed_txid: int = 0

    @property
    def pending(self) -> int:
        """The number of transactions that were cut and are not committed."""
        return self.last_txid - self.committed_txid


@dataclass(frozen=True, slots=True)
class FormerInput:
    """How far earlier runs have read, and what they remember of it.

    Attributes:
        fingerprint: of the input they ran on.
        is_same: whether this input has the same fingerprint; then compare only what a fingerprint does not show.
        last_txid: the highest txid that was cut, committed or not.
        last: its metadata; None for an opaque spout, which stores none ahead.
        pending: metadata of the transactions that were cut and not committed, which are read again as they were cut.
        positions: partition -> what its emitter returned last, for spouts with partitions.
        notes: name -> the last note of that name; see `SpoutCoordinator.notes`.
    """

    fingerprint: str
    is_same: bool
    last_txid: int
    last: Any = None
    pending: tuple[Any, ...] = ()
    positions: Mapping[int, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputChange:
    """The differences of an input, one sentence each; without any, the run continues as on the same input.

    Attributes:
        skipped: parts that were never read and never would be, because they lie before the position.
        again: parts that were read and would be read a second time.
        changed: parts that were read and have changed or are gone; their effect on the state stays.
        impossible: why a run cannot continue on this input at all.
        notes: name -> a note that replaces the former one once the change is accepted; None forgets it.
    """

    skipped: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    impossible: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
