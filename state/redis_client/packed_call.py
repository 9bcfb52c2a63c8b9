"""Packs the arguments of a large call, so that no call has more, and none longer, than every service takes.

A call is "how many keys, keys, arguments". A small one is sent as it is. In a large one the arguments, and the keys for
which there is no room, travel as one string, cut into pieces; functions/calls.lua unpacks them. The functions
themselves see no difference. A server also receives a few long strings faster than many short ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from state.codec import pack_strings

Argument = str | bytes

ARGUMENTS_LIMIT = 3_999
"""Most arguments of a call, its name included: ElastiCache Serverless takes no more."""
FLAT_MAX = 1_000
"""A call with more keys and arguments is packed."""
PIECE_MAX = 256 * 1024
"""Longest piece, in bytes, and longest argument of a call that is not packed, in characters: a server closes the
connection of one that sends longer arguments than its proto-max-bulk-len, which may be set to no less than 1 MB."""
PACKED = "packed"
"""First argument of a packed call, as no function has it; then how many keys are packed, and the pieces."""
_OTHERS = 5
"""FCALL, the function's name, the number of keys, and the arguments of a packed call before the pieces."""


def packed_call(call: Sequence[Argument]) -> Sequence[Argument]:
    """Returns a call as it is sent; called by `RedisConnection.function`.

    The keys that are packed are not declared. A server that insists on that refuses the call when the function first
    looks at one, and no function writes before it has looked at all of them.
    """
    if len(call) <= FLAT_MAX and max(map(len, call)) <= PIECE_MAX:
        return call
    key_count = declared = int(call[0])
    room = 1
    while True:  # ends, as fewer keys are declared each time
        declared = max(0, min(declared, ARGUMENTS_LIMIT - _OTHERS - room))
        packed = pack_strings(call[declared + 1 :])
        pieces = [packed[start : start + PIECE_MAX] for start in range(0, len(packed), PIECE_MAX)]
        room = len(pieces)
        if not declared or declared + _OTHERS + room <= ARGUMENTS_LIMIT:
            return [str(declared), *call[1 : declared + 1], PACKED, str(key_count - declared), *pieces]
