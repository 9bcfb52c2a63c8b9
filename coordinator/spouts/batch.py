"""One attempt to emit, as the driver hands it to engines."""

from __future__ import annotations

from typing import NamedTuple

from state.attempt import TransactionAttempt


class Batch(NamedTuple):
    """One attempt to emit.

    Attributes:
        attempt: identifies the batch; what is stored is found under its txid.
        packed_metadata: the coordinator's metadata, of the txid as stored, or for an opaque spout of the attempt.
        number: what the spout knows the batch by, if that is not the txid: it does not count republished
            batches, and these keep the number they were first read with.
        scopes: the partitions to read when an opaque spout reads a quarantined batch again; None reads all.
        is_of_letters: the metadata is dead letters to be emitted: for each the stream, the values and, on a direct
            stream, the index of the receiver.
        byte_count: about how much input it reads; 0 if unknown.
    """

    attempt: TransactionAttempt
    packed_metadata: bytes
    number: int | None = None
    scopes: frozenset[str] | None = None
    is_of_letters: bool = False
    byte_count: int = 0
