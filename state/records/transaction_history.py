"""What stays known of a committed transaction: its receipt, and the metadata that it was cut from. Pure.

The commit itself writes the receipt here, and moves metadata here that it forgets, so a record is exact: it is there
if the transaction is committed. Metadata of the last committed one is still where a run needs it; a reader adds it.
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
from state.troubles import Trouble

RECEIPTS_KEPT = 1_024
"""How many txids keep their receipt."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was published for a txid.

    Attributes:
        attempt_id: the attempt that was committed.
        digest: content address of the group's changes, hexadecimal.
        first_txid, last_txid: the group it was published with.
    """

    attempt_id: int
    digest: str
    first_txid: int
    last_txid: int


def parse_receipt(keys: Keys, text: str) -> Receipt | None:
    """Parses "attempt digest first last"; returns None for empty text.

    Raises:
        StateRefusedError: the text has another form.
    """
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
    """What is kept of a committed transaction.

    Attributes:
        receipt: what was published for it.
        metadata: scope -> metadata; that of the spout's coordinator has scope "coordinator".
        left_out: scope -> size in bytes, of metadata that was too long to keep.
    """

    receipt: Receipt
    metadata: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


def parse_record(keys: Keys, txid: int, record: bytes) -> KeptTransaction:
    """Parses what the commit has written of a transaction.

    Raises:
        StateRefusedError: the record has another form.
    """
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
        at = end + 1  # a line break before the next one
    return metadata, left_out
