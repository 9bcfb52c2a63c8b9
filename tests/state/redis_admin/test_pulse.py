"""The pulse on every backend: written by the owner alone, apart from everything that counts."""

from __future__ import annotations

import pytest

from state.errors import StateRefusedError
from state.records.run_pulse import PulseSample, RunFigures, RunIdentity, RunState, to_json
from state.redis_admin.pulse import PulseSender, read_pulse
from state.redis_admin.topology_reader import TopologyReader
from state.redis_client.connection import RedisConnection
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import acquire, attempt, commit_of, counts, dump, unchanged

PULSE, STORIES = b"{wc}:txbatch:pulse", b"{wc}:txbatch:stories"
NOW = {"now": to_json(RunFigures(state=RunState.RUNNING, last_txid=3)), "seen": "5.0"}


def told(client) -> list[int]:
    return sorted(int(txid) for txid in client.hkeys(STORIES))


def pulse_of(store, *, with_samples=False):
    return read_pulse(store._connection, store.keys, with_samples=with_samples)


def test_what_the_owner_tells_is_read_back(store) -> None:
    assert pulse_of(store) is None
    assert PulseSender(store).send(NOW | {"sample.1": to_json(PulseSample(at=5.0))})
    assert (pulse_of(store).now.last_txid, pulse_of(store).samples) == (3, ())
    assert pulse_of(store, with_samples=True).samples == (PulseSample(at=5.0),)


@pytest.mark.parametrize(
    ("state", "is_gone"), [(RunState.RUNNING, True), (RunState.DONE, False)], ids=["running", "done"]
)
def test_a_reader_on_the_same_machine_sees_that_the_process_is_gone(store, monkeypatch, state, is_gone) -> None:
    monkeypatch.setattr("state.redis_admin.pulse.is_gone", lambda *process: process == (7, "boot pid:[1]"))
    run = RunIdentity(pid=7, pid_space="boot pid:[1]")
    PulseSender(store).send({"now": to_json(RunFigures(state=state)), "run": to_json(run), "seen": "5.0"})
    assert pulse_of(store).is_gone is is_gone


def test_a_pulse_changes_nothing_of_what_counts(store, client) -> None:
    before = dump(client)
    PulseSender(store).send(NOW, [(1, "{}")], kept=10)
    after = dump(client)
    assert after.keys() - before.keys() == {PULSE, STORIES}
    assert {key: after[key] for key in before} == before
    store.commit(commit_of(counts(a=1)))  # at the revision that it expects
    store.confirm()


@pytest.mark.parametrize("key", [PULSE, STORIES], ids=["pulse", "stories"])
def test_a_key_of_another_type_counts_as_not_told(store, client, key) -> None:
    """It is for people, and no decision depends on it: whoever wrote it keeps no run or reader from anything else."""
    store.commit(commit_of(counts(a=1)))
    client.set(key, "theirs")
    reader = TopologyReader(RedisConnection(client, "memory", timeout_s=1.0))
    assert pulse_of(store) is None
    assert pulse_of(store, with_samples=True) is None
    assert [each.fault for each in reader.topologies()] == [""]
    overview, known, page = reader.overview("wc"), reader.transaction("wc", 1), reader.transactions("wc")
    assert overview is not None
    assert known is not None
    assert page is not None
    assert (overview.pulse, known.story, [each.txid for each in page.rows]) == (None, None, [1])


def drop_and_start(store) -> None:
    admin_of(store).drop()
    acquire(store, new_generation="d" * 32)  # with the same nonce, so with the same fence


@pytest.mark.parametrize(
    "meanwhile",
    [lambda store: acquire(store, "c" * 32), lambda store: admin_of(store).drop(), drop_and_start],
    ids=["a takeover", "a drop", "a drop and a new start"],
)
def test_a_run_that_no_longer_owns_the_topology_tells_nothing(open_store, client, meanwhile) -> None:
    old, new = open_store(), open_store()
    acquire(old)
    sender = PulseSender(old)
    meanwhile(new)
    with unchanged(client):
        assert not sender.send(NOW, [(1, "{}")], kept=10)


def test_only_the_last_stories_stay(store, client) -> None:
    sender = PulseSender(store)
    sender.send({}, [(txid, "{}") for txid in range(1, 8)], kept=5)
    assert told(client) == [3, 4, 5, 6, 7]
    sender.send({}, [(8, "{}")], kept=5)
    assert told(client) == [4, 5, 6, 7, 8]
    sender.send({}, [(12, "{}")], kept=5)  # those of a run that told nothing are missing
    assert told(client) == [8, 12]


def test_fewer_stories_are_kept_from_the_next_pulse_on(store, client) -> None:
    sender = PulseSender(store)
    sender.send({}, [(txid, "{}") for txid in range(1, 8)], kept=100)
    sender.send({}, [(8, "{}")], kept=2)
    assert told(client) == [7, 8]
    sender.send({}, [(9, "{}")], kept=0)
    assert told(client) == []


def test_a_pulse_that_arrives_late_brings_no_story_back(store, client) -> None:
    """Nothing would ever delete it: forgetting begins where it ended the last time."""
    sender = PulseSender(store)
    for txid in range(1, 8):
        sender.send({}, [(txid, "{}")], kept=2)
    sender.send({}, [(3, "late"), (6, "late")], kept=2)
    assert told(client) == [6, 7]
    sender.send({}, [(8, "{}")], kept=2)
    assert told(client) == [7, 8]


def test_a_key_of_another_type_is_refused_and_left_alone(store, client) -> None:
    client.set(PULSE, "x")
    with pytest.raises(StateRefusedError, match=r"pulse of topology 'wc' cannot be written: key "):
        PulseSender(store).send(NOW)
    assert client.get(PULSE) == b"x"


class TestList:
    def test_every_topology_is_found_with_what_its_run_told(self, open_store, client) -> None:
        first, second = open_store("b.2"), open_store("a-1")
        acquire(first)
        first.commit(commit_of(counts(a=1), attempt(1)))
        sender = PulseSender(first)
        sender.send(NOW | {"run": to_json(RunIdentity(fence=sender.fence))})
        acquire(second)
        client.hset("{other}:control", "committed", "5")
        found = TopologyReader(first._connection).topologies()
        assert [(each.topology_id, each.committed, each.is_dropping) for each in found] == [
            ("a-1", "0", False),
            ("b.2", "1", False),
        ]
        assert [each.fence.partition(":")[0] for each in found] == ["1", "1"]
        assert found[0].pulse is None
        assert found[1].pulse is not None
        assert found[1].pulse.now.last_txid == 3

    def test_one_that_cannot_be_read_does_not_hide_the_others(self, store, client) -> None:
        client.set("{broken}:txbatch:control", "x")
        client.hset("{a b}:txbatch:control", "committed", "5")
        found = {each.topology_id: each.fault for each in TopologyReader(store._connection).topologies()}
        assert found.keys() == {"wc", "broken", "a b"}
        assert not found["wc"]
        assert "wrong kind of value" in found["broken"]
        assert "not a valid name" in found["a b"]
