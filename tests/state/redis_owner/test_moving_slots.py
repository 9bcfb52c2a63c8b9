"""A commit while its cluster slot moves: no command of its writing phase may meet a key that it has just emptied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from typing import Any

import pytest
from redis.cluster import RedisCluster

from state import ValueState, snapshot
from state.commits.commit import Commit, CommitReply, CommitStatus
from state.commits.write_set import WriteSet
from state.errors import StateRefusedError, StateUnreachableError
from state.kinds.state_family import PartType
from state.records.declared_states import DescribedState
from state.records.stored_records import StoredPiece
from state.redis_admin.all_records import KeysToRead
from state.redis_admin.topology import RedisTopology
from state.redis_admin.whole_replies import READ_COMMANDS
from state.redis_client.connection import pairs_of
from state.redis_owner.store import RedisStore
from state.redis_server.program import find_server_program
from state.values.state_kind import VALUE_FIELD, KeptEnd, Retention, StateKind, ValueType
from tests.conftest import redis_program
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import EXPORTED, acquire, attempt, commit_of, counts, writes
from tests.support.stores.moving_servers import ClusteredServers

pytestmark = pytest.mark.redis
LATER = Retention(expires_ms=4_102_444_800_000)
LAST = Retention(KeptEnd.LAST, 3)
MANY = [f"{n}" for n in range(1_500)]
"""More than one command takes away."""
S, H, Z, L, V = StateKind.SET, StateKind.HASH, StateKind.SORTED_SET, StateKind.LIST, StateKind.VALUE
STR, FLOAT = ValueType.STR, ValueType.FLOAT
EMPTIED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a list is begun again": (
        {"x": writes(L, STR, appends=["a"])},
        {"x": writes(L, STR, deletes={VALUE_FIELD: True}, appends=["b"])},
    ),
    "the last items are begun again": (
        {"x": writes(L, STR, appends=["a"], retention=LAST)},
        {"x": writes(L, STR, deletes={VALUE_FIELD: True}, appends=["b"], retention=LAST)},
    ),
    "a part that expires is emptied": (
        {"x:1": writes(H, STR, puts={"a": "1"}, retention=LATER)},
        {"x:1": writes(H, STR, deletes={"a": True}, retention=LATER)},
    ),
    "a value that expires is deleted": (
        {"x:1": writes(V, STR, puts={VALUE_FIELD: "1"}, retention=LATER)},
        {"x:1": writes(V, STR, deletes={VALUE_FIELD: True}, retention=LATER)},
    ),
    "more members are removed than one command takes": (
        {"x": writes(S, STR, puts={MANY[0]: True})},
        {"x": writes(S, STR, deletes=dict.fromkeys(MANY, True))},
    ),
    "the best members are removed": (
        {"x": writes(Z, FLOAT, puts={"a": 1.0}, retention=Retention(KeptEnd.HIGHEST, 3))},
        {"x": writes(Z, FLOAT, deletes={"a": True}, retention=Retention(KeptEnd.HIGHEST, 3))},
    ),
}


@pytest.fixture(scope="module", params=["redis", "valkey"])
def cluster(request: pytest.FixtureRequest) -> Iterator[ClusteredServers]:
    program = redis_program() if request.param == "redis" else find_server_program()
    with ClusteredServers(program) as servers:
        yield servers


@contextmanager
def moving(cluster: ClusteredServers, topology_id: str) -> Iterator[None]:
    """The slot is marked as moving, with all of its keys where they were; moved at the end."""
    key = f"{{{topology_id}}}:"
    slot, source = cluster.slot_of(key), cluster.owner(key)
    target = next(each for each in cluster.primaries() if each is not source)
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.id_of(source))
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.id_of(target))
    yield
    cluster.move_slot(key)


def looks(topology: RedisTopology) -> list[Callable[[], Any]]:
    """Everything that looks for keys."""
    parts = DescribedState("x", V, STR, STR, part_type=PartType.STR)
    records, never = topology.records(), KeysToRead(("",), {}, [parts])
    return [
        lambda: records.names_of(parts),
        lambda: list(records.stored_keys()),
        lambda: records.has_keys(topology.keys.parts_pattern("none")),
        lambda: records.at_moment(never, READ_COMMANDS),
        lambda: topology.importer().existing(),
        lambda: topology.importer().begin(),
        topology.drop,
    ]


@pytest.mark.often("valkey")
def test_whoever_looks_for_keys_of_a_slot_that_is_half_moved_is_refused(
    cluster: ClusteredServers, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCAN and KEYS leave out what another node has by now."""
    monkeypatch.setattr("state.redis_admin.snapshots.MOVED_TRIES", 1)
    topology_id, x = store.keys.topology_id, ValueState("x", value=str).per("each", str)
    parts = {f"x:{n}": writes(V, STR, puts={VALUE_FIELD: f"{n}"}) for n in range(9)}
    store.commit(commit_of(WriteSet(dict(parts)), attempt(1)))
    source = cluster.owner(store.keys.control)
    node = RedisTopology(f"redis://127.0.0.1:{source.port}", topology_id, unreachable_timeout_s=0.1)
    with (
        closing(node),
        closing(RedisTopology(cluster.url, topology_id, unreachable_timeout_s=0.1)) as topology,
        RedisCluster("127.0.0.1", source.port) as client,
    ):
        with moving(cluster, topology_id):
            target = next(each for each in cluster.primaries() if each is not source)
            moved = [store.keys.state(f"x:{n}") for n in range(4)]
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *moved)
            for each in (client, source.client):
                with pytest.raises(StateRefusedError, match="is handing this topology to another"):
                    snapshot(each, topology_id, [x])
            said = r"is handing this topology to another|is moving a slot of .*said: (ASK|TRYAGAIN)"
            for look in [*looks(node), *looks(topology)]:
                with pytest.raises((StateRefusedError, StateUnreachableError), match=said):
                    look()
        assert len(snapshot(client, topology_id, [x]).states["x"]) == 9
        assert len(list(topology.records().stored_keys())) > 9


