"""Packs the arguments of a large call, so that no call has more than every service takes.

A call is "how many keys, keys, arguments". A small one is sent as it is. In a large one the arguments, and the keys for
which there is no room, travel as one string; functions/calls.lua unpacks them. The functions themselves see no
difference. A server also receives one long string faster than many short ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from state.codec import pack_strings

Argument = str | bytes

ARGUMENTS_LIMIT = 3_999
"""Most arguments of a call, its name included: ElastiCache Serverless takes no more."""
FLAT_MAX = 1_000
"""A call with more keys and arguments is packed."""
PACKED = "packed"
"""First argument of a packed call, as no function has it; then how many keys are packed, and what is."""
_OTHERS = 6
"""FCALL, the function's name, the number of keys, and the arguments of a packed call."""


def packed_call(call: Sequence[Argument]) -> Sequence[Argument]:
    """Returns a call as it is sent; called by `RedisConnection.function`.

    The keys that are packed are not declared. A server that insists on that refuses the call when the function first
    looks at one, and no function writes before it has looked at all of them.
    """
    if len(call) <= FLAT_MAX:
        return call
    key_count = int(call[0])
    declared = min(key_count, ARGUMENTS_LIMIT - _OTHERS)
    rest = call[declared + 1 :]
    return [str(declared), *call[1 : declared + 1], PACKED, str(key_count - declared), pack_strings(rest)]
