"""Packs the arguments of a large call, so that their number and length stay within the limits of every service.

A call is "number of keys, keys, arguments". A small call is sent unchanged. In a large one the arguments, and keys
beyond the limit, travel as one string, cut into pieces; functions/calls.lua unpacks them, so the functions see no
difference. A server also receives a few long strings faster than many short ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from state.codec import pack_strings

Argument = str | bytes

ARGUMENTS_LIMIT = 3_999
"""Most arguments of a call, its name included: the limit of ElastiCache Serverless."""
FLAT_MAX = 1_000
"""A call with more keys and arguments than this is packed."""
PIECE_MAX = 256 * 1024
"""Longest piece, in bytes, and longest argument of an unpacked call, in characters: a server closes a connection that
sends arguments longer than its proto-max-bulk-len, which is at least 1 MB.
"""
PACKED = "packed"
"""First argument of a packed call, which no function takes; the number of packed keys and the pieces follow."""
_OTHERS = 5
"""FCALL, the function's name, the number of keys, and the arguments of a packed call before the pieces."""


def packed_call(call: Sequence[Argument]) -> Sequence[Argument]:
    """Returns the form in which a call is sent; called by `RedisConnection.function`.

    Packed keys are not declared. A server that insists on declared keys refuses the call when the function first reads
    one, and no function writes before it has read all of them.
    """
    if len(call) <= FLAT_MAX and max(map(len, call)) <= PIECE_MAX:
        return call
    key_count = declared = int(call[0])
    room = 1
    while True:  # ends, because each round declares fewer keys
        declared = max(0, min(declared, ARGUMENTS_LIMIT - _OTHERS - room))
        packed = pack_strings(call[declared + 1 :])
        pieces = [packed[start : start + PIECE_MAX] for start in range(0, len(packed), PIECE_MAX)]
        room = len(pieces)
        if not declared or declared + _OTHERS + room <= ARGUMENTS_LIMIT:
            return [str(declared), *call[1 : declared + 1], PACKED, str(key_count - declared), *pieces]
