"""A quarantined batch: its input, why it was set aside, and when. Pure.

A record is written by the commit that publishes its transaction empty, and removed by the commit that republishes the
batch, or by an operator's drop. It is one packed value of a hash, so it is read whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from state.codec import CodecError, pack_exact, unpack
from state.errors import StateRefusedError
from state.keys import Keys
from state.troubles import Trouble

_TXID = re.compile(r"[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True)
class BatchInput:
    """Everything a spout needs to emit a batch again, exactly.

    Attributes:
        number: the spout's number of the batch; the txid, unless batches were republished before it was cut.
        metadata: the metadata that the spout's coordinator cut.
        positions: scope -> the stored metadata of each partition: its part of the batch, or where that part ended.
        starts: scope -> where each partition's part began; only for spouts that cut every attempt again.
    """

    number: int
    metadata: Any
    positions: Mapping[str, Any] = field(default_factory=dict)
    starts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoisonCause:
    """Why a batch was given up.

    Attributes:
        reason: the last error, as one line or a few.
        attempt_count: how many attempts failed because of the batch.
        component_id: the component where the last attempt failed; empty if none is known to be at fault.
        task_index: the task of that component, from 0.
        traceback_text: the traceback of user code, if it raised.
        tuple_text: the tuple that was being executed, if any.
    """

    reason: str
    attempt_count: int
    component_id: str = ""
    task_index: int = 0
    traceback_text: str = ""
    tuple_text: str = ""

    @property
    def place(self) -> str:
        """Where the last attempt failed, in words."""
        return f"{self.component_id}[{self.task_index}]" if self.component_id else "no known component"


_STORED = (
    ("number", "metadata", "positions", "starts"),
    ("reason", "attempt_count", "component_id", "task_index", "traceback_text", "tuple_text"),
    ("set_aside_at_s", "topology_fingerprint", "source_fingerprint"),
)
"""The stored attributes of the batch, of the cause and of the record itself, in the order of their declarations."""


@dataclass(frozen=True, slots=True)
class QuarantineRecord:
    """One quarantined batch, as stored.

    Attributes:
        txid: the transaction that was committed empty in its place.
        set_aside_at_s: when it was set aside, in seconds since the epoch by the driver's clock.
        topology_fingerprint: digest of the topology's description at that time.
        source_fingerprint: fingerprint of the input at that time.
    """

    txid: int
    batch: BatchInput
    cause: PoisonCause
    set_aside_at_s: float
    topology_fingerprint: str
    source_fingerprint: str

    def packed(self) -> bytes:
        """Returns the stored form; raises CodecError if some metadata would not be read back unchanged."""
        parts = [
            (part, name) for part, names in zip((self.batch, self.cause, self), _STORED, strict=True) for name in names
        ]
        found = {name: getattr(part, name) for part, name in parts}
        return pack_exact(found | {name: dict(found[name]) for name in ("positions", "starts")})


@dataclass(frozen=True, slots=True)
class SetAside:
    """A batch to quarantine in the same step that commits its transaction empty.

    The server refuses the commit (FULL) if the topology has `limit` quarantined batches already.
    """

    record: QuarantineRecord
    limit: int

    def operation(self) -> list[str | bytes]:
        """Returns the operation on the hash of quarantined batches: its name, its count and its arguments."""
        return ["admit", "1", str(self.limit), str(self.record.txid), self.record.packed()]


@dataclass(frozen=True, slots=True)
class RepublishedQuarantine:
    """The txid of a quarantined batch that a commit republishes; the server refuses (GONE) if the record is gone."""

    txid: int

    def operation(self) -> list[str | bytes]:
        """See `SetAside.operation`."""
        return ["take", "1", str(self.txid)]


QuarantineChange = SetAside | RepublishedQuarantine


def unpack_record(keys: Keys, field_name: str, packed: bytes) -> QuarantineRecord:
    """Inverse of `QuarantineRecord.packed`; `field_name` is the txid as stored."""
    try:
        if not _TXID.fullmatch(field_name):
            raise ValueError("its name is not a txid")
        found = unpack(packed)
        batch, cause, stamps = ([found[name] for name in names] for names in _STORED)
        return QuarantineRecord(int(field_name), BatchInput(*batch), PoisonCause(*cause), *stamps)
    except (CodecError, LookupError, TypeError, ValueError) as error:
        raise StateRefusedError(
            f"topology {keys.topology_id!r} has field {field_name!r} in key {keys.quarantine!r}, which is not a "
            f"quarantined batch ({error}); other software wrote it, or the server's data is damaged: restore the data "
            "from a copy taken at one moment, or remove the field"
        ).about(Trouble.DAMAGED) from None
