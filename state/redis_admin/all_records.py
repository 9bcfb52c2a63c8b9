"""Reads everything a server holds of a topology, with plain commands only: for `txbatch verify`.

It uses no function of the library, so it can read a restored copy on any server, needs no right to load functions, and
shares no code with the writes it checks. It changes nothing. Records that must be consistent are read by one MULTI;
single values are checked as they arrive, in pieces that block the server only briefly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import redis

from state.codec import unpack
from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.errors import StateRefusedError, TopologyError
from state.keys import CHAIN_SCOPE, Keys, metadata_field
from state.records.declared_states import DescribedState, OwnedKeys, shard_count_of
from state.records.shard_faults import CONSISTENCY_FIELDS
from state.records.stored_records import (
    METADATA_STATE,
    MISSING,
    Entries,
    StateImage,
    StoredKey,
    StoredPiece,
    StoredRecords,
    StreamPosition,
)
from state.redis_admin.whole_replies import (
    READ_COMMANDS,
    Commands,
    Read,
    WholeReply,
    as_stored,
    content_of,
    entries_of,
    expiry_of,
    position_of,
    stored_pairs,
)
from state.redis_client.connection import ENTRIES_AT_ONCE, RedisConnection, text_of, texts_by_name
from state.redis_client.redis_errors import stop_error
from state.redis_owner.refusals import ReshapedError, refuse_remains
from state.redis_owner.slot import present
from state.troubles import Trouble
from state.values.state_kind import StateKind

IMAGE_ENTRIES_MAX = 1_000_000
"""Most entries of all states in one image: it is read by one MULTI, which blocks the server for about a second."""

COUNT_COMMANDS = {
    StateKind.HASH: "HLEN",
    StateKind.VALUE: "EXISTS",
    StateKind.SET: "SCARD",
    StateKind.SORTED_SET: "ZCARD",
    StateKind.LIST: "LLEN",
    StateKind.STREAM: "XLEN",
    StateKind.HYPERLOGLOG: "EXISTS",
}
MOMENT = ("generation", "revision")
"""Fields of the control hash that together differ between any two moments: each import restarts at revision 1."""
TRIES = 5
"""How often the search for keys is repeated because a run has added some."""
SEARCHED_KEYS_MAX = 1_000_000
"""Most keys on a server for a KEYS search, which then blocks the server for half a second."""
NO_KEY = "no such key"
"""Part of XINFO's error for a missing stream."""
NO_FIELD = -2
"""HPEXPIRETIME's reply for a missing field."""
_ENTRY = {StateKind.HASH: "HGET", StateKind.SET: "SISMEMBER", StateKind.SORTED_SET: "ZSCORE"}
_SCAN = {StateKind.HASH: "HSCAN", StateKind.SET: "SSCAN", StateKind.SORTED_SET: "ZSCAN"}


@dataclass(frozen=True, slots=True)
class KeysToRead:
    """The keys to read at one moment.

    Attributes:
        since: the moment before the search for keys.
        kinds: name of each state, or part of a state, that was found -> its kind.
        growing: the states with parts; a run may add parts.
    """

    since: tuple[str, ...]
    kinds: dict[str, StateKind]
    growing: Sequence[DescribedState]


