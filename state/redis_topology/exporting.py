"""Reads everything that a server holds of a topology, as of one committed transaction, in pieces of bounded size.

What fits is read by one MULTI, so it is exact even while a run commits. What is larger is read piece by piece between
two looks at generation and revision: if anything was written meanwhile, the reading is discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import redis

from state.errors import StateRefusedError, TransactionError
from state.keys import Keys
from state.records.declared_states import DescribedState
from state.records.stored_records import OWN_KINDS, StoredPiece
from state.redis_client.connection import ENTRIES_AT_ONCE, RedisConnection, text_of
from state.redis_client.redis_errors import stop_error
from state.redis_topology.all_records import COUNT_COMMANDS, WHOLE_COMMANDS, RedisRecords, entries_of, parts_among
from state.redis_topology.snapshots import MOMENT
from state.values.state_kind import StateKind

AT_ONCE_MAX = 100_000
"""Most entries that are read by one MULTI, which blocks the server for a tenth of a second then."""
TRIES = 5


class MovedError(TransactionError):
    """The topology was written while it was read piece by piece: what was read is of no single transaction."""


class RedisExport:
    def __init__(self, connection: RedisConnection, keys: Keys) -> None:
        self._connection, self.keys = connection, keys
        self._records = RedisRecords(connection, keys)

    def control(self) -> dict[str, str]:
        return dict(self._records.records().control)

    def pieces(self, states: Mapping[str, DescribedState]) -> Iterator[dict[str, str] | StoredPiece]:
        """Yields the control hash and then everything else, all of one committed transaction.

        Raises:
            MovedError: at the end; what was yielded must be discarded, and the caller tries again.
        """
        moment = self._moment()
        names = dict(OWN_KINDS)
        for _, state in sorted(states.items()):
            names |= dict.fromkeys(self._records.names_of(state), state.kind)
        counts = [int(self._connection.call(COUNT_COMMANDS[names[name]], self.keys.state(name))) for name in names]
        if sum(counts) <= AT_ONCE_MAX:
            yield from self._at_once(names, [state for state in states.values() if state.part_type], moment)
        else:
            yield from self._one_by_one(names, moment)

    def _moment(self) -> tuple[str, ...]:
        """Returns what no two moments of what is stored have in common: each import begins with revision 1 again."""
        reply = self._connection.call("HMGET", self.keys.control, *MOMENT)
        return tuple("" if value is None else text_of(value) for value in reply)

    def _at_once(
        self, names: Mapping[str, StateKind], searched: Sequence[DescribedState], moment: tuple[str, ...]
    ) -> Iterator[dict[str, str] | StoredPiece]:
        asked: list[tuple[str, ...]] = [("HGETALL", self.keys.control)]
        asked += [("KEYS", self.keys.parts_pattern(state.name)) for state in searched]
        for name, kind in names.items():
            head, tail = WHOLE_COMMANDS[kind]
            asked += [(*head, self.keys.state(name), *tail), ("PEXPIRETIME", self.keys.state(name))]
        replies = self._records.at_once(asked)
        for reply in replies:
            if isinstance(reply, redis.RedisError):
                raise stop_error(reply, self._connection.server) from reply
        control = {text_of(name): text_of(value) for name, value in entries_of(StateKind.HASH, replies[0])}
        if _moment_of(control) != moment:
            found = (parts_among(self.keys, state, each) for state, each in zip(searched, replies[1:], strict=False))
            if not set().union(*found) <= names.keys():
                raise MovedError("a run has added keys while they were looked for")
        yield control
        contents = replies[1 + len(searched) :]
        for (name, kind), content, expiry in zip(names.items(), contents[::2], contents[1::2], strict=True):
            entries = entries_of(kind, content)
            for start in range(0, len(entries), ENTRIES_AT_ONCE):
                yield StoredPiece(name, kind, entries[start : start + ENTRIES_AT_ONCE], _expiry(expiry))

    def _one_by_one(
        self, names: Mapping[str, StateKind], moment: tuple[str, ...]
    ) -> Iterator[dict[str, str] | StoredPiece]:
        control = self.control()
        yield control
        for name, kind in names.items():
            expires_ms = _expiry(self._connection.call("PEXPIRETIME", self.keys.state(name)))
            for entries in self._records.entries(name, kind):
                if entries:
                    yield StoredPiece(name, kind, entries, expires_ms)
        if not _moment_of(control) == moment == self._moment():
            raise MovedError("a run has committed while the state was read")


def busy_error(topology_id: str) -> StateRefusedError:
    """Returns the error for a topology that could not be read at one moment."""
    return StateRefusedError(
        f"topology {topology_id!r} was written during each of {TRIES} readings, and more than {AT_ONCE_MAX:,} entries "
        "cannot be read at one moment; stop its run, export, and start it again"
    )


def _moment_of(control: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(control.get(field, "") for field in MOMENT)


def _expiry(reply: object) -> int | None:
    expires_ms = int(str(reply))
    return expires_ms if expires_ms >= 0 else None
