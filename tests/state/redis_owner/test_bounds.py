"""What servers take at most of anything that a commit carries: tried on each, alone and over shards.

Whatever a server would refuse is refused before the first write, by name, and the topology can be continued.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest

from state.commits.commit import CommitStatus
from state.commits.write_set import DeadLetterWrites, WriteSet
from state.errors import StateRefusedError
from state.records.stored_records import StoredPiece
from state.redis_owner.store import RedisStore
from state.redis_shards.sharded_store import ShardedStore
from state.values.state_kind import MAX_INTEGER, VALUE_FIELD, KeptEnd, Retention, StateKind, ValueType
from tests.conftest import Backend
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import NONCE, acquire, attempt, commit_of, counts, writes

HASH, VALUE, LIST, STREAM = StateKind.HASH, StateKind.VALUE, StateKind.LIST, StateKind.STREAM
SET, SORTED_SET, HYPERLOGLOG = StateKind.SET, StateKind.SORTED_SET, StateKind.HYPERLOGLOG
INT, FLOAT, STR = ValueType.INT, ValueType.FLOAT, ValueType.STR
REDIS_MAX_MS, YEAR_9999_MS = 2**46 - 1, 253_402_214_400_000
LAST_TIMES = {"redis": 0, "valkey8": 0, "redis7.4": REDIS_MAX_MS, "redis8": REDIS_MAX_MS}
"""When fields can go at the latest: never, where the server lacks the command; others have no bound of their own."""
TASK = 2**32
LONG = "x" * 3_000_000
MANY = [f"m{number}" for number in range(3_001)]
"""More than four sections, or than Lua unpacks at once."""


def one(kind: StateKind, value_type: ValueType, **changes: Any) -> WriteSet:
    return WriteSet({"s": writes(kind, value_type, **changes)})


def going(at_ms: int, fields: list[str]) -> WriteSet:
    return one(HASH, INT, puts=dict.fromkeys(fields, 1), expiries=dict.fromkeys(fields, at_ms))


def kept(kind: StateKind, at_ms: int, **changes: Any) -> WriteSet:
    return one(kind, STR, retention=Retention(KeptEnd.LAST, 1_000_000, at_ms), **changes)


TAKEN: dict[str, WriteSet] = {
    **{f"key goes at {at}": kept(LIST, at, appends=["v"]) for at in (1, YEAR_9999_MS, MAX_INTEGER)},
    **{
        f"{side or 'any'} score {score!r}": one(SORTED_SET, FLOAT, puts={"m": score}, retention=Retention(side, 3))
        for score in (5e-324, -1e-320, 2.2250738585072014e-308, -0.0, 1.7976931348623157e308, -1.7976931348623157e308)
        for side in (None, KeptEnd.HIGHEST, KeptEnd.LOWEST)
    },
    **{f"score grows by {by!r}": one(SORTED_SET, FLOAT, increments={"m": [by, by]}) for by in (5e-324, -0.0, 8e307)},
    **{f"field grows by {by}": one(HASH, INT, increments={"f": by}) for by in (MAX_INTEGER, -MAX_INTEGER)},
    "value is put at the limit": one(VALUE, INT, puts={VALUE_FIELD: -MAX_INTEGER}),
    **{f"entry {n}": one(STREAM, STR, appends=[[1, n, "f", "v"]]) for n in (0, MAX_INTEGER, 1_000_000 * TASK)},
    "entry of many fields": one(STREAM, STR, appends=[[1, 0, *(part for name in MANY[:1000] for part in (name, ""))]]),
    "many entries": kept(STREAM, MAX_INTEGER, appends=[[1, number, "f", "v"] for number in range(3_001)]),
    **{f"empty {kind}": one(kind, STR, puts={"": ""}) for kind in (HASH, SET, HYPERLOGLOG)},
    **{f"long {kind}": one(kind, STR, puts={LONG: "v"}) for kind in (HASH, SET, HYPERLOGLOG)},
    "long value": one(VALUE, STR, puts={VALUE_FIELD: LONG}),
    "long score": one(SORTED_SET, FLOAT, puts={LONG: 1.0}),
    "long entry": one(STREAM, STR, appends=[[1, 0, LONG, LONG]]),
    **{f"many of a {kind}": one(kind, STR, puts=dict.fromkeys(MANY, "")) for kind in (HASH, SET, HYPERLOGLOG)},
    **{f"many gone of a {kind}": one(kind, STR, deletes=dict.fromkeys(MANY, True)) for kind in (HASH, SET, SORTED_SET)},
    "many scores": one(SORTED_SET, FLOAT, increments={member: [0.5] for member in MANY}),
    "many best": one(SORTED_SET, FLOAT, puts=dict.fromkeys(MANY, 0.5), retention=Retention(KeptEnd.HIGHEST, 1_000_000)),
    "many items": kept(LIST, MAX_INTEGER, appends=MANY),
    "many letters": WriteSet(letters=DeadLetterWrites({f"1.{m}:".encode(): 1.0 for m in MANY}, (), 10_000_000)),
    "long letter": WriteSet(letters=DeadLetterWrites({LONG.encode(): 1.0}, (), 10_000_000)),
}
NOT_TAKEN: dict[str, tuple[WriteSet, str]] = {
    **{
        f"{side or 'any'} score {score}": (
            one(SORTED_SET, FLOAT, puts={"m": float(score)}, retention=Retention(side, 3)),
            f":s' field 'm' would become '{score}', not a finite number",
        )
        for score in ("inf", "-inf", "nan")
        for side in (None, KeptEnd.HIGHEST, KeptEnd.LOWEST)
    },
    "score grows to inf": (one(SORTED_SET, FLOAT, increments={"m": [1e308, 1e308]}), "field 'm' would leave"),
    **{
        f"{kind} grows by {by}": (one(kind, FLOAT, increments={"f": [1.0, by]}), f"state 's', field 'f': {by}")
        for kind in (HASH, SORTED_SET)
        for by in (float("inf"), float("nan"))
    },
    **{
        f"field grows by {by}": (one(HASH, INT, increments={"f": by}), f"state 's', field 'f': {by}")
        for by in (MAX_INTEGER + 1, 2**63, -(2**63) - 1, 2**64, -(2**90))
    },
    "list item": (one(LIST, INT, appends=[2**53]), "holds '9007199254740992', outside"),
    "entry's value": (one(STREAM, INT, appends=[[1, 0, "f", 2**64]]), "holds '18446744073709551616', outside"),
}


@contextmanager
def opened(backend: Backend, shards: int = 0, nonce: str = NONCE, **more: Any) -> Iterator[RedisStore]:
    made = partial(ShardedStore, shard_count=shards) if shards else RedisStore
    with closing(made("redis://under-test", "wc", client=backend.client(), **more)) as store:
        store.check_server()
        acquire(store, nonce)
        yield store


class Trial:
    """Commits one case after the other; what a commit has written is removed before the next."""

    def __init__(self, backend: Backend, store: RedisStore) -> None:
        self.client, self.store, self.txid = backend.client(), store, 1

    def tried(self, write_set: WriteSet, name: str, words: str = "") -> None:
        """What is refused changes nothing that users see, and the next commit is taken."""
        reply = self.store.commit(commit_of(write_set, attempt(self.txid)))
        expected = CommitStatus.LIMIT if words else CommitStatus.OK
        assert (reply.status, words in reply.detail) == (expected, True), f"{name}: {reply.detail}"
        stored = [key for key in self.client.scan_iter() if b":txbatch:" not in key]
        if words:
            assert stored == [], name
            self.tried(counts(a=1), name)
        else:
            self.client.delete(*stored, "{wc}:txbatch:dead_letters")
            self.txid += 1


@pytest.mark.parametrize("shards", [0, 3])
class TestCommit:
    def test_what_is_within_bounds_is_taken_and_all_else_refused_by_name(self, every_backend, shards):
        with opened(every_backend, shards) as store:
            trial = Trial(every_backend, store)
            for name, write_set in TAKEN.items():
                trial.tried(write_set, name)
            for name, (write_set, words) in NOT_TAKEN.items():
                trial.tried(write_set, name, words)

    def test_a_field_goes_if_the_server_can_let_it_go_or_nothing_is_written(self, every_backend, shards):
        with opened(every_backend, shards) as store:
            trial, at_most = Trial(every_backend, store), LAST_TIMES.get(every_backend.name, MAX_INTEGER)
            for at in (1, REDIS_MAX_MS, REDIS_MAX_MS + 1, YEAR_9999_MS, MAX_INTEGER):
                if not at_most:
                    with pytest.raises(StateRefusedError, match="the server has no command HPEXPIREAT"):
                        store.commit(commit_of(going(at, ["f"])))
                else:
                    late = f":s' field 'f' was given the expiry {at} ms, later than this" if at > at_most else ""
                    trial.tried(going(at, ["f"] if late else MANY), str(at), late)
        with opened(every_backend, shards, nonce="c" * 32) as store:
            assert store.commit(commit_of(counts(a=1), attempt(trial.txid))).status is CommitStatus.OK


def test_many_transactions_and_much_metadata_fit_into_one_commit(every_backend):
    fields = [f"p{number}:1" for number in range(5_001)]
    with opened(every_backend) as store:
        attempts = [attempt(txid) for txid in range(1, 3_002)]
        assert store.commit(commit_of(counts(a=1), *attempts, metadata=dict.fromkeys(fields, 1))).status == "OK"
        assert store.commit(commit_of(counts(a=1), attempt(3_002), forget=tuple(fields))).status == "OK"


@pytest.mark.parametrize(("lasts_ms", "waits"), [(10_000, True), (None, False), (86_400_000, False)])
def test_a_group_waits_for_a_pause_that_a_reader_asked_for_and_for_no_other_key(every_backend, lasts_ms, waits):
    def sleep(seconds: float) -> None:
        slept.append(seconds)
        every_backend.client().delete("{wc.0}:txbatch:pause")

    slept: list[float] = []
    with opened(every_backend, 3, sleep=sleep) as store:
        every_backend.client().set("{wc.0}:txbatch:pause", "1", px=lasts_ms)
        assert store.commit(commit_of(counts(a=1))).status is CommitStatus.OK
    assert (slept != []) is waits


def test_an_import_names_the_field_whose_time_the_server_does_not_take(every_backend):
    with opened(every_backend) as store:
        imported = admin_of(store).importer()
        imported.begin()
        piece = StoredPiece("seen", HASH, [(b"a", b"1"), (b"f", b"1")], expiries={b"a": 2**45, b"f": YEAR_9999_MS})
        at_most, words = LAST_TIMES.get(every_backend.name, MAX_INTEGER), "has no command HPEXPIREAT"
        if at_most >= YEAR_9999_MS:
            imported.stage(piece)
            return
        if at_most:
            words = f"state 'seen': field 'f' was given the expiry {YEAR_9999_MS} ms, later.* a server that takes it"
        with pytest.raises(StateRefusedError, match=words):
            imported.stage(piece)
