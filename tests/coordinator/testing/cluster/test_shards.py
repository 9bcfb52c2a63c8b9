"""A topology over many slots holds what the same one holds in its own, however it is run, looked at and moved."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from threading import Thread
from typing import Any
from unittest import mock

import pytest

from coordinator import MemoryTransactionalSpout, TransactionalTopologyBuilder, stream
from coordinator.operating.transfer.looking import chosen_state, field_line, lines_of_state, state_totals
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state import HashState, StateRefusedError, TopologyError, snapshot
from state.redis_admin import topology as redis_topology
from state.redis_admin.sharded_records import ShardedRecords
from state.redis_admin.topology import RedisTopology
from state.redis_client.connection import RedisConnection
from state.redis_shards.shard import Shard
from state.troubles import Trouble
from state.values.shards import shard_of
from state.values.state_kind import StateKind
from tests.support.runs.collecting import Collecting
from tests.support.stores.builders import dump
from tests.support.topologies.kept_states import kept_topology
from tests.support.topologies.sharded_topology import Sharded, over
from tests.support.topologies.typed_states import WORDS, typed_topology

TOPOLOGIES = {
    "typed": lambda: typed_topology((*WORDS, "")),
    "kept": kept_topology,
    "opaque": lambda: kept_topology(is_opaque=True),
}


def states_of(topology: Topology, seed: int = 1, **options: Any) -> dict[str, Any]:
    """All states at the end of a run on a server of its own."""
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(topology, options=RunOptions(**options))
        run.run_until_idle()
        return run.snapshot().states


class Died(BaseException):
    """The run is killed."""


@pytest.fixture
def sharded() -> Iterator[Sharded]:
    with LocalCluster(seed=1) as cluster:
        yield Sharded(cluster.client)


@pytest.mark.often("3-*")
@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("shard_count", [2, 3, 16])
@pytest.mark.parametrize("group_max", [1, 3, 64])
def test_states_do_not_depend_on_the_number_of_shards(name, shard_count, group_max):
    topology = TOPOLOGIES[name]()
    expected = states_of(topology)
    for seed in range(3):
        assert states_of(over(topology, shard_count), seed, commit_group_max=group_max) == expected


@pytest.mark.redis
def test_a_run_continues_where_another_one_stopped(redis_backend):
    sharded = Sharded(redis_backend.client())
    expected = states_of(typed_topology((*WORDS, "")))
    sharded.run(last_txid=3)
    assert sharded.run() == expected
    assert sharded.faults() == []


def test_what_is_looked_at_is_that_of_one_slot(cluster, sharded):
    sharded.run()
    records = sharded.topology.records()
    alone = Sharded(cluster.client, 1)
    alone.run()
    expected = alone.topology.records()
    (committed, totals), (known_txid, known) = state_totals(records), state_totals(expected)
    assert (committed, [total.part_count for total in totals]) == (known_txid, [each.part_count for each in known])
    assert {total.key for total in totals} == {each.key.replace("{typed}", "{typed.0..2}", 1) for each in known}
    for name in ("counts", "best", "fewest", "notes", "blob", "recent", "unique", "views"):
        shown, whole = (list(lines_of_state(each, chosen_state(each, name))) for each in (records, expected))
        assert whole
        assert sorted(map(repr, shown)) == sorted(map(repr, whole))
    for each in WORDS[:7]:
        assert field_line(records, chosen_state(records, "counts"), each) == field_line(
            expected, chosen_state(expected, "counts"), each
        )


@pytest.mark.redis
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2), (2, 5), (4, 4)])
def test_an_export_is_put_over_another_number_of_shards(redis_backend, before, after):
    expected, client = states_of(typed_topology((*WORDS, ""))), redis_backend.client()
    sharded = Sharded(client, before)
    sharded.run(last_txid=4)
    sharded.put_back(sharded.exported(), after)
    assert sharded.faults() == []
    assert sharded.run() == expected
    numbers = range(after if after > 1 else 0, before)
    assert [key for number in numbers for key in client.keys(f"{{typed.{number}}}*")] == []


def test_a_drop_leaves_nothing(sharded):
    sharded.run()
    sharded.client.set("{typed.1}:somebody's", "x")
    dropped = sharded.topology.drop()
    assert dropped.left == ("{typed.1}:somebody's",)
    assert sharded.client.keys("*") == [b"{typed.1}:somebody's"]
    sharded.run()


@pytest.mark.parametrize("given", [0, 3])
def test_a_topology_that_was_lost_at_home_is_dropped_by_what_a_shard_knows_or_the_number_of_its_shards(sharded, given):
    sharded.run()
    sharded.client.delete(*sharded.client.keys("{typed}:*"))
    if given:
        sharded.client.delete("{typed.0}:txbatch:shard", "{typed.0}:txbatch:decisions")
        assert sharded.topology.drop().deleted == 0
    assert sharded.topology.drop(shard_count=given).deleted > 10
    assert sharded.client.keys("{typed.[12]}:*") == []
    assert bool(sharded.client.keys("{typed.0}:*")) == bool(given)  # nobody knows whose they are


class Parts(Collecting):
    """Gives every transaction a part of its own."""

    parts, total = HashState("parts").per("word"), HashState("total")

    def finish_batch(self):
        for word in self.column("word"):
            self.parts[word].increment("n")
            self.total.increment("n")


def parts_topology(count: int, shard_count: int) -> Topology:
    spout = MemoryTransactionalSpout({0: [[f"p{number}"] for number in range(count)]}, ["word"], 1)
    builder = TransactionalTopologyBuilder("parts", "words", spout, shards=shard_count)
    builder.set_committer_bolt("keep", Parts()).global_grouping("words")
    return builder.build()


def test_a_snapshot_under_a_run_has_all_parts_of_its_transaction(cluster):
    """Parts that came while shards were looked through were left out."""
    run = cluster.submit(parts_topology(60, 4), options=RunOptions(commit_group_max=1, max_spout_pending=4))
    scan, moves = RedisConnection.scanned, list[int]()

    def scanned(self, *given, **more):
        found = list(scan(self, *given, **more))
        for _ in range(moves.pop() if moves else 0):
            run.tick()
        return iter(found)

    txids = set()
    with mock.patch.object(RedisConnection, "scanned", scanned):
        while not run.is_done:
            moves += [20, 20, 20]
            shot = snapshot(cluster.client, "parts", [Parts.parts, Parts.total])
            assert len(shot.states["parts"]) == shot.states["total"].get("n", 0) == shot.txid
            txids.add(shot.txid)
            run.tick()
    assert len(txids) > 3


@pytest.mark.redis
def test_a_run_waits_for_a_reader_that_is_slower_than_it(cluster, redis_backend):
    """Each shard takes longer to read than a group to be committed: without a pause no two are of one transaction."""
    read, asked, shots = ShardedRecords._of_shard, list[str](), list[int]()

    def slowly(self, *given):
        time.sleep(0.03)
        return read(self, *given)

    def asking(self, command, *arguments, ask=ShardedRecords._ask):
        asked.append(command)
        ask(self, command, *arguments)

    cluster.client = redis_backend.client()
    run = cluster.submit(parts_topology(400, 4), options=RunOptions(commit_group_max=1, max_spout_pending=4))
    running = Thread(target=run.run_until_idle)
    with mock.patch.object(ShardedRecords, "_of_shard", slowly), mock.patch.object(ShardedRecords, "_ask", asking):
        running.start()
        while running.is_alive() and len(shots) < 3:
            shot = snapshot(redis_backend.client(), "parts", [Parts.parts, Parts.total])
            assert len(shot.states["parts"]) == shot.states["total"].get("n", 0) == shot.txid
            shots.append(shot.txid)
    running.join()
    assert run.is_done
    assert shots[-1] < 400, "the run was over before anybody read"
    assert asked[:2] == ["SET", "DEL"]
    assert redis_backend.client().exists("{parts.0}:txbatch:pause") == 0


@pytest.mark.redis
def test_a_reader_that_may_not_ask_for_a_pause_tries_as_often(redis_backend):
    """It reads with a right to read only."""
    sharded = Sharded(redis_backend.client())
    sharded.run()

    def refusing(self, command, *arguments, call=RedisConnection.call, **more):
        if command in ("SET", "DEL"):
            raise StateRefusedError("NOPERM")
        return call(self, command, *arguments, **more)

    with mock.patch.object(RedisConnection, "call", refusing):
        sharded.client.hset("{typed.1}:txbatch:shard", "committed", "2")
        with pytest.raises(StateRefusedError, match="has not applied all that was decided"):
            state_totals(sharded.topology.records())


@pytest.mark.redis
def test_a_slot_has_one_owner(cluster, redis_backend):
    """A topology and a shard of one name refuse each other, and no drop or import of the one touches the other."""
    client, named = redis_backend.client(), replace(parts_topology(6, 1), topology_id="typed.1")
    sharded, other = Sharded(client), RedisTopology("redis://under-test", "typed.1", client=client)
    sharded.run()
    packed = sharded.exported()
    sharded.topology.drop()
    cluster.client = client
    cluster.submit(named).run_until_idle()
    before = dump(client, "{typed.1}*")
    with pytest.raises(StateRefusedError, match="a topology named"):
        sharded.run()
    assert not sharded.topology.drop().deleted, "a refused start writes nothing"
    with pytest.raises(TopologyError, match="a shard and a topology would have that name"):
        sharded.put_back(packed, 3)
    assert not client.keys("{typed*}:txbatch:import"), "a refused import writes nothing"
    assert dump(client, "{typed.1}*") == before
    other.drop()
    sharded.topology.drop()
    sharded.run()
    before = dump(client)
    for refused in (lambda: cluster.submit(named), other.drop):
        with pytest.raises(StateRefusedError, match="shard 1 of topology 'typed' is stored in its slot"):
            refused()
    assert dump(client) == before


@pytest.mark.redis
def test_what_lies_on_another_shard_is_not_read_and_verify_names_it(redis_backend):
    sharded = Sharded(redis_backend.client())
    expected = sharded.run()
    word = WORDS[0]
    wrong = (shard_of("counts", StateKind.HASH, word, 3) + 1) % 3
    sharded.client.hset(f"{{typed.{wrong}}}:counts", word, 999)
    assert sharded.run() == expected
    records = sharded.topology.records()
    assert [line for line in lines_of_state(records, chosen_state(records, "counts")) if line["value"] == 999] == []
    sharded.client.set("{typed.0}:txbatch:pause", "1", px=60_000)  # somebody else reads: no damage
    (fault,) = sharded.faults()
    assert "fields lie on shards that are not theirs" in fault


@pytest.mark.redis
def test_verify_says_what_of_a_shard_is_lost(redis_backend):
    sharded = Sharded(redis_backend.client())
    sharded.run()
    sharded.client.hset("{typed.1}:txbatch:shard", "committed", "2")
    assert any("nothing can give them back" in fault for fault in sharded.faults())
    with pytest.raises(StateRefusedError, match="has not applied all that was decided, up to txid"):
        sharded.exported()
    sharded.client.hset("{typed.1}:txbatch:shard", "revision", "z")
    assert any("field 'revision'" in fault for fault in sharded.faults())


def test_a_bounded_state_is_shown_bounded(sharded):
    expected = sharded.run()
    records = sharded.topology.records()
    totals = {total.state.name: total.entry_count for total in state_totals(records)[1]}
    assert (totals["best"], totals["fewest"]) == (3, 3)
    for name, is_lowest in (("best", False), ("fewest", True)):
        shown = [line["member"] for line in lines_of_state(records, chosen_state(records, name), from_lowest=is_lowest)]
        ranked = sorted(expected[name], key=expected[name].get, reverse=not is_lowest)
        assert shown == ranked


def test_shards_may_be_changed_as_long_as_nothing_is_committed(cluster, sharded):
    cluster.client = sharded.client
    cluster.submit(over(typed_topology((*WORDS, "")), 1))  # has taken over, and committed nothing
    assert sharded.run() == states_of(typed_topology((*WORDS, "")))


@pytest.mark.redis
@pytest.mark.parametrize("after", [1, 2])
def test_an_import_of_fewer_shards_that_ends_half_way_leaves_none_for_good(redis_backend, after):
    sharded = Sharded(redis_backend.client())
    sharded.run(last_txid=4)
    packed = sharded.exported()
    with mock.patch.object(redis_topology, "drop_topology", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
        sharded.put_back(packed, after)
    assert sharded.client.keys("{typed.2}*")
    again = Sharded(redis_backend.client())
    again.put_back(packed, after)
    assert sharded.client.keys("{typed.2}*") == []
    with mock.patch.object(redis_topology, "drop_topology", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
        sharded.put_back(packed, 3)
        sharded.put_back(packed, after)
    again.topology.drop()
    assert sharded.client.keys("{typed*") == []


@pytest.mark.redis
def test_what_only_some_shards_have_applied_is_not_shown_as_one_transaction(redis_backend):
    """A run is killed between two shards: the totals of all would be those of no transaction."""
    sharded = Sharded(redis_backend.client())
    applied = count()
    apply = Shard.apply

    def killed(self, chain, described):
        if next(applied) == 4:
            raise Died
        return apply(self, chain, described)

    with mock.patch.object(Shard, "apply", killed), suppress(Died):
        sharded.run()
    for look in (lambda: state_totals(sharded.topology.records()), sharded.exported):
        with pytest.raises(StateRefusedError, match="has not applied all that was decided, up to txid"):
            look()
    assert sharded.run() == states_of(typed_topology((*WORDS, "")))
    assert state_totals(sharded.topology.records())[0]


@pytest.mark.parametrize("given", [1, 2, 4])
def test_another_number_of_shards_is_refused(sharded, given):
    sharded.run(last_txid=2)
    sharded.shard_count = given
    with pytest.raises(StateRefusedError, match="has its state on 3 shards, but was given shards=") as refused:
        sharded.run()
    assert refused.value.trouble is Trouble.STATE_CHANGED


def test_the_short_form_has_shards_too():
    words = stream(MemoryTransactionalSpout({0: [[word] for word in WORDS]}, ["word"], 5))
    words = words.count_by("word", into=HashState("counts"))
    topology = words.topology("short", shards=3)
    assert topology.shard_count == 3
    assert states_of(topology) == states_of(words.topology("short"))
