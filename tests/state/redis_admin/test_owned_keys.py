"""What a topology owns goes with a drop and an import; what else is in its cluster slot stays, on all servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from unittest import mock

import fakeredis
import pytest

from state.errors import TopologyError
from state.kinds.state_family import PartType
from state.records.declared_states import (
    DescribedState,
    OwnedKeys,
    declared_states_of,
    with_beginnings,
    with_former,
    without_former,
)
from state.records.stored_records import StoredPiece
from state.redis_client.connection import RedisConnection, connect
from state.redis_owner.store import RedisStore
from state.redis_server.program import find_server_program
from state.values.state_kind import StateKind, ValueType
from tests.conftest import redis_program, running_server
from tests.support.stores.admin import admin_of, overview_of
from tests.support.stores.builders import EXPORTED, acquire, attempt, commit_of, counts, declaring, described_state
from tests.support.stores.moving_servers import ClusteredServers, WatchedServers

VIEWS = DescribedState("views", StateKind.HASH, ValueType.INT, ValueType.STR, part_type=PartType.DATE)
NOW, BEFORE = declaring("counts", VIEWS), declaring("totals")
DESCRIPTION = with_former(NOW, BEFORE)
OWN = ("{t}:counts", "{t}:views:2026-11-21", "{t}:views:2026-11-22", "{t}:totals", "{t}:txbatch:later")
BESIDE = ("{t}:counts:2026", "{t}:events", "{t}:labels", "{t}:totals2", "{t}:txbatch2", "{t}:views", "{t}:views:today")
"""Keys of others: the stream that the topology reads, and names that are nearly its own."""
ELSEWHERE = ("{tt}:counts", "{t.}:counts", "t:counts", "{T}:counts")


@pytest.fixture(
    scope="module",
    params=[
        "fakeredis",
        *(pytest.param(name, marks=pytest.mark.redis) for name in ("redis", "valkey", "cluster", "sentinels")),
    ],
)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of each kind of server; "" for fakeredis."""
    with ExitStack() as stack:
        match request.param:
            case "fakeredis":
                yield ""
            case "redis":
                yield stack.enter_context(running_server(redis_program()))
            case "valkey":
                yield stack.enter_context(running_server(find_server_program()))
            case "cluster":
                yield stack.enter_context(ClusteredServers(find_server_program())).url
            case _:
                yield stack.enter_context(WatchedServers(redis_program())).url


@pytest.fixture
def store(url: str) -> Iterator[RedisStore]:
    """A topology with a transaction, a state that it declares no longer, and keys of others."""
    client = None if url else fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,)))
    made = RedisStore(url or "redis://fake", "t", client=client)
    for key in (*OWN, *BESIDE, "{t}:txbatch:control", "{t}:txbatch:receipts", "{t}:txbatch:history"):
        made._connection.call("DEL", key)
    made.check_server()
    acquire(made, topology=DESCRIPTION)
    for key in (*OWN[1:], *BESIDE):
        made._connection.call("HSET", key, "a", "1")
    for key in ELSEWHERE:
        at(made, key).call("HSET", key, "a", "1")
    made.commit(commit_of(counts(a=1), attempt(1)))
    yield made
    made.close()


def there(store: RedisStore) -> set[str]:
    """Returns which of all these keys exist in the topology's slot, and on the servers of the others."""
    elsewhere = {key for key in ELSEWHERE if int(at(store, key).call("EXISTS", key))}
    return {key for key in (*OWN, *BESIDE) if int(store._connection.call("EXISTS", key))} | elsewhere


def at(store: RedisStore, key: str) -> RedisConnection:
    is_real = "fake" not in store.server
    return RedisConnection(connect(store.server, key=key), "", timeout_s=10.0) if is_real else store._connection


def test_a_drop_deletes_what_the_topology_owns_and_names_what_it_leaves(store: RedisStore) -> None:
    dropped = admin_of(store).drop()
    assert dropped.left == BESIDE
    assert dropped.deleted == len(OWN) + 3  # control, receipts, history
    assert there(store) == {*BESIDE, *ELSEWHERE}
    assert admin_of(store).drop().deleted == 0
    left = admin_of(store).drop(["labels", "views"]).left
    assert left == ("{t}:counts:2026", "{t}:events", "{t}:totals2", "{t}:txbatch2")


