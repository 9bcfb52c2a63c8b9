"""One attempt at a transaction: the key of everything in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class TransactionAttempt:
    """A transaction id and the id of one attempt at it.

    Two attempts at the same txid never share anything: reports, frames and writes of an attempt that
    is no longer current are recognised by its attempt id and ignored.

    Attributes:
        txid: position of the transaction in the strict commit order, from 1.
        attempt_id: 64-bit number, drawn for each attempt.

    Source: backtype.storm.transactional.TransactionAttempt.
    """

    txid: int
    attempt_id: int

    def __hash__(self) -> int:
        return self.attempt_id  # random already, and used everywhere: a tuple's hash costs five times as much

    def __reduce__(self) -> tuple[Any, ...]:
        return TransactionAttempt, (self.txid, self.attempt_id)  # faster than a dataclass's own, field by field

    def __str__(self) -> str:
        return f"{self.txid}:{self.attempt_id:016x}"


Attempts = tuple[TransactionAttempt, ...]
"""Several attempts, ascending by txid unless stated otherwise."""
