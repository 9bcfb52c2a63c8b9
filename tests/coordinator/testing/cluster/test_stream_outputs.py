"""Streams that a topology writes: exact under schedules, exported and put back, and the input of another topology."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordinator.proving.prove import prove
from coordinator.spouts.memory import MemoryTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from coordinator.trying.bolt_trial import run_bolt
from state import StateRefusedError, StreamState
from tests.conftest import Backend
from tests.support.cli.processes import killed_and_ended
from tests.support.runs.collecting import Collecting
from tests.support.topologies.sharded_topology import Sharded

READINGS: list[list[Any]] = [
    ["boiler", 40],
    ["boiler", 101],
    ["pump", 99],
    ["pump", 300],
    ["boiler", 120],
    ["fan", 7],
    ["fan", 500],
]
HIGH = [{"device": device, "celsius": value} for device, value in READINGS if value > 100]


class Alarm(Collecting):
    """Appends what is too hot to a stream, and to one for each device."""

    alarms = StreamState("alarms", value="json")
    latest = StreamState("latest", value="json", keep_last=2)
    by_device = StreamState[int]("by_device").per("device")

    def finish_batch(self) -> None:
        for device, celsius in (tuple(tup) for tup in self.tuples if tup["celsius"] > 100):
            self.alarms.append({"device": device, "celsius": celsius})
            self.latest.append({"device": device, "celsius": celsius})
            self.by_device[device].append({"celsius": celsius})


def alarms(readings: Any = READINGS, tasks: int = 1) -> Topology:
    spout = MemoryTransactionalSpout([readings], ["device", "celsius"], take=2)
    builder = TransactionalTopologyBuilder("alarms", "readings", spout)
    builder.set_committer_bolt("alarm", Alarm(), parallelism=tasks).fields_grouping("readings", ["device"])
    return builder.build()


@pytest.mark.parametrize("seed", range(8))
def test_entries_do_not_depend_on_the_schedule_or_the_groups(seed: int) -> None:
    options = RunOptions(max_spout_pending=1 + seed % 5, commit_group_max=1 + seed % 3)
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(alarms(), options=options)
        run.run_until_idle()
        states = run.snapshot().states
    assert list(states["alarms"].items()) == [("1-0", HIGH[0]), ("2-0", HIGH[1]), ("3-0", HIGH[2]), ("4-0", HIGH[3])]
    assert states["latest"] == {"3-0": HIGH[2], "4-0": HIGH[3]}
    assert states["by_device"]["boiler"] == {"1-0": {"celsius": 101}, "3-0": {"celsius": 120}}


@pytest.mark.parametrize("seed", range(4))
def test_entries_of_several_tasks_stand_in_the_order_of_task_and_call(seed: int) -> None:
    both = [["boiler", 101], ["pump", 102], ["fan", 103], ["boiler", 104]]
    spread = []
    for group in (1, 4):
        with LocalCluster(seed=seed) as cluster:
            run = cluster.submit(alarms(both * 3, tasks=3), options=RunOptions(commit_group_max=group))
            run.run_until_idle()
            spread.append(list(run.snapshot().states["alarms"].items()))
    assert spread[0] == spread[1]
    assert Counter(entry["celsius"] for _, entry in spread[0]) == {101: 3, 102: 3, 103: 3, 104: 3}


def test_a_stream_can_be_proved_and_tried() -> None:
    proof = prove(lambda: alarms(READINGS * 3, tasks=2), seeds=8)
    assert proof.holds, str(proof)
    trial = run_bolt(Alarm(), READINGS, fields=["device", "celsius"])
    assert list(trial.states["alarms"].values()) == HIGH


@pytest.mark.redis
def test_a_higher_id_of_somebody_else_ends_the_run_before_anything_is_written(
    cluster: LocalCluster, redis_backend: Backend
) -> None:
    client: Any = redis_backend.client()
    kept = Sharded(client, 1, "alarms")
    client.xadd("{alarms}:by_device:pump", {"celsius": "1"})
    cluster.client = client
    run = cluster.submit(alarms(), options=RunOptions(commit_group_max=1, accept_state_changes=True))
    with pytest.raises(StateRefusedError, match=r"by_device:pump' has had an entry \d+-0, so it takes no 2-0"):
        run.run_until_idle()
    assert client.hget("{alarms}:txbatch:control", "committed") == b"1"
    assert client.xlen("{alarms}:alarms") == 1
    client.xtrim("{alarms}:by_device:pump", maxlen=0)  # the next commit to it would be refused all the same
    (fault,) = kept.faults()
    assert "'{alarms}:by_device:pump' has had" in fault
    client.execute_command("XSETID", "{alarms}:by_device:pump", "1-0")
    assert kept.faults() == []


@pytest.mark.redis
def test_a_stream_is_verified_exported_and_put_back_and_the_next_run_continues_it(
    cluster: LocalCluster, redis_backend: Backend
) -> None:
    client: Any = redis_backend.client()
    kept = Sharded(client, 1, "alarms")
    cluster.client = client
    cluster.submit(alarms(), options=RunOptions(last_txid=3)).run_until_idle()
    packed = kept.exported()
    before = {key: client.xrange(key) for key in client.keys("{alarms}:[ab]*")}
    client.flushall()
    kept.put_back(packed, replaces=False)
    assert {key: client.xrange(key) for key in client.keys("{alarms}:[ab]*")} == before
    cluster.submit(alarms()).run_until_idle()
    assert kept.faults() == []
    assert [entry_id for entry_id, _ in client.xrange("{alarms}:alarms")] == [b"1-0", b"2-0", b"3-0", b"4-0"]
    client.xadd("{alarms}:alarms", {"device": "not json"}, id="4-1")
    assert ["alarms" in fault for fault in kept.faults()] == [True]


@pytest.mark.redis
@pytest.mark.parametrize("group", [1, 2, 8])
def test_what_a_group_cuts_off_itself_was_in_the_stream_so_that_its_reader_misses_it(
    cluster: LocalCluster, redis_backend: Backend, group: int
) -> None:
    client: Any = redis_backend.client()
    cluster.client = client
    cluster.submit(alarms(), options=RunOptions(commit_group_max=group, max_spout_pending=8)).run_until_idle()
    assert positions(client, b"{alarms}:latest") == (2, len(HIGH), b"4-0")


@pytest.mark.redis
def test_a_stream_that_is_put_back_is_as_far_as_it_was_even_an_empty_one(
    cluster: LocalCluster, redis_backend: Backend
) -> None:
    client: Any = redis_backend.client()
    kept = Sharded(client, 1, "alarms")
    cluster.client = client
    cluster.submit(alarms()).run_until_idle()
    client.xtrim("{alarms}:alarms", maxlen=0)
    keys = sorted(client.keys("{alarms}:[abl]*"))
    before = [positions(client, key) for key in keys]
    packed = kept.exported()
    for replaces in (True, False):
        if not replaces:
            client.flushall()
        kept.put_back(packed, replaces=replaces)
        assert [positions(client, key) for key in keys] == before
    assert before[0] == (0, len(HIGH), b"4-0")


def positions(client: Any, key: bytes) -> tuple[int, int, bytes]:
    facts = client.xinfo_stream(key)
    return facts["length"], facts["entries-added"], facts["last-generated-id"]


JOBS = """
from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TransactionalTopologyBuilder
from coordinator.sources import RedisStreams, TextFiles
from state import HashState, StreamState

