"""Spells a topology's Redis keys; no other module does.

All keys of a topology share the hash tag ``{topology_id}``, so they are in one cluster slot and one function call may
use them together. User state is ``{topology_id}:<name>``, or ``{topology_id}:<name>:<part>`` if it has one key for each
day, customer or other part; txbatch's own keys are under ``{topology_id}:txbatch:``. Names cannot contain a colon or a
brace, and parts are quoted, so no two states have the same key.
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
_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9_.-]{1,64}")  # in a path or an address, .. leads elsewhere


def check_name(kind: str, name: str) -> str:
    """Returns the name if it is valid for a topology, component, stream or state; otherwise raises TopologyError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TopologyError(f"{kind} {name!r} is not a valid name; use {NAME_RULE}")
    return name


@dataclass(frozen=True, slots=True)
class Keys:
    """The Redis keys of one topology, whose id is unique on its server. The records are hashes.

    Attributes:
        control: fence, generation, committed txid, fingerprints, format version.
        metadata: stored metadata of uncommitted transactions, see `metadata_field`.
        receipts: txid -> receipt, of the most recent txids; see `Receipt`.
        history: txid -> receipt and metadata, of the last committed transactions; see `KeptTransaction`.
        quarantine: txid -> its quarantined batch, see `QuarantineRecord`.
        pulse: the last run's reports about itself, see `RunPulse`.
        stories: txid -> the run's report on the transaction, see `TransactionStory`.
        offsets: partition of a source -> a plain spout's offset in it; see `RedisOffsetRecords`.
        staging: the import under way; its staged keys begin with this key, followed by its nonce and a number.
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
        """Returns the keys of a shard of this topology, which are in another slot.

        The shard's control key has a different name, so that nobody mistakes a shard for a topology.
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
        """The id of the topology that owns these keys, also for a shard."""
        return self.topology_id.rpartition(".")[0] if self.is_shard else self.topology_id

    @property
    def other_control(self) -> str:
        """The control key of another owner of this slot: a topology named like this shard, or the reverse."""
        return self.state(f"{RESERVED_NAME}:control" if self.is_shard else _SHARD)

    @property
    def staged(self) -> str:
        """For a shard: the part of a group that it has staged."""
        return self.state(f"{RESERVED_NAME}:staged")

    @property
    def decisions(self) -> str:
        """For a shard: the last decisions that it has applied."""
        return self.state(f"{RESERVED_NAME}:decisions")

    @property
    def copies(self) -> str:
        """For a shard: copies of other shards' parts of the last groups."""
        return self.state(f"{RESERVED_NAME}:copies")

    @property
    def pause(self) -> str:
        """For a shard: a short-lived key by which a reader asks the run to begin no new group."""
        return self.state(f"{RESERVED_NAME}:pause")

    @property
    def pattern(self) -> str:
        """Glob that matches every key of this topology and no other."""
        escaped = re.sub(r"([*?\[\]\\])", r"\\\1", self.topology_id)
        return f"{{{escaped}}}:*"

    def state(self, name: str) -> str:
        """Returns the plain Redis key of the state with this name; for a part, the name is from `member_name`."""
        return f"{{{self.topology_id}}}:{name}"

    def shown(self, name: str, shard_count: int) -> str:
        """Returns the key of a state for display; with shards like ``{topology_id.0..15}:counts``."""
        if shard_count == 1:
            return self.state(name)
        return f"{{{self.topology_id}.0..{shard_count - 1}}}:{name}"

    def parts_pattern(self, name: str) -> str:
        """Glob that matches the keys of all parts of a state."""
        return f"{self.pattern[:-1]}{name}:*"

    def is_record(self, key: str) -> bool:
        """Returns whether a key of this topology is a record of txbatch, known to this version or not."""
        if self.is_shard and not self.state_name(key).startswith(f"{RESERVED_NAME}:import"):
            own = (self.control, self.staged, self.decisions, self.copies, self.pause)  # other keys are a topology's
            return key in own
        return self.state_name(key).startswith(f"{RESERVED_NAME}:")

    def state_name(self, key: str) -> str:
        """Inverse of `state`: the name of a state, or of a part of it."""
        return key.removeprefix(f"{{{self.topology_id}}}:")


def metadata_field(scope: str, txid: int) -> str:
    """Returns a field of the metadata hash; each rotating state has one `scope` ("coordinator", "partition.3")."""
    return f"{scope}:{txid}"


CHAIN_SCOPE = "shards"
"""Scope of the metadata that `ShardedStore` keeps for itself, among the scopes of sources."""


def is_chain(field: str) -> bool:
    """Returns whether a metadata field has the scope `CHAIN_SCOPE`."""
    return field.startswith(f"{CHAIN_SCOPE}:")


def parse_metadata_field(field: str) -> tuple[str, int]:
    scope, _, txid = field.rpartition(":")
    return scope, int(txid)


def member_name(name: str, part: str) -> str:
    """Returns the name of one part of a state, as `Keys.state` takes it.

    Any character except ASCII letters, digits and ``_ . - ~`` is percent-encoded: ``/a b`` is ``%2Fa%20b``.

    Raises:
        ValueError: the part is empty, too long, or not valid Unicode; the message completes a sentence about the part.
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
    """Inverse of `member_name`: the state and its part; None without a part, or if it is not quoted that way."""
    state, colon, quoted = name.partition(":")
    if not colon:
        return name, None
    part = unquote(quoted, errors="backslashreplace")
    try:
        return (state, part) if member_name(state, part) == name else (name, None)
    except ValueError:
        return name, None
