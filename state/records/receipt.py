"""What was published for a txid; the server keeps it for the most recent txids."""

from __future__ import annotations

from dataclasses import dataclass

from state.errors import StateRefusedError
from state.keys import Keys
from state.metadata.stored_metadata import damage_remedy
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
