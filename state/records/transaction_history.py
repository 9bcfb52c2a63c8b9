"""The lasting record of a committed transaction: its receipt, and the metadata from which it was cut. Pure.

The commit itself writes the receipt and moves the metadata that it forgets, so a record is exact: it exists if the
transaction is committed. Metadata of the last committed transaction is still where the run needs it; a reader adds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from state.codec import CodecError, unpack
from state.errors import StateRefusedError
from state.keys import Keys
from state.metadata import damage_remedy
from state.records.transaction_story import TransactionStory
from state.troubles import Trouble

RECEIPTS_KEPT = 1_024
"""How many txids keep their receipt."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof of a published txid: its attempt, and the group with which it was published.

    `digest` is the content address of the group's changes, hexadecimal.
    """

    attempt_id: int
    digest: str
    first_txid: int
    last_txid: int


def parse_receipt(keys: Keys, text: str) -> Receipt | None:
    """Parses "attempt digest first last"; returns None for empty text."""
    if not text:
        return None
    try:
        attempt_id, digest, first, last = text.split(" ")
        return Receipt(int(attempt_id, 16), digest, int(first), int(last))
    except ValueError:
        raise StateRefusedError(
            f"topology {keys.topology_id!r} cannot be used: key {keys.receipts!r} holds {text!r}, which is not "
            f"a receipt{damage_remedy(keys)}"
        ).about(Trouble.DAMAGED) from None


_LENGTHS = re.compile(rb"(\d+) (-?\d+)\n")
KEPT_BYTES = 4_096
"""Longest metadata value that is kept, packed."""


@dataclass(frozen=True, slots=True)
class KeptTransaction:
    """The record of a committed transaction: its receipt, and scope -> metadata.

    The spout's coordinator has scope "coordinator". `left_out` has the sizes in bytes of metadata too long to keep.
    """

    receipt: Receipt
    metadata: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownTransaction:
    """All that a server knows of a transaction.

    Attributes:
        history_from: the lowest txid that may have a record; None if no commit has made one yet.
        receipt: its receipt; None if that is no longer kept, or if the transaction is not committed.
        metadata: scope -> the metadata from which it was cut, or will be cut. A republished batch has the metadata of
            the transaction below, not its own, since the next transaction is cut from it.
        left_out: scope -> size in bytes of metadata that was too long to keep.
        source_fingerprint: fingerprint of the last run's input.
        has_republication_mark: it is marked as a republished batch; old marks are forgotten.
    """

    txid: int
    committed_txid: int
    history_from: int | None = None
    receipt: Receipt | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    story: TransactionStory | None = None
    is_quarantined: bool = False
    source_fingerprint: str = ""
    has_republication_mark: bool = False

    @property
    def is_republication(self) -> bool:
        """Whether it republished a quarantined batch or dead letters, and no new input."""
        story = self.story
        return self.has_republication_mark or (
            story is not None and bool(story.republishes or story.republished_letters)
        )

    @property
    def is_committed(self) -> bool:
        return 0 < self.txid <= self.committed_txid

    @property
    def is_forgotten(self) -> bool:
        """Whether it is committed, but its record is no longer kept."""
        return self.is_committed and self.receipt is None


def parse_record(keys: Keys, txid: int, record: bytes) -> KeptTransaction:
    """Parses the record that the commit has written of a transaction."""
    head, _, rest = record.partition(b"\n")
    try:
        receipt = parse_receipt(keys, head.decode())
        if receipt is None:
            raise ValueError("it is empty")
        metadata, left_out = _entries(rest)
    except (ValueError, CodecError, StateRefusedError) as error:
        raise StateRefusedError(
            f"topology {keys.topology_id!r}: the record of txid {txid} in key {keys.history!r} cannot be read "
            f"({error if not isinstance(error, StateRefusedError) else 'it does not begin with a receipt'})"
            f"{damage_remedy(keys)}"
        ) from None
    return KeptTransaction(receipt, metadata, left_out)


def _entries(rest: bytes) -> tuple[dict[str, Any], dict[str, int]]:
    metadata: dict[str, Any] = {}
    left_out: dict[str, int] = {}
    at = 0
    while at < len(rest):
        lengths = _LENGTHS.match(rest, at)
        if lengths is None:
            raise ValueError(f"no lengths at byte {at}")
        scope_length, value_length = int(lengths[1]), int(lengths[2])
        scope_end = lengths.end() + scope_length
        end = scope_end + max(value_length, 0)
        if end > len(rest):
            raise ValueError(f"{end} bytes announced, {len(rest)} there")
        scope = rest[lengths.end() : scope_end].decode()
        if value_length < 0:
            left_out[scope] = -value_length
        else:
            metadata[scope] = unpack(rest[scope_end:end])
        at = end + 1  # a line break before the next entry
    return metadata, left_out
