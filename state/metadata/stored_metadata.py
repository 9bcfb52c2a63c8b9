"""Reads stored metadata and numbers at start; errors name what is unreadable, and the remedy.

A checksum has already told whether the entries are those the last write left. That is a separate question: altered
entries may still be readable, and if other software wrote entries and checksum, unreadable ones may match it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from state.codec import CodecError, unpack
from state.errors import StateRefusedError
from state.keys import Keys
from state.metadata.metadata_sum import MetadataSum
from state.printable import counted
from state.troubles import Trouble

_FIELD = re.compile(r".+:(0|[1-9][0-9]{0,15})", re.DOTALL)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")


def verified_metadata(keys: Keys, items: Sequence[Any], stored_sum: str) -> tuple[dict[str, bytes], MetadataSum]:
    """Returns stored metadata, field -> packed value, and its checksum; `items` is a flat list of both.

    Raises:
        StateRefusedError: the checksum differs from the stored one.
    """
    packed = {str(items[i], "utf-8", "backslashreplace"): bytes(items[i + 1]) for i in range(0, len(items), 2)}
    found_sum = MetadataSum(packed)
    if str(found_sum) != stored_sum:
        raise StateRefusedError(
            f"topology {keys.topology_id!r} cannot start: the server has lost or altered some of its stored "
            f"metadata (checksum over {counted(len(packed), 'field')} is {found_sum}, expected {stored_sum})"
            f"{unreadable_metadata(packed)}; restore its data from a copy taken at one moment, or "
            f"start over with `txbatch drop {keys.topology_id}`"
        ).about(Trouble.DAMAGED)
    return packed, found_sum


def unpack_metadata(keys: Keys, packed: Mapping[str, bytes]) -> dict[str, Any]:
    """Returns metadata field -> value.

    Raises:
        StateRefusedError: a field or value does not have the form txbatch writes.
    """
    metadata: dict[str, Any] = {}
    for field, value in packed.items():
        fault, metadata[field] = _read(field, value)
        if fault:
            raise StateRefusedError(f"topology {keys.topology_id!r} cannot start: {fault}{damage_remedy(keys)}").about(
                Trouble.DAMAGED
            )
    return metadata


def unreadable_metadata(packed: Mapping[str, bytes]) -> str:
    """Returns the part of a sentence that names unreadable entries, "" if there are none."""
    faults = [fault for field, value in packed.items() if (fault := _read(field, value)[0])]
    more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
    return f"; {', '.join(faults[:3])}{more}" if faults else ""


def checked_control(keys: Keys, control: dict[str, str]) -> dict[str, str]:
    """Returns the control hash once its numbers are checked.

    Raises:
        StateRefusedError: one is not a whole number.
    """
    for field in ("committed", "revision"):
        if field in control:
            _number(keys, field, control[field])
    return control


def _number(keys: Keys, field: str, text: str) -> None:
    if not _NUMBER.fullmatch(text):
        raise StateRefusedError(
            f"topology {keys.topology_id!r} cannot be used: field {field!r} of key {keys.control!r} holds {text!r}, "
            f"which is not a whole number{damage_remedy(keys)}"
        ).about(Trouble.DAMAGED)


def _read(field: str, value: bytes) -> tuple[str, Any]:
    """Returns what is wrong with an entry, "" if nothing is, and its value."""
    if not _FIELD.fullmatch(field):
        return f"metadata field {field!r} does not end in a colon and a txid, as txbatch's do", None
    try:
        return "", unpack(value)
    except CodecError as error:
        return f"metadata field {field!r} holds {value[:40]!r}, which cannot be read ({error})", None


def damage_remedy(keys: Keys) -> str:
    """Returns the end of a sentence about stored data that does not have the form txbatch writes."""
    return (
        "; other software wrote it, or the server's data is damaged; restore the data from a copy taken at one "
        f"moment, or start over with `txbatch drop {keys.topology_id}`"
    )