def test_a_drop_that_ends_half_way_is_finished_by_the_next(store: RedisStore) -> None:
    with (
        mock.patch("state.redis_admin.drop.reached", side_effect=interrupted_after("drop.states_deleted")),
        pytest.raises(KeyboardInterrupt),
    ):
        admin_of(store).drop()
    assert admin_of(store).drop().left == BESIDE
    assert there(store) == {*BESIDE, *ELSEWHERE}


def interrupted_after(place: str) -> Callable[[str], None]:
    def reached(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt

    return reached


def test_an_import_replaces_what_the_topology_owns_and_nothing_else(store: RedisStore) -> None:
    target = admin_of(store).importer()
    target.begin()
    assert set(target.existing()) >= {*OWN}
    target.restore(EXPORTED, generation="c" * 32, replaces=True)
    assert target.left == BESIDE
    assert there(store) == {*BESIDE, *ELSEWHERE}
    found = overview_of(store)
    assert found is not None
    assert found.committed_txid == 7


def test_an_import_never_replaces_a_key_of_another(store: RedisStore) -> None:
    target = admin_of(store).importer()
    target.begin()
    target.stage(StoredPiece("labels", StateKind.HASH, [(b"mine", b"1")]))
    with pytest.raises(
        TopologyError,
        match=r"holds '\{t\}:labels'; rename or delete that key; the export would replace it.*--also labels`",
    ):
        target.restore(EXPORTED, generation="c" * 32, replaces=True)
    assert there(store) == {*OWN, *BESIDE, *ELSEWHERE}


def test_what_earlier_versions_declared_is_remembered_through_every_change_and_left_out_of_an_export() -> None:
    first, second, third = declaring("a", VIEWS), declaring("b"), declaring("a", "c")
    last = with_former(third, with_former(second, first))
    assert OwnedKeys.of(last).forms == {"a": {""}, "b": {""}, "c": {""}, "views": {"date"}}
    assert set(OwnedKeys.of(last).states) == {"a", "c"}
    assert OwnedKeys.of(without_former(last)).forms == {"a": {""}, "c": {""}}
    assert with_former(third, third) == third


@pytest.mark.parametrize("stored", ["", "graph", "[]", '{"states": 3}', '{"states": {"a": 1}}'])
def test_a_description_that_cannot_be_read_owns_records_alone(stored: str) -> None:
    assert OwnedKeys.of(stored).forms == {}
    assert with_former(NOW, stored) == NOW


def test_a_state_of_a_kind_that_only_a_newer_version_knows_is_owned() -> None:
    assert OwnedKeys.of('{"states": {"a": {"kind": "stream"}}}').forms == {"a": {""}}


def test_a_description_says_since_when_each_state_is_written_as_it_is_declared():
    """One that is declared again, over what it held, is mixed; what changed before the first commit does not count."""
    first, grown, changed = declaring("a"), declaring("a", "b"), declaring("a", described_state("b", StateKind.SET))
    stored, said = "", []
    runs = [
        (first, 1, []),
        (grown, 1, []),
        (first, 3, []),
        (grown, 5, []),
        (grown, 7, []),
        (first, 8, []),
        (grown, 9, ["b"]),
    ]
    for given, next_txid, existing in runs:
        stored = with_beginnings(given, stored, next_txid, existing)
        said += [(b.began_txid, b.is_mixed) for b in [declared_states_of(stored).get("b")] if b]
    assert said == [(1, False), (5, False), (5, False), (9, True)]
    for given, before, next_txid, expected in [
        (changed, grown, 1, (1, False)),
        (changed, grown, 4, (4, True)),
        (grown, "{not json", 4, (4, False)),
    ]:
        found = declared_states_of(with_beginnings(given, before, next_txid, []))["b"]
        assert (found.began_txid, found.is_mixed) == expected
