"""Reads an export back: the whole file is checked before the server is touched (driver)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import IO, Any

from coordinator.operating.transfer.exporting import EXPORTED_FIELDS, VERSION
from coordinator.operating.transfer.state_lines import LineReader
from state.errors import StateRefusedError, TopologyError
from state.keys import RESERVED_NAME, Keys, is_chain
from state.metadata import MetadataSum
from state.records.declared_states import DescribedState, declared_states_of, shard_count_of, with_shards
from state.records.stored_records import Entries, StoredPiece
from state.redis_admin.importing import AsOf, StateImport
from state.redis_client.connection import ENTRIES_AT_ONCE
from state.redis_client.function_library import STORED_FORMAT

_METADATA = f"{RESERVED_NAME}:metadata"


@dataclass(frozen=True, slots=True)
class Export:
    """An export that was read to its end and is complete.

    `control` holds the fields of the exported control hash that describe the position.
    """

    topology_id: str
    committed_txid: int
    control: dict[str, str]
    states: dict[str, DescribedState]
    line_count: int

    @property
    def shard_count(self) -> int:
        """The number of shards that the topology is spread over."""
        return shard_count_of(self.control["topology"])

    def over(self, shard_count: int) -> Export:
        """Returns the same export, for another number of shards."""
        return replace(self, control={**self.control, "topology": with_shards(self.control["topology"], shard_count)})


def checked_export(file: IO[bytes]) -> Export:
    """Reads a file to its end, and returns the export in it.

    Raises:
        StateRefusedError: the file is not an export, is of another version, or is incomplete.
    """
    digest, count, ending, metadata = blake2b(digest_size=8), 0, None, dict[str, bytes]()
    export: Export | None = None
    reader = LineReader({})
    for number, packed in enumerate(file, start=1):
        line = _parsed(packed, number)
        count = number
        if ending is not None:
            raise _refused(number, "it follows the last line")
        if number == 1:
            export = _first(line)
            reader = LineReader(export.states)
        elif "end" in line:
            ending = line["end"]
            continue
        else:
            piece = _read(reader, line, number)
            if piece.name == _METADATA:
                metadata.update((field.decode(), value) for field, value in piece.entries)
        digest.update(packed)
    if export is None or ending != {"lines": count, "digest": digest.hexdigest()}:
        raise StateRefusedError(
            f"the file is not a complete export: it has {count:,} lines, but its last line says otherwise; the file "
            "was cut or altered, so take another copy"
        )
    if str(MetadataSum(metadata)) != export.control["metadata_sum"]:
        raise StateRefusedError("the file is not a sound export: its metadata does not match its checksum")
    own = {field: value for field, value in metadata.items() if not is_chain(field)}
    export.control["metadata_sum"] = str(MetadataSum(own))
    return Export(export.topology_id, export.committed_txid, export.control, export.states, count)


def import_state(
    target: StateImport,
    export: Export,
    file: IO[bytes],
    *,
    generation: str,
    replaces: bool,
    renamed: Callable[[str], str] = str,
    as_of: AsOf | None = None,
) -> int:
    """Puts a checked export into a topology, everything at once, and returns how many keys it replaced.

    Args:
        target: writes to the server.
        export: the export in `file`.
        file: the file that `checked_export` has read, at its start.
        generation: see `StateImport.restore`.
        replaces: whether existing state of the topology is deleted in the same step; if not, it is refused.
        renamed: name of a state or part -> its new name.
        as_of: the state in which the topology must still be, see `StateImport.restore`.
    """
    target.begin()
    for piece in _pieces(export, file):
        target.stage(replace(piece, name=renamed(piece.name)))
    return target.restore(export.control, generation=generation, replaces=replaces, as_of=as_of)


def _pieces(export: Export, file: IO[bytes]) -> Iterator[StoredPiece]:
    """Yields the file's entries, with as many entries of one key together as fit."""
    reader = LineReader(export.states)
    entries: Entries = []
    expiries: dict[bytes, int] = {}
    last: StoredPiece | None = None
    for number, packed in enumerate(file, start=1):
        line = _parsed(packed, number)
        if number == 1 or "end" in line:
            continue
        piece = _read(reader, line, number)
        if piece.name == _METADATA:  # an import begins a new chain of its shards
            piece = replace(piece, entries=[each for each in piece.entries if not is_chain(each[0].decode())])
        if not piece.entries and piece.position is None:
            continue
        is_full = len(entries) == ENTRIES_AT_ONCE or piece.position is not None
        if last is not None and entries and (piece.name != last.name or is_full):
            yield replace(last, entries=entries, expiries=expiries)
            entries, expiries = [], {}
        if piece.position is not None:
            yield piece
        entries += piece.entries
        expiries |= piece.expiries
        last = piece
    if last is not None and entries:
        yield replace(last, entries=entries, expiries=expiries)


def _first(line: dict[str, Any]) -> Export:
    if line.get(RESERVED_NAME) != "state":
        raise _refused(1, "exports of `txbatch state export` begin otherwise")
    if line.get("version") != VERSION:
        raise _refused(
            1, f"the export has version {line.get('version')!r}, expected {VERSION}; use the txbatch that wrote it"
        )
    try:
        control = {field: str(line["control"][field]) for field in EXPORTED_FIELDS if field in line["control"]}
        states = declared_states_of(control["topology"])
        export = Export(Keys(line["topology"]).topology_id, int(control["committed"]), control, states, 0)
        found_format = control["format"]
        control["metadata_sum"], control["source_fingerprint"]
    except (KeyError, TypeError, ValueError, TopologyError) as error:
        raise _refused(1, f"it lacks a part of the position ({error})") from None
    if found_format != STORED_FORMAT:
        raise _refused(
            1, f"the state has format {found_format!r}, expected {STORED_FORMAT!r}; use the txbatch that wrote it"
        )
    return export


def _parsed(packed: bytes, number: int) -> dict[str, Any]:
    try:
        line = json.loads(packed)
    except ValueError:
        line = None
    if not isinstance(line, dict):
        raise _refused(number, "it is not a JSON object")
    return line


def _read(reader: LineReader, line: dict[str, Any], number: int) -> StoredPiece:
    try:
        return reader.read(line)
    except (ValueError, TypeError) as error:
        raise _refused(number, str(error)) from None


def _refused(number: int, why: str) -> StateRefusedError:
    return StateRefusedError(f"line {number:,} of the export cannot be used: {why}; nothing was changed")
