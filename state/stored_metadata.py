"""Reads stored metadata and numbers at start: what cannot be read is named, with the remedy.

A checksum tells before whether the entries are those the last write left. What it finds wrong may be readable
all the same, and what is unreadable may carry the right sum, if other software has written both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from state.codec import CodecError, unpack
from state.errors import StateRefusedError
from state.keys import Keys
from state.metadata_sum import MetadataSum

_FIELD = re.compile(r".+:[1-9][0-9]{0,15}", re.DOTALL)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")


def verified_metadata(keys: Keys, items: Sequence[Any], stored_sum: str) -> tuple[dict[str, bytes], MetadataSum]:
    """Stored metadata, field -> packed value, from a flat list of both, and its checksum.

    Raises:
        StateRefusedError: the checksum is not the stored one.
    """
    packed = {str(items[i], "utf-8", "backslashreplace"): bytes(items[i + 1]) for i in range(0, len(items), 2)}
    found_sum = MetadataSum(packed)
    if str(found_sum) != stored_sum:
        raise StateRefusedError(
            f"topology {keys.topology_id!r} cannot start: its {len(packed)} stored metadata entries are not "
            f"the ones its last write left (checksum {found_sum}, expected {stored_sum}), so the server has lost "
            f"or altered some{unreadable_metadata(packed)}; restore its data from a copy taken at one moment, or "
            f"start over with `txbatch drop {keys.topology_id}`"
        )
    return packed, found_sum


def unpack_metadata(keys: Keys, packed: Mapping[str, bytes]) -> dict[str, Any]:
    """Metadata field -> value.

    Raises:
        StateRefusedError: a field or value is not of the form txbatch writes.
    """
    metadata: dict[str, Any] = {}
    for field, value in packed.items():
        fault, metadata[field] = _read(field, value)
        if fault:
            raise StateRefusedError(f"topology {keys.topology_id!r} cannot start: {fault}{damage_remedy(keys)}")
    return metadata


def unreadable_metadata(packed: Mapping[str, bytes]) -> str:
    """The part of a sentence that names the entries that cannot be read; "" if all can."""
    faults = [fault for field, value in packed.items() if (fault := _read(field, value)[0])]
    more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
    return f"; {', '.join(faults[:3])}{more}" if faults else ""


def checked_control(keys: Keys, control: dict[str, str]) -> dict[str, str]:
    """The control hash, whose numbers are numbers.

    Raises:
        StateRefusedError: one is none.
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
        )


def _read(field: str, value: bytes) -> tuple[str, Any]:
    """What is wrong with an entry, "" if nothing is, and its value."""
    if not _FIELD.fullmatch(field):
        return f"metadata field {field!r} is none of ours, which end in a colon and a txid", None
    try:
        return "", unpack(value)
    except CodecError as error:
        return f"metadata field {field!r} holds {value[:40]!r}, which cannot be read ({error})", None


def damage_remedy(keys: Keys) -> str:
    """The end of a sentence about something stored that is not of the form txbatch writes."""
    return (
        "; other software has written it, or the server's data is damaged: restore the data from a copy taken at one "
        f"moment, or start over with `txbatch drop {keys.topology_id}`"
    )
