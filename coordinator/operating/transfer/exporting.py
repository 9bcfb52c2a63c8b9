"""Writes a topology's state and position as JSON Lines, all as of one committed transaction (driver)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import IO, Any

from coordinator.operating.transfer.state_lines import lines_of
from state.errors import StateRefusedError, TopologyError
from state.printable import json_line
from state.records.declared_states import DescribedState, declared_states_of, without_former
from state.redis_admin.all_records import TRIES, RedisRecords
from state.redis_admin.exporting import MovedError, busy_error, pieces_of
from state.redis_client.function_library import STORED_FORMAT
from state.redis_owner.refusals import refuse_remains
from state.troubles import Trouble

VERSION = 1
EXPORTED_FIELDS = ("committed", "source_fingerprint", "topology", "metadata_sum", "format", "told", "history_from")
"""Fields of the control hash that describe the position; the others belong to one life of the topology on a server."""


class LineWriter:
    """Writes the lines of an export, and at the end their digest."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._digest, self.line_count = out, blake2b(digest_size=8), 0

    def write(self, line: dict[str, Any]) -> None:
        packed = json_line(line, allow_nan=False).encode() + b"\n"
        self._digest.update(packed)
        self._out.write(packed)
        self.line_count += 1

    def end(self) -> None:
        self.line_count += 1
        ending = {"end": {"lines": self.line_count, "digest": self._digest.hexdigest()}}
        self._out.write(json_line(ending).encode() + b"\n")


def export_state(records: RedisRecords, out: IO[bytes]) -> tuple[int, int]:
    """Writes an export; called once by `txbatch state export`, even during a run.

    Returns the committed txid, and the number of lines, first and last included. `out` is an empty, seekable file: if a
    run commits meanwhile, writing starts again from its beginning.

    Raises:
        TopologyError: the topology is not stored.
        StateRefusedError: the stored state cannot be read, or not at one moment.
        StateUnreachableError: the server does not answer.
    """
    for _ in range(TRIES):
        out.seek(0)
        out.truncate()
        try:
            return _written(records, out)
        except MovedError:
            continue
    raise busy_error(records.keys.topology_id)


def described_states(records: RedisRecords, control: Mapping[str, str] | None = None) -> dict[str, DescribedState]:
    """Returns the states that a stored topology has declared, by its control hash, which is read if not given.

    Raises:
        TopologyError: the topology is not stored.
        StateRefusedError: a drop was left unfinished, the state holds half of a write, or the description cannot be
            read.
    """
    keys, control = records.keys, records.records().control if control is None else control
    if not control:
        raise TopologyError(f"topology {keys.topology_id!r} is not stored there; check its id and the server").about(
            Trouble.UNKNOWN_TOPOLOGY
        )
    refuse_remains(keys.topology_id, control)
    try:
        return declared_states_of(control.get("topology", ""))
    except ValueError as error:
        raise StateRefusedError(
            f"topology {keys.topology_id!r}: its stored description cannot be read ({error}); see `txbatch verify "
            f"{keys.topology_id}`"
        ).about(Trouble.DAMAGED) from None


def _written(records: RedisRecords, out: IO[bytes]) -> tuple[int, int]:
    states = described_states(records)
    writer, committed = LineWriter(out), 0
    for piece in pieces_of(records, states):
        if isinstance(piece, dict):
            if described_states(records, piece) != states:
                raise MovedError("another topology was started while it was read")
            control = {field: piece[field] for field in EXPORTED_FIELDS if field in piece}
            control["format"] = STORED_FORMAT  # an export has the format of a single slot
            control["topology"] = without_former(control["topology"])
            committed = int(control["committed"])
            writer.write(
                {"txbatch": "state", "version": VERSION, "topology": records.keys.topology_id, "control": control}
            )
        else:
            for line in lines_of(piece, states):
                writer.write(line)
    writer.end()
    return committed, writer.line_count
