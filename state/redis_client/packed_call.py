"""Packs the arguments of a large call, so that no call has more than every service takes.

A call is "how many keys, keys, arguments". A small one is sent as it is. In a large one the arguments, and the keys for
which there is no room, travel as a few blocks of many strings each; functions/calls.lua unpacks them. The functions
themselves see no difference. A server also receives one long string faster than many short ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from state.commits.packed_writes import Numbers
from state.errors import StateRefusedError
from state.printable import counted
from state.troubles import Trouble

Argument = str | bytes

ARGUMENTS_LIMIT = 3_999
"""Most arguments of a call, its name included: ElastiCache Serverless takes no more."""
FLAT_MAX = 1_000
"""A call with more keys and arguments is packed."""
BLOCK_MAX = 2_000
"""Most strings in a block; Lua reads two bytes of as many at once."""
PACKED = "packed"
"""First argument of a packed call, as no function has it; the second one is the number of keys in the blocks."""
_HEAD = 5
"""FCALL, the function's name, the number of keys, `PACKED`, and the number of keys in the blocks."""


def packed_call(call: Sequence[Argument]) -> Sequence[Argument]:
    """Returns a call as it is sent; called by `RedisConnection.function`.

    The keys in the blocks are not declared. A server that insists on that refuses the call when the function first
    looks at one, and no function writes before it has looked at all of them.
    """
    if len(call) <= FLAT_MAX:
        return call
    key_count, strings = int(call[0]), [each.encode() if isinstance(each, str) else each for each in call[1:]]
    declared = min(key_count, ARGUMENTS_LIMIT - _HEAD + len(strings) // -BLOCK_MAX)
    if declared < 1:
        raise StateRefusedError(
            f"a call with {counted(len(strings), 'argument')} cannot be sent, not even packed; nothing was changed; "
            "cut smaller transactions"
        ).about(Trouble.STATE_REFUSED)
    return [str(declared), *strings[:declared], PACKED, str(key_count - declared), *_blocks(strings[declared:])]


def _blocks(strings: Sequence[bytes]) -> Iterator[bytes]:
    """Yields the strings in blocks: how many, the bytes of each length, the lengths, and the strings."""
    for start in range(0, len(strings), BLOCK_MAX):
        part = strings[start : start + BLOCK_MAX]
        lengths = Numbers.of(list(map(len, part)))
        yield b"".join((b"%d %d " % (len(part), lengths.width), lengths.packed, *part))
