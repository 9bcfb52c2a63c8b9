"""Edges of the ack tree, addressed by content.

There is one edge per (attempt, sender, target). Its id is a hash of the attempt, both tasks, the number
of tuples and the bytes themselves. The sender puts the id into the tree; the receiver computes its own from
what it read. The two cancel only if the target has read exactly what the sender has sent: a frame that is lost,
doubled, altered or filed under another attempt leaves the tree open.
"""

from __future__ import annotations

import hashlib

from coordinated_bolt.transport.frames import Frame
from state.attempt import TransactionAttempt

DRIVER = 0
"""Task id of the driver as the sender of batch tuples; task ids start at 1."""


class EdgeDigest:
    """The digest of one edge, fed with its frames in sequence; sender and receiver both use this class."""

    __slots__ = ("_attempt", "_hasher", "_sender", "_target", "tuple_count")

    def __init__(self, attempt: TransactionAttempt, sender: int, target: int) -> None:
        self._attempt, self._sender, self._target = attempt, sender, target
        self._hasher = hashlib.blake2b(digest_size=8)
        self.tuple_count = 0

    def add(self, frame: Frame, tuple_count: int) -> None:
        """Adds the next frame of the edge."""
        self._hasher.update(b"%d %d %d " % (frame.sequence, frame.kind, len(frame.payload)))
        self._hasher.update(frame.payload)
        self.count(tuple_count)

    def count(self, tuple_count: int) -> None:
        """Adds tuples that are handed over in memory and have no bytes."""
        self.tuple_count += tuple_count

    def edge_id(self) -> int:
        """Returns the 64-bit id of the edge with the frames so far."""
        hasher = self._hasher.copy()
        attempt = self._attempt
        hasher.update(
            b"%d %d %d %d %d" % (attempt.txid, attempt.attempt_id, self._sender, self._target, self.tuple_count)
        )
        return int.from_bytes(hasher.digest(), "big")


def batch_edge(attempt: TransactionAttempt, emitter_task: int, packed_metadata: bytes) -> int:
    """Returns the edge of the batch tuple, from the driver to one emitter task."""
    hasher = hashlib.blake2b(packed_metadata, digest_size=8)
    hasher.update(b"%d %d %d %d" % (attempt.txid, attempt.attempt_id, DRIVER, emitter_task))
    return int.from_bytes(hasher.digest(), "big")
