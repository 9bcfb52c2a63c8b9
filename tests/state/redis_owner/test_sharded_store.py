"""Stage, decide, apply: every death of a run at every call, and servers that go back on their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from random import Random

import pytest
import redis

from state.commits.commit import CommitStatus
from state.errors import FencedError, StateRefusedError, TransactionError
from state.fault_points import installed
from state.records.durability import Durability, DurabilityLevel
from state.redis_owner import arguments
from state.redis_owner.arguments import Descriptions
from state.redis_server.embedded import EmbeddedServer
from state.redis_shards import shard as shard_module
from state.redis_shards.copies import copy_keepers
from state.redis_shards.shard import ShardWrites
from state.redis_shards.sharded_store import ShardedStore
from state.troubles import Trouble
from state.values.shards import shard_of
from state.values.state_kind import StateKind
from tests.support.stores.builders import acquire, attempt, commit_of, counts
from tests.support.stores.sharded_world import HOME, Died, Server, ShardedWorld

TOTAL = 6


def dying_at(call: int):
    """What raises at the visit with this number."""
    visits = count()

    def visit() -> None:
        if next(visits) == call:
            raise Died

    return visit


@pytest.mark.parametrize(("shard_count", "server_count"), [(1, 1), (2, 2), (3, 3), (16, 16), (16, 3), (16, 1)])
def test_all_shards_together_hold_what_was_committed(shard_count, server_count):
    world = ShardedWorld(shard_count, server_count)
    world.run(Random(1), TOTAL)
    world.check_done()
    world.run(Random(2), 2 * TOTAL)
    world.check_done()


@pytest.mark.often("2-2", "2-1")
@pytest.mark.parametrize(("shard_count", "server_count"), [(2, 2), (2, 1), (3, 2)])
def test_a_run_that_dies_at_any_call_is_continued_exactly(shard_count, server_count):
    assert calls_survived(lambda: ShardedWorld(shard_count, server_count), seed=3) > 60


def calls_survived(made: Callable[[], ShardedWorld], *, seed: int) -> int:
    """Has a run die at each of its calls and the next one continue it; returns how many calls there are."""
    for call in count():
        world = made()
        try:
            world.run(Random(seed), TOTAL, dying_at(call))
        except Died:
            world.check_shards()
            world.run(Random(seed + 1), TOTAL)
            world.check_done()
        else:
            return call
    raise AssertionError


def after_a_decision() -> ShardedWorld:
    """A world in which a run has died just after its decision."""
    world = ShardedWorld(3)
    with pytest.raises(Died):
        world.run(Random(5), TOTAL, dying_at(48))
    return world


def behind() -> ShardedWorld:
    """A world in which a shard has lost all but its first write."""
    world = after_run(3)
    world.servers[2].go_back(writes_of(world.servers[2]) - 1)
    return world


@pytest.mark.parametrize(("made", "calls"), [(after_a_decision, 5), (behind, 40)])
@pytest.mark.often("behind-40")
def test_a_start_that_dies_at_any_call_is_continued_exactly(made, calls):
    assert calls_survived(made, seed=6) > calls


def after_run(shard_count: int = 2, total: int = TOTAL) -> ShardedWorld:
    """A world in which a run is done."""
    world = ShardedWorld(shard_count)
    world.run(Random(8), total)
    return world


def writes_of(server: Server) -> int:
    return len(server.befores)


@pytest.mark.parametrize(("number", "shard_count"), [(0, 2), (1, 2), (2, 2), (2, 3)])
def test_a_server_that_has_lost_anything_is_given_it_by_the_others(number, shard_count):
    """Home takes it back from the shards; a shard from the one that has kept its parts."""
    for lost in range(1, writes_of(after_run(shard_count).servers[number])):
        world = after_run(shard_count)
        world.servers[number].go_back(lost)
        decided = dict(world.decided)
        world.run(Random(9), TOTAL)
        world.check_done()
        assert world.decided == decided  # nothing was run again


def test_a_home_that_comes_back_empty_after_many_starts_takes_everything_back_from_the_shards():
    world = after_run()
    for number in range(30):
        acquire(world.store(), f"{number:032x}")
    world.servers[0].memory.become({})
    world.run(Random(9), TOTAL)
    world.check_done()


@pytest.mark.parametrize(
    ("number", "message"), [(0, "has lost too much"), (2, "has txid 0 and not what was decided up to 18")]
)
def test_a_server_that_has_lost_more_than_the_others_keep_is_named(monkeypatch, number, message):
    monkeypatch.setattr(shard_module, "DECISIONS_KEPT", 2)
    world = after_run(total=3 * TOTAL)
    world.servers[number].go_back(writes_of(world.servers[number]) - 1)
    with pytest.raises(StateRefusedError, match=message) as refused:
        world.run(Random(9), 3 * TOTAL)
    assert refused.value.trouble is Trouble.REGRESSED


@pytest.mark.parametrize("looks", [1, 3, None])
def test_a_group_waits_while_somebody_reads_all_shards_but_not_for_ever(looks):
    world, slept = ShardedWorld(2), list[float]()
    first = world.servers[1].memory

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == looks:
            first.execute_command("DEL", HOME.shard(0).pause)

    store = world.store(sleep=sleep)
    acquire(store)
    first.execute_command("SET", HOME.shard(0).pause, "1")
    assert store.commit(commit_of(counts(a=1, b=2))).status is CommitStatus.OK
    assert len(slept) == (shard_module.PAUSE_LOOKS if looks is None else looks)
    assert world.shown(0) + world.shown(1) == {"a": 1, "b": 2}


@pytest.mark.parametrize("shard_count", [1, 2, 3])
def test_what_nobody_has_kept_is_named(shard_count):
    """The server of all shards, or that of a shard and of the one that keeps its parts, have lost them."""
    world = after_run(shard_count)
    keeper = copy_keepers(range(shard_count)).index([0]) if shard_count > 1 else 0
    for number in {0, keeper}:
        world.servers[number + 1].go_back(4)
    with pytest.raises(
        StateRefusedError, match=r"shard \d of topology 'wc'.* has txid \d and not what was decided up to 6"
    ) as refused:
        world.run(Random(9), TOTAL)
    assert refused.value.trouble is Trouble.REGRESSED
    world.check_shards()


def test_a_shard_keeps_only_so_many_parts_of_another(monkeypatch):
    for room, lost, is_kept in ((1, 2, True), (1, 4, False), (600, 4, True), (600, None, False)):
        monkeypatch.setattr(shard_module, "COPIED_BYTES", room)
        world = after_run(total=20)
        kept = world.servers[1].memory.execute_command("LRANGE", HOME.shard(0).copies, "0", "-1")
        assert sum(map(len, kept)) <= room or len(kept) == 1
        control = world.servers[1].memory.hash(HOME.shard(0).control)
        assert int(control[b"copied"]) == sum(map(len, kept))
        world.servers[2].go_back(lost or writes_of(world.servers[2]) - 1)
        with nullcontext() if is_kept else pytest.raises(StateRefusedError, match="no other has kept them"):
            world.run(Random(9), 20)
            world.check_done()


@pytest.mark.parametrize("places", ["ab", "abc", "aabbcc", "abcabca", "aaab", "aaabb", "abbbbcccc"])
def test_a_shards_parts_are_kept_on_another_server_if_there_is_room(places):
    wards = copy_keepers(places)
    assert sorted(ward for each in wards for ward in each) == list(range(len(places)))
    assert all(places[number] != places[ward] for number, each in enumerate(wards) for ward in each)
    least = -(-max(map(places.count, places)) // (len(places) - max(map(places.count, places))))
    assert max(map(len, wards)) <= max(1, least) + 1


@pytest.mark.parametrize("places", ["ab", "abc", "aabbcc", "abcabc", "aaaabbbb"])
def test_shards_that_are_spread_evenly_keep_the_parts_of_one_each(places):
    assert [len(each) for each in copy_keepers(places)] == [1] * len(places)


def test_on_one_server_nothing_is_kept_twice():
    assert copy_keepers("aaa") == [[], [], []]
    assert copy_keepers("a") == [[]]


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_server_of_most_shards_gets_back_what_it_has_lost(lost):
    world = ShardedWorld(5, 2)
    world.run(Random(8), TOTAL)
    world.servers[1].go_back(lost)
    world.run(Random(9), TOTAL)
    world.check_done()


def test_a_start_that_is_refused_for_a_shards_name_writes_nothing():
    world = ShardedWorld(3)
    world.servers[2].memory.execute_command("HSET", "{wc.1}:txbatch:control", "fence", "1")
    before = [server.memory.content() for server in world.servers]
    with pytest.raises(StateRefusedError, match=r"shard 1 of topology 'wc'.* is taken: a topology named 'wc\.1'"):
        world.store().look()
    assert [server.memory.content() for server in world.servers] == before


def test_a_run_is_not_done_before_every_shard_has_confirmed():
    world = ShardedWorld(2)
    store = world.store()
    acquire(store, "a" * 32)
    assert store.commit(commit_of(counts(a=1, b=1, c=1), attempt(1))).status is CommitStatus.OK
    world.servers[2].go_back(1)
    with pytest.raises(StateRefusedError, match="shard 1 of topology 'wc'"):
        store.confirm()


def test_a_shard_applies_nothing_but_what_was_decided():
    world = ShardedWorld(1)
    store = world.store()
    acquire(store, "a" * 32)
    (shard,) = store._shards
    part = ShardWrites.of(shard.keys, counts(a=1), is_group=False)
    shard.ask(shard.stage(part, "chain of another run", 1, b""))
    with pytest.raises(StateRefusedError, match="decided was 'the chain'"):
        shard.ask(shard.apply("the chain", Descriptions("s", "t")))
    assert world.shown(0) == {}


def test_a_shard_of_another_life_is_named():
    """Home was dropped without its shards, and started again."""
    world = after_run()
    world.servers[0].memory.execute_command("HSET", HOME.control, "generation", "c" * 32)
    with pytest.raises(StateRefusedError, match="does not belong to the topology as it is in its home slot"):
        acquire(world.store(), "c" * 32)


def test_a_start_that_home_has_lost_before_anything_was_committed_is_made_again():
    """Its shards are of a life that nobody knows any more, and hold nothing."""
    world = ShardedWorld(3)
    acquire(world.store(), "a" * 32)
    world.servers[0].memory.become({})
    store = world.store()
    acquire(store, "c" * 32, new_generation="c" * 32)
    assert store.commit(commit_of(counts(a=1), attempt(1))).status is CommitStatus.OK
    store.confirm()


@pytest.mark.parametrize(
    ("copied", "total", "message"),
    [
        (3, 3, "has another history than home"),
        *((txid, TOTAL, f"has txid {txid} and not what was decided up to {TOTAL}") for txid in (1, 2, 3)),
    ],
)
def test_a_shard_of_another_history_is_named_and_not_given_what_it_lacks(copied, total, message):
    """All servers go back, other batches are committed, and a shard is restored from a copy of the first history."""
    world = ShardedWorld(2)
    start = [server.memory.content() for server in world.servers]
    world.run(Random(8), copied)
    copy = world.servers[2].memory.content()
    for server, content in zip(world.servers, start, strict=True):
        server.memory.become(content)
    world.run(Random(8), total, flavour=1)
    world.servers[2].memory.become(copy)
    with pytest.raises(StateRefusedError, match=message):
        world.run(Random(9), total, flavour=1)
    assert world.servers[2].memory.hash(HOME.shard(1).control)[b"committed"] == str(copied).encode()


def test_what_one_shard_refuses_none_applies():
    world = ShardedWorld(3)
    world.run(Random(8), 3)
    store = world.store()
    acquire(store, "e" * 32)
    before = [world.shown(number) for number in range(3)], world.home_chain()
    taken = world.servers[2].memory
    assert taken.execute_command("HSET", HOME.shard(1).state("counts"), "damaged", "no number") == 1
    damaged = next(f"damaged{n}" for n in range(99) if shard_of("counts", StateKind.HASH, f"damaged{n}", 3) == 1)
    taken.execute_command("HSET", HOME.shard(1).state("counts"), damaged, "no number")
    reply = store.commit(commit_of(counts(**{damaged: 1, "a": 1, "b": 1}), attempt(4)))
    assert reply.status is CommitStatus.TYPE
    assert "no number" in reply.detail
    taken.execute_command("HDEL", HOME.shard(1).state("counts"), "damaged", damaged)
    assert ([world.shown(number) for number in range(3)], world.home_chain()) == before
    world.run(Random(9), TOTAL)
    world.check_done()


def test_a_part_that_no_server_would_take_is_refused_before_anything_is_staged(monkeypatch):
    world = ShardedWorld(2)
    store = world.store()
    acquire(store, "a" * 32)
    monkeypatch.setattr(arguments, "BYTES_LIMIT", 1000)
    reply = store.commit(commit_of(counts(**{f"field{number:0200d}": 1 for number in range(20)}), attempt(1)))
    assert reply.status is CommitStatus.LIMIT
    assert "more than the limit of 1000" in reply.detail
    assert [world.chain(number) for number in range(2)] == ["", ""]


def test_a_server_of_shards_that_no_longer_syncs_stops_the_run_before_it_decides(tmp_path):
    with EmbeddedServer(tmp_path / "home") as home, EmbeddedServer(tmp_path / "other") as other:
        at_home, elsewhere = (redis.Redis.from_url(each.url) for each in (home, other))
        for client in (at_home, elsewhere):
            client.config_set("appendfsync", "always")
        store = ShardedStore(home.url, "wc", shard_count=2, client=at_home, shard_clients=[elsewhere] * 2)
        asked = Durability(DurabilityLevel.FSYNC)
        store.check_server(asked)
        acquire(store)
        assert store.commit(commit_of(counts(a=1, b=2), attempt(1))).status is CommitStatus.OK
        elsewhere.config_set("appendfsync", "everysec")
        with pytest.raises(StateRefusedError, match="has appendfsync 'everysec' now") as refused:
            store.commit(commit_of(counts(a=1, b=2), attempt(2)))
        assert refused.value.trouble is Trouble.DURABILITY
        assert at_home.hget(HOME.control, "committed") == b"1"
        store.check_server()
        assert "everysec" in store.durability.server_can_lose
        at_home.close()
        elsewhere.close()


def test_parts_are_kept_elsewhere_also_after_their_shard_has_moved(monkeypatch):
    """Shards 0 and 1 change servers between two groups, so that shard 0 lies with the one that kept its parts."""
    world = ShardedWorld(4, 1)
    store = world.store()
    acquire(store)
    places = {0: "a", 1: "b", 2: "a", 3: "b"}
    monkeypatch.setattr(shard_module.Shard, "place", property(lambda shard: places[shard.number]))
    for txid in (1, 2):
        assert store.commit(commit_of(counts(a=1, b=1, c=1, d=1), attempt(txid))).status is CommitStatus.OK
        last = {copy.chain: (copy.number, shard.number) for shard in store._shards for copy in shard.copies()}
        kept = [(copy.number, shard.number) for shard in store._shards for copy in shard.copies()[-1:]]
        assert len(kept) == 4, last
        assert all(places[number] != places[keeper] for number, keeper in kept)
        places |= {0: "b", 1: "a"}


def test_a_decision_carries_what_has_changed_since_the_last_ones_and_nothing_that_they_carry():
    world = ShardedWorld(2)

    def sizes(store: ShardedStore) -> list[int]:
        return [len(each) for each in store._shards[0].decisions()]

    def commit(store: ShardedStore, txid: int) -> None:
        assert store.commit(commit_of(counts(a=1), attempt(txid))).status is CommitStatus.OK

    store = world.store()
    acquire(store, "a" * 32)
    notes = {f"note.file{number}:1": "x" * 50 for number in range(500)}
    store.store_metadata(notes)
    for txid in range(1, 5):
        commit(store, txid)
    again = world.store()
    acquire(again, "b" * 32)
    again.store_metadata({"note.late:2": "y" * 3_000})
    commit(again, 5)
    commit(again, 6)
    first, *others = sizes(again)
    assert first > 25_000
    assert [size > 3_000 for size in others] == [False, False, False, True, False]
    world.servers[0].go_back(writes_of(world.servers[0]) - 1)
    found = acquire(world.store(), "c" * 32)
    assert (found.committed_txid, found.metadata) == (6, {**notes, "note.late:2": "y" * 3_000})


def test_a_run_watches_the_server_of_every_shard():
    world, now = ShardedWorld(2), count(0, 60)
    watch = world.store().watch(lambda: float(next(now)))
    watch.look()
    world.servers[2].memory.info |= {"evicted_keys": 3}
    with pytest.raises(StateRefusedError, match="has evicted 3 keys during this run"):
        watch.look()


def test_a_user_who_lacks_rights_on_a_shard_is_told_what_grants_them():
    world = ShardedWorld(2)
    world.servers[2].memory.denied.add("HINCRBY")
    with pytest.raises(StateRefusedError, match=r"lacks rights on shard 1 of .*txbatch acl wc --shards 2") as refused:
        world.store()
    assert refused.value.trouble is Trouble.SERVER_RIGHTS


def test_what_is_damaged_after_the_decision_stops_the_run_and_is_applied_by_the_next():
    world = ShardedWorld(2)
    store = world.store()
    acquire(store, "a" * 32)
    key, memory = HOME.shard(1).state("counts"), world.servers[2].memory

    def damage(name: str) -> None:
        if name == "shards.applying":
            memory.execute_command("SET", key, "somebody else's")

    added = dict.fromkeys("abcdefgh", 1)
    with installed(damage), pytest.raises(StateRefusedError, match="refuses what it had accepted") as refused:
        store.commit(commit_of(counts(**added), attempt(1), metadata={"coordinator:1": 1}))
    assert refused.value.trouble is Trouble.STATE_VALUE
    with pytest.raises(StateRefusedError, match="refuses what it had accepted"):
        acquire(world.store(), "b" * 32)
    memory.execute_command("DEL", key)
    store = world.store()
    assert acquire(store, "c" * 32).committed_txid == 1
    store.confirm()
    assert world.shown(0) + world.shown(1) == Counter(added)


class Unreliable:
    """Runs of one world that die at any call, are stopped there while another run comes, or lose what servers hold."""

    def __init__(self, random: Random, flavours: int) -> None:
        self.random, self.flavours = random, flavours
        self.world = ShardedWorld(*random.choice([(1, 1), (2, 2), (2, 1), (3, 3), (3, 2), (4, 2)]))
        self.losses = self.runs = self.under_way = 0

    def run(self) -> None:
        """One run, which may end in any way that is allowed."""
        self.runs += 1
        self.under_way += 1
        try:
            self.world.run(self.random, TOTAL, self.visit, self.runs % self.flavours)
        except (Died, FencedError):
            pass
        except TransactionError:
            if not self.losses:
                raise
        finally:
            self.under_way -= 1
        self.world.check_shards()

    def visit(self) -> None:
        random = self.random
        if random.random() < 0.01:
            raise Died
        if self.under_way < 3 and random.random() < 0.01:
            self.run()  # the one that is under way goes on afterwards, and does not know
        server = random.choice(self.world.servers)
        if server.befores and random.random() < 0.005:
            self.losses += 1
            server.go_back(min(len(server.befores), random.choice([1, 1, 2, 3])))


@pytest.mark.often("the same batches")
@pytest.mark.parametrize("flavours", [1, 2], ids=["the same batches", "other batches"])
def test_servers_that_go_back_are_mended_or_named(flavours):
    outcomes = Counter[str]()
    for seed in range(200):
        unreliable = Unreliable(Random(f"{seed} {flavours}"), flavours)
        for _ in range(6):
            unreliable.run()
        try:
            unreliable.world.run(unreliable.random, TOTAL)
        except StateRefusedError as error:
            if not unreliable.losses or error.trouble is not Trouble.REGRESSED:
                raise
            outcomes["named"] += 1
        else:
            unreliable.world.check_done()
            outcomes["mended" if unreliable.losses else "nothing was lost"] += 1
    assert min(outcomes.values()) > 3, outcomes
