"""One attempt to emit, in the form that engines get from the driver."""

from __future__ import annotations

from typing import NamedTuple

from state.attempt import TransactionAttempt


class Batch(NamedTuple):
    """One attempt to emit.

    Attributes:
        attempt: identifies the batch; its txid is the key of stored data.
        packed_metadata: the coordinator's metadata: the txid's, as stored, or for an opaque spout the attempt's.
        number: the spout's own number of the batch, if it differs from the txid: the spout does not count republished
            batches, and these keep their first number.
        scopes: the partitions to read when an opaque spout reads a quarantined batch again; None reads all.
        is_of_letters: the metadata is dead letters to emit: for each the stream, the values and, on a direct stream,
            the index of the receiver.
        byte_count: estimated size of its input; 0 if unknown.
    """

    attempt: TransactionAttempt
    packed_metadata: bytes
    number: int | None = None
    scopes: frozenset[str] | None = None
    is_of_letters: bool = False
    byte_count: int = 0
