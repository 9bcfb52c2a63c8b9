"""How far a topology is, and the changes of its input since earlier runs.

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

    A spout's txids number its own batches: republished batches are left out.

    Attributes:
        last_txid: the highest txid that was cut, 0 if there is none; the next one is one higher.
        last: that transaction's metadata from `initialize_transaction`, or number of partitions; None if nothing is
            stored, as at the start of a run of an opaque spout.
        committed_txid: the last committed txid, 0 if there is none.
        positions: partition -> its emitter's last return value, committed or not, for partitions that were read.
        ahead: number of transactions that were started but are not in `positions` yet: they will read further.
        notes: name -> the last note of that name from earlier runs; see `SpoutCoordinator.notes`.
    """

    last_txid: int = 0
    last: Any = None
    committed_txid: int = 0
    positions: Mapping[int, Any] = field(default_factory=dict)
    ahead: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        """The number of transactions that are cut but not committed."""
        return self.last_txid - self.committed_txid


@dataclass(frozen=True, slots=True)
class FormerInput(RunSoFar):
    """How far earlier runs have read, with their notes and metadata.

    Attributes:
        fingerprint: the fingerprint of their input.
        is_same: whether this input has the same fingerprint; then compare only facts that a fingerprint does not cover.
        pending: metadata of the transactions that were cut but not committed, and will be read again exactly.
    """

    fingerprint: str = ""
    is_same: bool = False
    pending: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class InputChange:
    """The differences between two inputs, one sentence each; without any, the run continues as on the same input.

    Attributes:
        skipped: parts that were never read and never would be, because they lie before the position.
        again: parts that were read and would be read a second time.
        changed: parts that were read and have changed or are gone; their effect on the state stays.
        impossible: reasons why a run cannot continue on this input at all.
        notes: name -> a note that replaces the former one once the change is accepted; None forgets it.
        renamed: parts with content that was read under another name: the user decides whether they are the same parts,
            which are not read again, or new ones.
        again_notes: name -> a note that replaces the one in `notes` if the renamed parts are read again.
    """

    skipped: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    impossible: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    renamed: tuple[str, ...] = ()
    again_notes: Mapping[str, Any] = field(default_factory=dict)
