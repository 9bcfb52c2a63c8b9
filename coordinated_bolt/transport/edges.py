"""Edges of the ack tree, addressed by content.

There is one edge per (attempt, sender, target). Its id is the sum of its frames' hashes; each hash covers the attempt,
both tasks, the frame's sequence number, its number of tuples and its bytes. The sender puts the id into the tree; the
receiver computes its own from the bytes it has read. The two cancel only if the target has read exactly what the sender
has sent: a frame that is lost, doubled, altered or filed under another attempt leaves the tree open.

Where nothing was sent there is no edge, which counts as 0. That is safe: a receiver that has read something anyway has
an edge, and so does a sender whose tuples were lost.
"""

from __future__ import annotations

import struct
from hashlib import blake2b

from state.attempt import TransactionAttempt

DRIVER = 0
"""Task id of the driver as the sender of batch tuples; task ids start at 1."""
_FRAME = struct.Struct(">QQIIIQ")
_ID_RANGE = 2**64


class EdgeDigest:
    """The digest of one edge, fed with its frames in sequence; sender and receiver both use this class.

    Attributes:
        tuple_count: number of tuples in the frames.
        frame_count: number of frames.
    """

    __slots__ = ("_attempt", "_sender", "_sum", "_target", "frame_count", "tuple_count")

    def __init__(self, attempt: TransactionAttempt, sender: int, target: int) -> None:
        self._attempt, self._sender, self._target = attempt, sender, target
        self._sum = self.tuple_count = self.frame_count = 0

    def add(self, sequence: int, payload: bytes, tuple_count: int) -> None:
        """Adds the next frame of the edge."""
        attempt = self._attempt
        header = _FRAME.pack(attempt.txid, attempt.attempt_id, self._sender, self._target, sequence, tuple_count)
        self._sum += int.from_bytes(blake2b(header + payload, digest_size=8).digest(), "big")
        self.tuple_count += tuple_count
        self.frame_count += 1

    def edge_id(self) -> int:
        """Returns the 64-bit id of the edge for the frames so far, 0 if there are none."""
        return self._sum % _ID_RANGE


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
