"""Spells a topology's Redis keys; no other module does.

All keys of a topology share the hash tag ``{topology_id}``, so they live in one cluster slot and one
function call may touch them together. User state is ``{topology_id}:<name>``, or ``{topology_id}:<name>:<part>``
if it has one key for each day, customer or whatever else it is kept per; txbatch's own keys are under
``{topology_id}:txbatch:``. Names cannot contain a colon or a brace, and parts are quoted, so no two spell the same key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from urllib.parse import quote, unquote

from state.errors import TopologyError

NAME_RULE = "1 to 64 of the characters A-Z a-z 0-9 _ . -, not dots alone"
NAME_LENGTH_MAX = 64
RESERVED_NAME = "txbatch"
_SHARD = f"{RESERVED_NAME}:shard"
PART_LENGTH_MAX = 200
"""Most characters of a quoted part."""
_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9_.-]{1,64}")  # as a step of a path or an address, .. leads elsewhere


def check_name(kind: str, name: str) -> str:
    """Returns a valid name for a topology, component, stream or state; a TopologyError calls any other value `kind`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TopologyError(f"{kind} {name!r} is not a valid name; use {NAME_RULE}")
    return name


@dataclass(frozen=True, slots=True)
class Keys:
    """The Redis keys of one topology, whose id is unique on its server. The records are hashes.

    Attributes:
        control: fence, generation, committed txid, fingerprints, format version.
        metadata: stored metadata of uncommitted transactions, see `metadata_field`.
        receipts: txid -> what was published for it, for the most recent txids.
        history: txid -> its receipt and metadata, for the last of the committed ones; see `KeptTransaction`.
        quarantine: txid -> the batch that was set aside there, see `QuarantineRecord`.
        pulse: what the last run reported of itself, see `RunPulse`.
        stories: txid -> what the run reported of the transaction, see `TransactionStory`.
        offsets: partition of a source -> how far a plain spout is with it; see `RedisOffsetRecords`.
        staging: the import under way; what it has staged is under this key, its nonce and a number.
    """

    topology_id: str
    control: str = field(init=False, repr=False, compare=False)
    metadata: str = field(init=False, repr=False, compare=False)
    receipts: str = field(init=False, repr=False, compare=False)
    history: str = field(init=False, repr=False, compare=False)
    quarantine: str = field(init=False, repr=False, compare=False)
    pulse: str = field(init=False, repr=False, compare=False)
    stories: str = field(init=False, repr=False, compare=False)
    offsets: str = field(init=False, repr=False, compare=False)
    staging: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name("topology id", self.topology_id)
        for name in (entry.name for entry in fields(self) if not entry.init):
            record = "import" if name == "staging" else name
            object.__setattr__(self, name, self.state(f"{RESERVED_NAME}:{record}"))

    def shard(self, number: int) -> Keys:
        """Returns the keys of a shard of this topology, which lie in a slot of their own.

        Its record of who may write has a name of its own, so that nobody takes a shard for a topology.
        """
        keys = Keys(f"{self.topology_id}.{number}")
        object.__setattr__(keys, "control", keys.state(_SHARD))
        return keys

    @property
    def is_shard(self) -> bool:
        """Whether these are the keys of a shard."""
        return self.control == self.state(_SHARD)

    @property
    def owner_id(self) -> str:
        """The topology whose keys these are: of a shard, the one at home."""
        return self.topology_id.rpartition(".")[0] if self.is_shard else self.topology_id

    @property
    def other_control(self) -> str:
        """The record of somebody else in this slot: of a topology named like this shard, or the reverse."""
        return self.state(f"{RESERVED_NAME}:control" if self.is_shard else _SHARD)

    @property
    def staged(self) -> str:
        """Of a shard: the part of a group that it has staged."""
        return self.state(f"{RESERVED_NAME}:staged")

    @property
    def decisions(self) -> str:
        """Of a shard: the last decisions that it has applied."""
        return self.state(f"{RESERVED_NAME}:decisions")

    @property
    def copies(self) -> str:
        """Of a shard: the parts of the last groups of another shard."""
        return self.state(f"{RESERVED_NAME}:copies")

    @property
    def pause(self) -> str:
        """Of a shard: there, and soon gone, while somebody asks that no further group begins."""
        return self.state(f"{RESERVED_NAME}:pause")

    @property
    def pattern(self) -> str:
        """Glob that matches every key of this topology and of no other."""
        escaped = re.sub(r"([*?\[\]\\])", r"\\\1", self.topology_id)
        return f"{{{escaped}}}:*"

    def state(self, name: str) -> str:
        """Returns the plain Redis key of the state with that name; for a state with parts, name it by `member_name`."""
        return f"{{{self.topology_id}}}:{name}"

    def shown(self, name: str, shard_count: int) -> str:
        """Returns the key of a state for readers; with shards, as in ``{topology_id.0..15}:counts``."""
        if shard_count == 1:
            return self.state(name)
        return f"{{{self.topology_id}.0..{shard_count - 1}}}:{name}"

    def parts_pattern(self, name: str) -> str:
        """Glob that matches the keys of all parts of a state."""
        return f"{self.pattern[:-1]}{name}:*"

    def is_record(self, key: str) -> bool:
        """Returns whether a key of this topology is of txbatch's own records, known to this version or not."""
        if self.is_shard and not self.state_name(key).startswith(f"{RESERVED_NAME}:import"):
            own = (self.control, self.staged, self.decisions, self.copies, self.pause)  # others are a topology's
            return key in own
        return self.state_name(key).startswith(f"{RESERVED_NAME}:")

    def state_name(self, key: str) -> str:
        """Inverse of `state`: the name of a state, or of one part of it."""
        return key.removeprefix(f"{{{self.topology_id}}}:")


def metadata_field(scope: str, txid: int) -> str:
    """Returns a field of the metadata hash; each rotating state has one `scope` ("coordinator", "partition.3")."""
    return f"{scope}:{txid}"


CHAIN_SCOPE = "shards"
"""Scope of the metadata that `ShardedStore` keeps for itself, next to that of sources."""


def is_chain(field: str) -> bool:
    """Returns whether a metadata field is of that scope."""
    return field.startswith(f"{CHAIN_SCOPE}:")


def parse_metadata_field(field: str) -> tuple[str, int]:
    scope, _, txid = field.rpartition(":")
    return scope, int(txid)


def member_name(name: str, part: str) -> str:
    """Returns the name of one part of a state, as `Keys.state` takes it.

    What is not an ASCII letter, a digit or one of ``_ . - ~`` is quoted as in an address: ``/a b`` is ``%2Fa%20b``.

    Raises:
        ValueError: the part is empty, too long, or not valid Unicode; the message continues a sentence that names it.
    """
    try:
        quoted = quote(part, safe="")
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode") from None
    if not quoted:
        raise ValueError("is empty")
    if len(quoted) > PART_LENGTH_MAX:
        raise ValueError(f"takes {len(quoted)} characters in a key, more than the limit of {PART_LENGTH_MAX}")
    return f"{name}:{quoted}"


def split_member(name: str) -> tuple[str, str | None]:
    """Inverse of `member_name`: the state and its part; None for a state without parts, or a part spelled otherwise."""
    state, colon, quoted = name.partition(":")
    if not colon:
        return name, None
    part = unquote(quoted, errors="backslashreplace")
    try:
        return (state, part) if member_name(state, part) == name else (name, None)
    except ValueError:
        return name, None