class Alarm(BaseBatchBolt, ICommitter):
    thirds = StreamState[int]("thirds")

    def prepare(self, conf, context, collector, attempt):
        self.numbers = []

    def execute(self, tup):
        self.numbers.append(int(tup["line"]))

    def finish_batch(self):
        for number in self.numbers:
            if number % 3 == 0:
                self.thirds.append({"number": number})

class Count(BaseBatchBolt, ICommitter):
    counts = HashState("counts", field=int)

    def prepare(self, conf, context, collector, attempt):
        self.numbers = []

    def execute(self, tup):
        self.numbers.append(tup["number"])

    def finish_batch(self):
        for number in self.numbers:
            self.counts.increment(number)

def first():
    builder = TransactionalTopologyBuilder("first", "lines", TextFiles("numbers.txt", lines_per_batch=20))
    builder.set_committer_bolt("alarm", Alarm()).global_grouping("lines")
    return builder.build()

def second(url):
    thirds = RedisStreams("{first}:thirds", fields={"number": int}, take=10, url=url)
    builder = TransactionalTopologyBuilder("second", "thirds", thirds)
    builder.set_committer_bolt("count", Count()).global_grouping("thirds")
    return builder.build()
"""
LINES = 12_000


@pytest.mark.nightly
@pytest.mark.redis
@pytest.mark.chaos
@pytest.mark.slow
def test_of_two_topologies_in_a_row_both_killed_every_entry_counts_once(redis_backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "numbers.txt").write_text("".join(f"{number}\n" for number in range(LINES)))
    client: Any = redis_backend.client()
    url = str(redis_backend.url)

    killed_and_ended(tmp_path, client, "first", "jobs.py:first", "--redis", url)
    numbers = [int(fields[b"number"]) for _, fields in client.xrange("{first}:thirds")]
    assert numbers == list(range(0, LINES, 3))
    killed_and_ended(tmp_path, client, "second", "jobs.py:second", "-p", f"url={url}", "--redis", url)
    assert client.hgetall("{second}:counts") == {b"%d" % number: b"1" for number in numbers}
