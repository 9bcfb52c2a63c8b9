"""Everything a server holds of a topology, as values: its records at one moment, its keys, and whole states. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.keys import RESERVED_NAME
from state.values.state_kind import StateKind

MISSING = "none"
"""What TYPE replies for a key that does not exist."""


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """What txbatch itself stores of a topology, all of one moment; records of a wrong type count as empty.

    Attributes:
        kinds: key -> its Redis type, `MISSING` if there is none; of the control, metadata and receipts keys.
        metadata: metadata field -> packed value.
        receipts: txid -> receipt as stored.
    """

    kinds: Mapping[str, str]
    control: Mapping[str, str]
    metadata: Mapping[str, bytes]
    receipts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key below a topology's hash tag; bytes of its name that are not valid UTF-8 are escaped.

    `ttl_ms` is how long it still lives; -1 for ever, which is what txbatch leaves every key at.
    """

    key: str
    kind: str
    ttl_ms: int = -1


Content = Mapping[bytes, bytes] | frozenset[bytes] | tuple[bytes, ...] | bytes | None
"""A whole state as stored: field -> value, member -> score, members, list items, or the value; None if it has none."""


@dataclass(frozen=True, slots=True)
class StateImage:
    """Whole states, and the records they go with, at one moment.

    Attributes:
        metadata: metadata field -> packed value.
        states: state name -> content, an empty one if its key is missing.
    """

    control: Mapping[str, str]
    metadata: Mapping[str, bytes]
    states: Mapping[str, Content]

    @property
    def committed(self) -> str:
        """The last committed txid as stored, "0" if there is none."""
        return self.control.get("committed", "0")


Entries = list[tuple[bytes, bytes]]
"""Field and value, member and score, or an entry's id and its packed fields and values in turns; an empty one stands
for what a kind has none of."""

METADATA_STATE = f"{RESERVED_NAME}:metadata"
STAGED_STATE = f"{RESERVED_NAME}:staged"
OWN_KINDS: Mapping[str, StateKind] = {
    METADATA_STATE: StateKind.HASH,
    f"{RESERVED_NAME}:receipts": StateKind.HASH,
    f"{RESERVED_NAME}:quarantine": StateKind.HASH,
    f"{RESERVED_NAME}:history": StateKind.HASH,
    DEAD_LETTERS_STATE: StateKind.SORTED_SET,
}
"""What txbatch keeps for a topology, apart from the control hash: name -> kind. It is exported as it is stored."""


class StreamPosition(NamedTuple):
    """How far a stream is: the last id that it was given, and how many entries it was given in all."""

    last_id: str
    added: int


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """Some entries of one key; `name` is that of a state, or of one part of it, as `Keys.state` takes it.

    `expires_ms` is when the key goes, in milliseconds since 1970; None if it stays. `expiries` has the fields that go.
    `position` follows the last entry of a stream.
    """

    name: str
    kind: StateKind
    entries: Entries
    expires_ms: int | None = None
    expiries: Mapping[bytes, int] = field(default_factory=dict)
    position: StreamPosition | None = None
