"""All of a topology's state at one moment, decoded as declared: for tests, checks and exports.

The keys of a state with parts are found by SCAN, before the MULTI that reads them. That MULTI therefore also tells
whether there are others by now: generation and revision are those from before the scan, or KEYS finds none that is not
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from state.errors import StateRefusedError, StateUnreachableError
from state.html_tables import bounded_repr, section, states_table
from state.keys import Keys, split_member
from state.kinds.state_family import StateFamily, part_of_text
from state.kinds.state_handle import StateHandle
from state.printable import said_by
from state.redis_client.redis_errors import stop_sentence
from state.redis_topology.all_records import READ_COMMANDS, entries_of
from state.redis_topology.refusals import TORN_REMEDY
from state.troubles import Trouble
from state.values.state_kind import StateKind
from state.values.value_form import decode_stored

MOMENT = ("generation", "revision")
"""Fields of the control hash that no two moments have in common: each import begins with revision 1 again."""
TRIES = 5
"""How often keys are looked for again because a run has added some."""
_KEYED = (StateKind.HASH, StateKind.SET, StateKind.SORTED_SET)
SEARCHED_KEYS_MAX = 1_000_000
"""Most keys on a server that KEYS may go through: it blocks the server for half a second then."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state between two commits.

    Attributes:
        txid: the last committed transaction, 0 before the first.
        states: state name -> dict (hash, sorted set), set, list, the value (None if there is none), or the count of a
            HyperLogLog. For a state with parts: part -> the same, of each part that exists.
    """

    txid: int
    states: dict[str, Any]

    def __repr__(self) -> str:
        return f"Snapshot(txid={self.txid}, states={bounded_repr(self.states)})"

    def _repr_html_(self) -> str:
        return section(states_table(self.states, caption=f"state as of txid {self.txid:,}"))


def snapshot(client: Any, topology_id: str, handles: Iterable[StateHandle | StateFamily[Any]]) -> Snapshot:
    """Reads whole states at one moment, with one MULTI.

    Call it from anywhere except inside a transaction. It fetches everything at once; read large states with the
    client's own commands.

    Args:
        client: a client of the server. One that decodes its answers (``decode_responses=True``) lends its settings to
            a connection of our own, because what is not text cannot be read through it.
        topology_id: the topology whose state to read.
        handles: the states to read, as declared: ``[StoreCounts.counts]``.

    Raises:
        StateRefusedError: a key, or a value in it, does not have the declared type; a run adds keys faster than they
            can be looked for; or the server has applied part of a write that it had lost.
        StateUnreachableError: the server did not answer.
    """
    keys, wanted = Keys(topology_id), list(handles)
    families = [handle for handle in wanted if isinstance(handle, StateFamily)]
    plain = [handle for handle in wanted if isinstance(handle, StateHandle)]
    try:
        with _of_bytes(client) as raw:
            reading = _Reading(raw, keys, plain, families)
            replies = reading.read()
    except redis.RedisError as error:
        raise StateUnreachableError(f"server of topology {topology_id!r} did not answer: {said_by(error)}") from error
    for reply in (reading.committed, *replies.values()):
        if isinstance(reply, Exception):
            raise StateRefusedError(stop_sentence(reply, f"of topology {topology_id!r}")) from reply
    if reading.is_torn:
        raise StateRefusedError(f"the state of topology {topology_id!r} is torn: {TORN_REMEDY}").about(Trouble.TORN)
    states: dict[str, Any] = {handle.name: _decoded(handle, replies[handle.name]) for handle in plain}
    for family in families:
        states[family.name] = _parts(family, reading.members[family.name], replies)
    return Snapshot(int(reading.committed or 0), states)


class _Reading:
    """One reading of states, with parts that are yet to be found."""

    def __init__(self, client: Any, keys: Keys, plain: list[StateHandle], families: list[StateFamily[Any]]) -> None:
        self._client, self._keys = client, keys
        self._plain, self._families = plain, families
        self.committed: Any = None
        self.is_torn = False
        self.members: dict[str, set[str]] = {family.name: set() for family in families}

    def read(self) -> dict[str, Any]:
        moment = self._client.hmget(self._keys.control, *MOMENT) if self._families else None
        for family in self._families:
            self._learn(family, self._client.scan_iter(match=self._keys.parts_pattern(family.name), count=1000))
        found_moment, replies, _ = self._at_once(searches=False)
        if not self._families or found_moment == moment:
            return replies
        if int(self._client.dbsize()) <= SEARCHED_KEYS_MAX:
            for _ in range(TRIES):
                _, replies, found = self._at_once(searches=True)
                known = {name: set(members) for name, members in self.members.items()}
                for family, each in zip(self._families, found, strict=True):
                    self._learn(family, each)
                if self.members == known:
                    return replies
        raise StateRefusedError(
            f"topology {self._keys.topology_id!r} commits faster than the keys of its parts can be looked for; stop "
            "its run, or read the parts you need by their keys"
        )

    def _learn(self, family: StateFamily[Any], found: Iterable[Any]) -> None:
        names = (self._keys.state_name(key.decode("utf-8", "backslashreplace")) for key in found)
        self.members[family.name].update(name for name in names if split_member(name)[1] is not None)

    def _at_once(self, *, searches: bool) -> tuple[Any, dict[str, Any], list[Any]]:
        kinds = {handle.name: handle.kind for handle in self._plain}
        kinds |= {name: family.kind for family in self._families for name in sorted(self.members[family.name])}
        searched = self._families if searches else []
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.hget(self._keys.control, "committed")
            pipeline.hmget(self._keys.control, *MOMENT)
            pipeline.hmget(self._keys.control, "begun", "ended")
            for family in searched:
                pipeline.keys(self._keys.parts_pattern(family.name))
            for name, kind in kinds.items():
                head, tail = READ_COMMANDS[kind]
                pipeline.execute_command(*head, self._keys.state(name), *tail)
            self.committed, moment, writes, *others = pipeline.execute(raise_on_error=False)
        self.is_torn = isinstance(writes, list) and writes[0] != writes[1]
        found, contents = others[: len(searched)], others[len(searched) :]
        for reply in found:
            if isinstance(reply, Exception):
                raise reply
        return moment, dict(zip(kinds, contents, strict=True)), found


def _parts(family: StateFamily[Any], members: Iterable[str], replies: dict[str, Any]) -> dict[Any, Any]:
    parts: dict[Any, Any] = {}
    for name in sorted(members):
        text = split_member(name)[1]
        if not replies[name] or text is None:
            continue  # it has gone since it was found
        try:
            part = part_of_text(text, family.part_type)
        except ValueError:
            raise StateRefusedError(
                f"state {family.name!r} has a key for the {family.part_name} {text!r}, but is declared with one for "
                f"each {family.part_type.value}; remove the key, or declare the type it has"
            ) from None
        parts[part] = _decoded(family.member(text), replies[name])
    return parts


@contextmanager
def _of_bytes(client: Any) -> Iterator[Any]:
    """Yields the client, or one with the same settings that returns bytes."""
    pool: Any = getattr(client, "connection_pool", None)
    settings = getattr(pool, "connection_kwargs", {})
    if not settings.get("decode_responses"):
        yield client
        return
    own = redis.ConnectionPool(connection_class=pool.connection_class, **{**settings, "decode_responses": False})
    with closing(redis.Redis(connection_pool=own)) as raw:
        try:
            yield raw
        finally:
            own.disconnect()


def _decoded(handle: StateHandle, reply: Any) -> Any:
    if handle.kind is StateKind.HYPERLOGLOG:
        return int(reply)
    where = f"state {handle.name!r}"
    entries = entries_of(handle.kind, reply)
    fields = [decode_stored(field, handle.field_type, where) for field, _ in entries if handle.kind in _KEYED]
    values = [
        decode_stored(value, handle.value_type, where, handle.scale)
        for _, value in entries
        if handle.kind is not StateKind.SET
    ]
    match handle.kind:
        case StateKind.VALUE:
            return values[0] if values else None
        case StateKind.LIST:
            return values
        case StateKind.SET:
            return set(fields)
    return dict(zip(fields, values, strict=True))
