"""Reads everything that a server holds of a topology, as of one committed transaction, in pieces of bounded size.

What fits is read by one MULTI, so it is exact even while a run commits. What is larger is read piece by piece between
two looks at generation and revision: if anything was written meanwhile, the reading is discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from state.errors import StateRefusedError, TransactionError
from state.records.declared_states import DescribedState
from state.records.stored_records import OWN_KINDS, StoredPiece
from state.redis_client.connection import ENTRIES_AT_ONCE
from state.redis_topology.all_records import (
    TRIES,
    WHOLE_COMMANDS,
    RedisRecords,
    Sought,
    entries_of,
    moment_of,
)

AT_ONCE_MAX = 100_000
"""Most entries that are read by one MULTI, which blocks the server for a tenth of a second then."""


class MovedError(TransactionError):
    """The topology was written while it was read piece by piece: what was read is of no single transaction."""


def pieces_of(records: RedisRecords, states: Mapping[str, DescribedState]) -> Iterator[dict[str, str] | StoredPiece]:
    """Yields the control hash and then everything else, all of one committed transaction.

    Raises:
        MovedError: at the end; what was yielded must be discarded, and the caller tries again.
    """
    sought = records.sought(state for _, state in sorted(states.items()))
    sought = replace(sought, kinds={**OWN_KINDS, **sought.kinds})
    if records.entry_count(sought) > AT_ONCE_MAX:
        yield from _one_by_one(records, sought)
        return
    control, read = records.at_moment(sought, WHOLE_COMMANDS)
    yield control
    for name, whole in read.items():
        entries = entries_of(whole.kind, whole.reply)
        for start in range(0, len(entries), ENTRIES_AT_ONCE):
            yield StoredPiece(name, whole.kind, entries[start : start + ENTRIES_AT_ONCE], whole.expires_ms)


def _one_by_one(records: RedisRecords, sought: Sought) -> Iterator[dict[str, str] | StoredPiece]:
    control = dict(records.records().control)
    yield control
    for name, kind in sought.kinds.items():
        expires_ms = records.expires_ms(name)
        yield from (StoredPiece(name, kind, entries, expires_ms) for entries in records.entries(name, kind) if entries)
    if not moment_of(control) == sought.since == records.moment():
        raise MovedError("a run has committed while the state was read")


def busy_error(topology_id: str) -> StateRefusedError:
    """Returns the error for a topology that could not be read at one moment."""
    return StateRefusedError(
        f"topology {topology_id!r} was written during each of {TRIES} readings, and more than {AT_ONCE_MAX:,} entries "
        "cannot be read at one moment; stop its run, export, and start it again"
    )
