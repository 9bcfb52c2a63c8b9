"""Reads all of a topology's data on a server, as of one committed transaction, in pieces of bounded size.

Up to a limit, one MULTI reads everything, which is exact even while a run commits. Larger data, and the times at which
fields expire, are read piece by piece between two reads of generation and revision: if anything was written meanwhile,
the reading is discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from state.errors import StateRefusedError, TransactionError
from state.keys import split_member
from state.records.declared_states import DescribedState
from state.records.stored_records import OWN_KINDS, StoredPiece
from state.redis_admin.all_records import (
    TRIES,
    KeysToRead,
    RedisRecords,
    moment_of,
)
from state.redis_admin.whole_replies import WHOLE_COMMANDS, WholeReply, entries_of
from state.redis_client.connection import ENTRIES_AT_ONCE
from state.values.state_kind import StateKind

AT_ONCE_MAX = 100_000
"""Most entries that one MULTI reads; it then blocks the server for a tenth of a second."""


class MovedError(TransactionError):
    """The topology was written while it was read piece by piece: the pieces belong to no single transaction."""


def pieces_of(records: RedisRecords, states: Mapping[str, DescribedState]) -> Iterator[dict[str, str] | StoredPiece]:
    """Yields the control hash and then everything else, all as of one committed transaction.

    Raises:
        MovedError: at the end; the caller must discard everything yielded, and try again.
    """
    expiring = {name for name, state in states.items() if state.fields_expire}
    sought = records.sought(state for _, state in sorted(states.items()))
    sought = replace(sought, kinds={**OWN_KINDS, **sought.kinds})
    is_read_at_once = records.entry_count(sought) <= AT_ONCE_MAX
    if is_read_at_once:
        control, read = records.at_moment(sought, WHOLE_COMMANDS)
        since, pieces = moment_of(control), _at_once(read)
    else:
        control = dict(records.records().control)
        since, pieces = sought.since, _one_by_one(records, sought)
    yield control
    yield from (records.with_expiries(piece) if split_member(piece.name)[0] in expiring else piece for piece in pieces)
    if (expiring or not is_read_at_once) and not moment_of(control) == since == records.moment():
        raise MovedError("a run has committed while the state was read")


def _at_once(read: Mapping[str, WholeReply]) -> Iterator[StoredPiece]:
    for name, whole in read.items():
        entries = entries_of(whole.kind, whole.reply)
        for start in range(0, len(entries), ENTRIES_AT_ONCE):
            yield StoredPiece(name, whole.kind, entries[start : start + ENTRIES_AT_ONCE], whole.expires_ms)
        if whole.position is not None:
            yield StoredPiece(name, whole.kind, [], whole.expires_ms, position=whole.position)


def _one_by_one(records: RedisRecords, sought: KeysToRead) -> Iterator[StoredPiece]:
    for name, kind in sought.kinds.items():
        expires_ms = records.expires_ms(name)
        yield from (StoredPiece(name, kind, entries, expires_ms) for entries in records.entries(name, kind) if entries)
        if kind is StateKind.STREAM and (position := records.position(name)) is not None:
            yield StoredPiece(name, kind, [], expires_ms, position=position)


def busy_error(topology_id: str) -> StateRefusedError:
    """Returns the error for a topology that could not be read at one moment."""
    return StateRefusedError(
        f"topology {topology_id!r} was written during each of {TRIES} readings, and neither more than {AT_ONCE_MAX:,} "
        "entries nor fields that expire can be read at one moment; stop its run, export, and start it again"
    )
