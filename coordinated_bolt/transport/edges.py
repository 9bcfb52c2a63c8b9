"""Edges of the ack tree, addressed by content.

There is one edge per (attempt, sender, target). Its id is a hash of the attempt, both tasks, the number
of tuples and the bytes themselves. The sender puts the id into the tree; the receiver computes its own from
what it read. The two cancel only if the target has read exactly what the sender has sent: a frame that is lost,
doubled, altered or filed under another attempt leaves the tree open.

Where nothing was sent there is no edge, which counts as 0. That needs no proof of its own: a receiver that has read
something all the same has an edge, and so has a sender whose tuples were lost.
"""

from __future__ import annotations

import struct
from hashlib import blake2b

from state.attempt import TransactionAttempt

DRIVER = 0
"""Task id of the driver as the sender of batch tuples; task ids start at 1."""
_EDGE = struct.Struct(">QQII")
_FRAME = struct.Struct(">IQQ")


class EdgeDigest:
    """The digest of one edge, fed with its frames in sequence; sender and receiver both use this class.

    Attributes:
        tuple_count: number of tuples in the frames.
        frame_count: number of frames.
    """

    __slots__ = ("_hasher", "frame_count", "tuple_count")

    def __init__(self, attempt: TransactionAttempt, sender: int, target: int) -> None:
        self._hasher = blake2b(_EDGE.pack(attempt.txid, attempt.attempt_id, sender, target), digest_size=8)
        self.tuple_count = self.frame_count = 0

    def add(self, sequence: int, payload: bytes, tuple_count: int) -> None:
        """Adds the next frame of the edge."""
        self._hasher.update(_FRAME.pack(sequence, tuple_count, len(payload)))
        self._hasher.update(payload)
        self.tuple_count += tuple_count
        self.frame_count += 1

    def edge_id(self) -> int:
        """Returns the 64-bit id of the edge with the frames so far, 0 if there are none."""
        return int.from_bytes(self._hasher.digest(), "big") if self.frame_count else 0


def handed_edge(attempt: TransactionAttempt, sender: int, target: int, tuple_count: int) -> int:
    """Returns the edge of tuples that are handed over in memory and have no bytes; 0 if there are none."""
    if not tuple_count:
        return 0
    identity = b"%d %d %d %d %d" % (attempt.txid, attempt.attempt_id, sender, target, tuple_count)
    return int.from_bytes(blake2b(identity, digest_size=8).digest(), "big")


def batch_edge(attempt: TransactionAttempt, emitter_task: int, packed_metadata: bytes) -> int:
    """Returns the edge of the batch tuple, from the driver to one emitter task."""
    hasher = blake2b(packed_metadata, digest_size=8)
    hasher.update(b"%d %d %d %d" % (attempt.txid, attempt.attempt_id, DRIVER, emitter_task))
    return int.from_bytes(hasher.digest(), "big")
