"""A topology's data on a server, as values: its records at one moment, its keys, and whole states. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.keys import RESERVED_NAME
from state.values.state_kind import StateKind

MISSING = "none"
"""TYPE's reply for a missing key."""


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """txbatch's own records of a topology, all from one moment; records of a wrong type count as empty.

    Attributes:
        kinds: the control, metadata and receipts key -> its Redis type, `MISSING` if there is no such key.
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

    `ttl_ms` is its remaining time to live; -1 if it does not expire.
    """

    key: str
    kind: str
    ttl_ms: int = -1


Content = Mapping[bytes, bytes] | frozenset[bytes] | tuple[bytes, ...] | bytes | None
"""A whole state as stored: field -> value, member -> score, members, list items, or a value; None without a value."""


@dataclass(frozen=True, slots=True)
class StateImage:
    """Whole states and the matching records, at one moment.

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
"""Field and value, member and score, or a stream entry's id and its packed fields and values, alternating. b"" replaces
the half that a kind does not have.
"""

METADATA_STATE = f"{RESERVED_NAME}:metadata"
STAGED_STATE = f"{RESERVED_NAME}:staged"
OWN_KINDS: Mapping[str, StateKind] = {
    METADATA_STATE: StateKind.HASH,
    f"{RESERVED_NAME}:receipts": StateKind.HASH,
    f"{RESERVED_NAME}:quarantine": StateKind.HASH,
    f"{RESERVED_NAME}:history": StateKind.HASH,
    DEAD_LETTERS_STATE: StateKind.SORTED_SET,
}
"""txbatch's records of a topology, apart from the control hash: name -> kind. They are exported as stored."""


class StreamPosition(NamedTuple):
    """The position of a stream: its last id, and how many entries were ever added."""

    last_id: str
    added: int


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """Some entries of one key; `name` is the name of a state, or of a part of it, as `Keys.state` takes it.

    `expires_ms` is when the key expires, in milliseconds since 1970, None if never; `expiries` the same for fields.
    `position` follows the last entry of a stream.
    """

    name: str
    kind: StateKind
    entries: Entries
    expires_ms: int | None = None
    expiries: Mapping[bytes, int] = field(default_factory=dict)
    position: StreamPosition | None = None