class RedisRecords:
    """What a server holds of one topology (driver); made for each command, by `RedisTopology.records`.

    Every call raises StateRefusedError if the server refuses a command or a key has an unexpected type, and
    StateUnreachableError without an answer in time.
    """

    shards: tuple[RedisRecords, ...] = ()
    """A reader for each shard, if the topology has any."""

    def __init__(self, connection: RedisConnection, keys: Keys) -> None:
        self._connection = connection
        self.keys = keys

    def description(self) -> str:
        """Returns the topology's stored description; "" if it is missing or unreadable, which other checks report."""
        try:
            found = self._connection.call("HGET", self.keys.control, "topology")
        except StateRefusedError:
            return ""
        return "" if found is None else text_of(found)

    def shard_count(self) -> int:
        """Returns how many shards hold the topology's state, by its stored description; 1 if that is unreadable."""
        return shard_count_of(self.description())

    def records(self) -> StoredRecords:
        """Returns txbatch's records of the topology, all read at one moment."""
        own = (self.keys.control, self.keys.metadata, self.keys.receipts)
        asked = [*(("TYPE", key) for key in own), *(("HGETALL", key) for key in own)]
        replies = self.at_once(asked)
        kinds = {key: text_of(reply) for key, reply in zip(own, replies[:3], strict=True)}
        control, metadata, receipts = (
            {} if isinstance(reply, redis.ResponseError) else stored_pairs(reply) for reply in replies[3:]
        )
        self._follow(stored := texts_by_name(control))
        return StoredRecords(
            kinds,
            stored,
            {text_of(name): value for name, value in metadata.items()},
            {text_of(txid): text_of(value) for txid, value in receipts.items()},
        )

    def stored_keys(self) -> Iterator[StoredKey]:
        """Yields every key below the topology's hash tag, each once, without keys that vanish meanwhile."""
        seen = set()
        for found in self._connection.keys_like(self.keys.pattern):
            for key in (key for key in found if key not in seen):
                seen.add(key)
                kind = text_of(self._connection.call("TYPE", key))
                if kind != MISSING:
                    yield StoredKey(text_of(key), kind, int(self._connection.call("PTTL", key)))

    def names_of(self, state: DescribedState) -> list[str]:
        """Returns the name of a state, or the names of all its parts that have a key now; see `member_name`."""
        if state.part_type is None:
            return [state.name]
        pieces = self._connection.keys_like(self.keys.parts_pattern(state.name))
        return sorted(parts_among(self.keys, state, chain.from_iterable(pieces)))

    def expires_ms(self, name: str) -> int | None:
        """Returns when the key of a state expires, in milliseconds since 1970; None if it does not."""
        return expiry_of(self._connection.call("PEXPIRETIME", self.keys.state(name)))

    def position(self, name: str) -> StreamPosition | None:
        """Returns the position of a stream; None if there is no such stream."""
        (reply,) = self._raise_first(self.at_once([("XINFO", "STREAM", self.keys.state(name))]))
        return position_of(reply)

    def _raise_first(self, replies: list[Any]) -> list[Any]:
        """Returns the replies; raises the first error, except that of a missing stream."""
        for reply in replies:
            if isinstance(reply, redis.RedisError) and NO_KEY not in str(reply):
                raise stop_error(reply, self._connection.server) from reply
        return replies

    def with_expiries(self, piece: StoredPiece) -> StoredPiece:
        """Returns the piece of a hash with its fields' expiry times, without fields that have expired by now."""
        fields = [field for field, _ in piece.entries]
        key, count = self.keys.state(piece.name), str(len(fields))
        replies = self._connection.call("HPEXPIRETIME", key, "FIELDS", count, *fields) or ()
        found = {field: expiry_of(at) for field, at in zip(fields, replies, strict=False) if int(at) != NO_FIELD}
        entries = [entry for entry in piece.entries if entry[0] in found]
        return replace(piece, entries=entries, expiries={field: at for field, at in found.items() if at is not None})

    def has_keys(self, pattern: str) -> bool:
        return any(self._connection.keys_like(pattern))

    def quarantined(self) -> dict[str, bytes]:
        """Returns txid -> record of each quarantined batch; their number is limited."""
        found = stored_pairs(self._connection.call("HGETALL", self.keys.quarantine))
        return {text_of(txid): packed for txid, packed in found.items()}

    def history(self) -> Iterator[tuple[str, bytes]]:
        """Yields the txid and record of each transaction in the history, read in pieces."""
        for piece in self._scanned_entries(self.keys.history, StateKind.HASH):
            yield from ((text_of(txid), record) for txid, record in piece)

    def history_from(self) -> str:
        """Returns the lowest txid that may have a record in the history, as stored; "" if there is none."""
        found = self._connection.call("HGET", self.keys.control, "history_from")
        return "" if found is None else text_of(found)

    def letters(self) -> Iterator[tuple[bytes, bytes]]:
        for piece in self.entries(DEAD_LETTERS_STATE, StateKind.SORTED_SET):
            yield from piece

    def entries(self, name: str, kind: StateKind) -> Iterator[Entries]:
        """Yields a state's entries in pieces; an entry that changes meanwhile may be yielded twice, old and new."""
        key = self.keys.state(name)
        if kind.redis_type == StateKind.VALUE.value:
            value = self._connection.call("GET", key)
            yield [] if value is None else [(b"", bytes(value))]
        elif kind is StateKind.LIST:
            yield from self._items(key)
        elif kind is StateKind.STREAM:
            yield from self._stream_entries(key)
        else:
            yield from self._scanned_entries(key, kind)

    def ranked(self, name: str, *, from_lowest: bool) -> Iterator[Entries]:
        """Yields members and scores of a sorted set by rank, in pieces; members that change rank may be missed."""
        order, start = ("WITHSCORES",) if from_lowest else ("REV", "WITHSCORES"), 0
        while found := self._connection.call(
            "ZRANGE", self.keys.state(name), str(start), str(start + ENTRIES_AT_ONCE - 1), *order
        ):
            yield list(stored_pairs(found).items())
            start += ENTRIES_AT_ONCE

    def distinct_count(self, name: str) -> int:
        """Returns the estimate of a HyperLogLog; 0 if there is no such key."""
        return int(self._connection.call("PFCOUNT", self.keys.state(name)))

    def misplaced(self, name: str, kind: StateKind) -> Iterator[tuple[str, bytes]]:
        """Yields the key and field of each entry stored on a wrong shard; nothing without shards."""
        return iter(())

    def entry(self, name: str, kind: StateKind, field: bytes) -> bytes | None:
        """Returns the stored value or score of a field or member, None if it is missing; empty for a set."""
        command = _ENTRY.get(kind)
        if command is None:
            raise StateRefusedError(f"state {name!r} is a {kind.value}, which has no fields; leave the field out")
        reply = self._connection.call(command, self.keys.state(name), field)
        if kind is StateKind.SET:
            return b"" if int(reply) else None
        return None if reply is None else as_stored(reply)

    def sought(self, states: Iterable[DescribedState]) -> KeysToRead:
        """Looks for the keys of states."""
        described, since = list(states), self.moment()
        kinds = {name: state.kind for state in described for name in self.names_of(state)}
        return KeysToRead(since, kinds, [state for state in described if state.part_type is not None])

    def moment(self) -> tuple[str, ...]:
        """Returns values that differ between any two moments of the stored topology."""
        return moment_of(self.fields(*MOMENT))

    def fields(self, *names: str) -> dict[str, str]:
        """Returns those of the named fields that the control hash has."""
        return present(names, self._connection.call("HMGET", self.keys.control, *names))

    def chain_at(self, txid: str) -> str:
        """Returns the chain of the group that ends at a txid, as home stores it for shards; "" if it stores none."""
        packed = self._connection.call("HGET", self.keys.metadata, metadata_field(CHAIN_SCOPE, int(txid)))
        return "" if packed is None else str(unpack(packed))

    def life(self) -> str:
        """Returns the generation of a complete topology; an import or a new start changes it.

        If it is equal before and after a reading in pieces, only a run can have changed the data meanwhile.
        """
        found = self.fields(*CONSISTENCY_FIELDS)
        self._check(found)
        return found.get("generation", "")

    def _check(self, control: Mapping[str, str]) -> None:
        """Raises unless a control hash belongs to a complete topology whose state is where this reader reads it."""
        refuse_remains(self.keys.owner_id, control)
        self._follow(control)

    def _follow(self, control: Mapping[str, str]) -> None:
        """Follows a change in the number of shards; raises ReshapedError if it cannot."""
        if (count := shard_count_of(control.get("topology", ""))) > 1 and not self.keys.is_shard:
            raise ReshapedError(self.keys.topology_id, f"on {count} shards")

    def entry_counts(self, kinds: Mapping[str, StateKind]) -> tuple[str, list[int]]:
        """Returns the committed txid and the entry count of each of these states or parts, all at one moment.

        A key of an unexpected type counts as empty.
        """
        asked: list[tuple[str, ...]] = [("HMGET", self.keys.control, *CONSISTENCY_FIELDS)]
        asked += [(COUNT_COMMANDS[kind], self.keys.state(name)) for name, kind in kinds.items()]
        found, *counts = self.at_once(asked)
        control = {} if isinstance(found, redis.ResponseError) else present(CONSISTENCY_FIELDS, found)
        self._check(control)
        return control.get("committed", "0"), [count if isinstance(count, int) else 0 for count in counts]

    def entry_count(self, sought: KeysToRead) -> int:
        key = self.keys.state
        return sum(int(self._connection.call(COUNT_COMMANDS[kind], key(name))) for name, kind in sought.kinds.items())

    def at_moment(self, sought: KeysToRead, commands: Commands) -> Read:
        """Returns the control hash, and whole states by name, read by one MULTI.

        The MULTI also checks that no key was added meanwhile: either the moment is still that before the search, or
        KEYS finds no unknown key. Otherwise it is repeated.
        """
        kinds, growing = dict(sought.kinds), sought.growing
        for number in range(TRIES + 1):
            searched = growing if number else []
            asked: list[tuple[str, ...]] = [("HGETALL", self.keys.control)]
            asked += [("KEYS", self.keys.parts_pattern(state.name)) for state in searched]
            for name, kind in kinds.items():
                head, tail = commands[kind]
                asked += [(*head, self.keys.state(name), *tail), ("PEXPIRETIME", self.keys.state(name))]
            streams = [name for name, kind in kinds.items() if kind is StateKind.STREAM]
            asked += [("XINFO", "STREAM", self.keys.state(name)) for name in streams]
            asked += [("EXISTS", self.keys.pattern)] if searched else []  # see `keys_like`
            replies = self._raise_first(self.at_once(asked))
            control, contents = texts_by_name(replies[0]), replies[1 + len(searched) :]
            self._check(control)
            at = {name: position_of(reply) for name, reply in zip(streams, contents[2 * len(kinds) :], strict=False)}
            found: dict[str, StateKind] = {}
            for state, each in zip(searched, replies[1:], strict=False):
                found |= dict.fromkeys(parts_among(self.keys, state, each), state.kind)
            if not growing or (found.keys() <= kinds.keys() if number else moment_of(control) == sought.since):
                read = zip(kinds.items(), contents[::2], contents[1::2], strict=False)
                return control, {
                    name: WholeReply(kind, reply, expiry_of(expires), at.get(name))
                    for (name, kind), reply, expires in read
                }
            kinds |= found
            if int(self._connection.call("DBSIZE")) > SEARCHED_KEYS_MAX:
                break
        raise StateRefusedError(
            f"topology {self.keys.topology_id!r} commits faster than the keys of its parts can be looked for; stop "
            "its run, or read the parts you need by their keys"
        )

    def image(self, states: Iterable[DescribedState]) -> StateImage:
        """Returns records and whole states, or parts, by name, at one moment; refuses states that are too large."""
        sought = self.sought(states)
        total = self.entry_count(sought)
        if total > IMAGE_ENTRIES_MAX:
            raise StateRefusedError(
                f"the states of topology {self.keys.topology_id!r} hold {total:,} entries, more than the "
                f"{IMAGE_ENTRIES_MAX:,} that are compared at one moment; verify it without --refold"
            )
        sought.kinds[METADATA_STATE] = StateKind.HASH
        control, read = self.at_moment(sought, READ_COMMANDS)
        metadata = stored_pairs(read.pop(METADATA_STATE).reply)
        contents = {name: content_of(whole.kind, whole.reply) for name, whole in read.items()}
        return StateImage(control, {text_of(name): value for name, value in metadata.items()}, contents)

    def _items(self, key: str) -> Iterator[Entries]:
        start = 0
        while found := self._connection.call("LRANGE", key, str(start), str(start + ENTRIES_AT_ONCE - 1)):
            yield [(b"", bytes(item)) for item in found]
            start += ENTRIES_AT_ONCE

    def _stream_entries(self, key: str) -> Iterator[Entries]:
        start = "-"
        while found := self._connection.call("XRANGE", key, start, "+", "COUNT", str(ENTRIES_AT_ONCE)):
            entries = entries_of(StateKind.STREAM, found)
            yield entries
            start = f"({text_of(entries[-1][0])}"

    def _scanned_entries(self, key: str, kind: StateKind) -> Iterator[Entries]:
        for found in self._connection.scanned(_SCAN[kind], key):
            if kind is StateKind.SET:
                yield [(bytes(member), b"") for member in found]
            else:
                yield list(stored_pairs(found).items())

    def at_once(self, commands: Sequence[tuple[str, ...]]) -> list[Any]:
        """Returns the replies of one MULTI; a command's error is returned in place of its reply."""
        try:
            return self._connection.transaction(commands)
        except StateRefusedError as error:
            if "EXEC without MULTI" not in str(error.__cause__):  # redis-py reports this instead of the reason
                raise
            raise StateRefusedError(
                f"server {self._connection.server} does not let this user run MULTI, which reads records at one "
                f"moment; grant what `txbatch acl {self.keys.topology_id}` prints"
            ).about(Trouble.SERVER_RIGHTS) from error


def known_to_shards(home: RedisRecords, connected: Callable[[Keys], RedisConnection]) -> str:
    """Returns the description stored on a topology's first shard; "" unless home has lost its record."""
    with suppress(StateRefusedError, TopologyError):  # no right to read it, or the name is too long for shards
        if not home.fields("generation"):
            first = home.keys.shard(0)
            return RedisRecords(connected(first), first).description()
    return ""


def moment_of(control: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(control.get(name, "") for name in MOMENT)


def parts_among(keys: Keys, state: DescribedState, found: Iterable[Any]) -> set[str]:
    """Returns the names of a state's parts among the found keys; other keys are ignored."""
    owned = OwnedKeys({state.name: state}, {})
    return {keys.state_name(key) for key in map(text_of, found) if owned.state_of(keys, key) is not None}
