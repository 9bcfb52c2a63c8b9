"""What another input means for what earlier runs have read: told by the spout, judged by the run.

A run that continues on another input must neither leave anything out nor read anything twice unless the user says
so. Only the spout can tell, because only it knows what a position means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FormerInput:
    """How far earlier runs have read, and what they remember of it.

    Attributes:
        fingerprint: of the input they ran on.
        is_same: whether this input has that very fingerprint; then only what it cannot tell is worth a look.
        last_txid: the highest txid that was cut, committed or not.
        last: its metadata; None of an opaque spout, which stores none ahead.
        pending: metadata of the transactions that were cut and not committed, which are read again as they were cut.
        positions: partition -> what its emitter returned last; of spouts with partitions.
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
    """What is different about an input, a sentence each; nothing means that the run continues as on the same input.

    Attributes:
        skipped: parts nobody has read and nobody would, since they lie before the position.
        again: parts that were read and would be read a second time.
        changed: parts that were read and are different or gone now; what they did to the state stays.
        impossible: why a run cannot continue on it at all.
        notes: name -> a note to be kept instead of the former one once this is accepted; None forgets it.
    """

    skipped: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    impossible: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