def committed_while(
    cluster: ClusteredServers,
    store: RedisStore,
    commit: Commit,
    *,
    moves_for_s: float = 0.3,
) -> tuple[CommitReply, bool]:
    """Commits while the slot moves, until the answer has come or for so long.

    Returns the answer, and whether it came before the slot had moved.
    """
    with ThreadPoolExecutor(1) as pool:
        with moving(cluster, store.keys.topology_id):
            answer: Future[CommitReply] = pool.submit(store.commit, commit)
            wait([answer], moves_for_s)  # so that the call meets the moving slot; it may wait for its end
            was_early = answer.done()
        return answer.result(30.0), was_early


@pytest.fixture
def store(cluster: ClusteredServers, request: pytest.FixtureRequest) -> Iterator[RedisStore]:
    made = RedisStore(cluster.url, f"t{abs(hash(request.node.name))}", unreachable_timeout_s=30.0)
    made.check_server()
    acquire(made)
    yield made
    made.close()


@pytest.mark.parametrize("case", EMPTIED)
def test_a_commit_that_empties_a_key_waits_while_its_slot_moves(
    cluster: ClusteredServers, store: RedisStore, case: str
) -> None:
    before, emptying = EMPTIED[case]
    store.store_metadata({"coordinator:1": 1})
    assert store.commit(commit_of(WriteSet(dict(before)), attempt(1))).status is CommitStatus.OK
    reply, _ = committed_while(cluster, store, commit_of(WriteSet(dict(emptying)), attempt(2)))
    assert reply.status is CommitStatus.OK, reply
    store.confirm()


def test_a_commit_that_empties_nothing_does_not_wait(cluster: ClusteredServers, store: RedisStore) -> None:
    store.store_metadata({"coordinator:1": 1})
    first, second = (commit_of(WriteSet({"x": writes(L, STR, appends=["a"])}), attempt(txid)) for txid in (1, 2))
    assert store.commit(first).status is CommitStatus.OK
    reply, was_early = committed_while(cluster, store, second, moves_for_s=30.0)
    assert (reply.status, was_early) == (CommitStatus.OK, True)


def test_metadata_that_more_than_one_command_forgets_is_forgotten_once_the_slot_has_moved(
    cluster: ClusteredServers, store: RedisStore
) -> None:
    fields = [f"coordinator:{txid}" for txid in range(1, 1_500)]
    store.store_metadata(dict.fromkeys(fields, 1))
    before, _ = EMPTIED["a list is begun again"]
    store.commit(commit_of(WriteSet(dict(before)), attempt(1)))
    change = WriteSet({"x": writes(L, STR, appends=["a"])})
    reply, _ = committed_while(cluster, store, commit_of(change, attempt(2), forget=tuple(fields)))
    assert reply.status is CommitStatus.OK, reply
    store.confirm()


@pytest.mark.nightly
def test_a_transaction_of_more_parts_than_a_call_declares_waits_as_a_small_one_does(
    cluster: ClusteredServers, store: RedisStore
) -> None:
    store.store_metadata({"coordinator:1": 1})
    parts = {f"of:{n}": writes(V, STR, puts={VALUE_FIELD: f"{n}"}) for n in range(4_500)}
    store.commit(commit_of(WriteSet(dict(list(parts.items())[:4_200])), attempt(1)))
    reply, was_early = committed_while(cluster, store, commit_of(WriteSet(dict(parts)), attempt(2)))
    assert (reply.status, was_early) == (CommitStatus.OK, False)
    store.confirm()


def test_an_import_that_replaces_keys_tears_nothing_while_the_slot_moves(
    cluster: ClusteredServers, store: RedisStore
) -> None:
    store.commit(commit_of(counts(a=1), attempt(1)))
    target = admin_of(store).importer()
    target.begin()
    target.stage(StoredPiece("counts", StateKind.HASH, [(b"a", b"5")]))
    with ThreadPoolExecutor(1) as pool:
        with moving(cluster, store.keys.topology_id):
            answer = pool.submit(target.restore, EXPORTED, generation="c" * 32, replaces=True)
            time.sleep(0.3)
        assert answer.result(30.0) > 0
    assert dict(pairs_of(store._connection.call("HGETALL", store.keys.state("counts")))) == {b"a": b"5"}
    acquire(store)
