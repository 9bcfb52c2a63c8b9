"""Any sub-topology under any schedule: a request is acked iff every task has finished all of its batch."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinated_bolt.streams.groupings import AllGrouping, FieldsGrouping, GlobalGrouping, Grouping, ShuffleGrouping
from coordinator import BatchSubtopologyBuilder, TopologyBuilder
from coordinator.plain.tasks.messages import MessageKind
from tests.support.topologies.batch_components import (
    TIMEOUT_S,
    Diary,
    Outside,
    Pass,
    Requests,
    Spread,
    assert_nothing_is_left,
    cluster,
)

GROUPINGS = [ShuffleGrouping(), GlobalGrouping(), FieldsGrouping(("request",)), AllGrouping()]
CAPACITIES = st.sampled_from([1, 2, 1024])
REQUESTS = {f"request {n}": n for n in range(4)}
LOSABLE = [MessageKind.REGULAR, MessageKind.COORD, MessageKind.TUPLE, MessageKind.ACK]


class Shape:
    """A random sub-topology, and what has to arrive where."""

    def __init__(self, random: Random, failing=None) -> None:
        self.tasks = {"master": random.randint(1, 3)}
        self.inputs: dict[str, dict[str, Grouping]] = {}
        for number in range(random.randint(1, 4)):
            known = list(self.tasks)
            sources = random.sample(known, random.randint(1, min(2, len(known))))
            self.inputs[f"bolt{number}"] = {source: random.choice(GROUPINGS) for source in sources}
            self.tasks[f"bolt{number}"] = random.randint(1, 3)
        self.failing = failing or {}

    def builder(self, *, replay: bool) -> TopologyBuilder:
        builder = TopologyBuilder("test")
        builder.set_message_timeout_s(TIMEOUT_S)
        builder.set_spout("spout", Requests(REQUESTS, replay=replay))
        builder.set_acker_count(2)
        batches = BatchSubtopologyBuilder("master", Spread(self.failing.get("master")), self.tasks["master"])
        batches.master_declarer.shuffle_grouping("spout")
        for name, inputs in self.inputs.items():
            declarer = batches.set_bolt(name, Pass(self.failing.get(name)), self.tasks[name])
            for source, grouping in inputs.items():
                declarer.grouping(source, grouping)
        batches.extend_topology(builder)
        builder.set_bolt("outside", Outside()).shuffle_grouping(list(self.inputs)[-1])
        return builder

    def executed(self, count: int) -> dict[str, int]:
        """Component -> tuples its tasks execute for a request, said apart from the implementation."""
        emitted = {"master": count}
        for name, inputs in self.inputs.items():
            copies = {s: self.tasks[name] if isinstance(g, AllGrouping) else 1 for s, g in inputs.items()}
            emitted[name] = sum(emitted[source] * copies[source] for source in inputs)
        return emitted | {"master": 1}

    def assert_acks_tell_the_truth(self) -> None:
        """At each ack: some batch of the request was finished by every task, and had all tuples at each."""
        request_of = {entry[3]: entry[4] for entry in Diary.of("execute")}
        executed, finished = Counter[tuple[object, str]](), Counter[tuple[object, str]]()
        got = Counter[str]()
        for what, *rest in Diary.entries:
            if what == "execute":
                executed[rest[2], rest[0]] += 1
            elif what == "finish":
                finished[rest[2], rest[0]] += 1
            elif what == "got":
                got[rest[0]] += 1
            elif what == "acked":
                wanted, last = self.executed(REQUESTS[rest[0]]), list(self.inputs)[-1]
                everybody = self.tasks | {"master": 1}
                whole = [
                    batch
                    for batch, request in request_of.items()
                    if request == rest[0]
                    and all(executed[batch, name] == wanted[name] for name in wanted)
                    and all(finished[batch, name] == count for name, count in everybody.items())
                ]
                assert whole, rest  # a request that came twice is two batches, and both may be whole by then
                assert got[rest[0]] >= wanted[last]


def lead_to_the_end(run, times: int = 3) -> None:
    run.run_until_idle()
    for _ in range(times):
        run.advance_time(TIMEOUT_S)
        run.run_until_idle()


@settings(max_examples=60)
@given(st.integers(0, 2**32), CAPACITIES)
def test_every_request_is_acked_once_and_only_when_all_of_it_is_finished(seed, capacity):
    shape = Shape(Random(seed))
    with cluster(seed=seed, receive_capacity=capacity) as local:
        run = local.submit(shape.builder(replay=False).build())
        run.run_until_idle()
        assert sorted(run.acked("spout")) == sorted(REQUESTS)
        assert run.failed("spout") == []
        shape.assert_acks_tell_the_truth()
        finishes = Counter(entry[1:4] for entry in Diary.of("finish"))
        assert set(finishes.values()) == {1}
        assert_nothing_is_left(run, shape.tasks)


@settings(max_examples=60)
@given(st.integers(0, 2**32), CAPACITIES, st.data())
def test_bolts_that_fail_batches_delay_the_acks_and_nothing_else(seed, capacity, data):
    random = Random(seed)
    names = ["master", "bolt0"]
    places = [f"{where}:{request}" for where in ("execute", "finish") for request in REQUESTS]
    told = st.dictionaries(st.sampled_from(places), st.integers(1, 2), max_size=3)
    shape = Shape(random, {name: data.draw(told) for name in names})
    with cluster(seed=seed, receive_capacity=capacity) as local:
        run = local.submit(shape.builder(replay=True).build())
        run.run_until_idle()
        assert sorted(run.acked("spout")) == sorted(REQUESTS)
        shape.assert_acks_tell_the_truth()
        lead_to_the_end(run)
        assert sorted(run.acked("spout")) == sorted(REQUESTS)
        assert_nothing_is_left(run, shape.tasks)


@pytest.mark.case(id="P-07")
@settings(max_examples=120)
@given(st.integers(0, 2**32), CAPACITIES, st.sampled_from(LOSABLE), st.integers(0, 2), st.integers(0, 30))
@example(179, 2, MessageKind.TUPLE, 2, 0)
def test_one_message_lost_or_doubled_never_makes_an_ack_a_lie(seed, capacity, kind, copies, nth):
    shape, random = Shape(Random(seed)), Random(seed)
    seen = Counter[MessageKind]()

    def fault(message):
        seen[message.kind] += 1
        return [message] * (copies if (message.kind, seen[message.kind]) == (kind, nth + 1) else 1)

    with cluster(seed=random.getrandbits(32), receive_capacity=capacity) as local:
        run = local.submit(shape.builder(replay=False).build(), message_fault=fault)
        lead_to_the_end(run)
        assert sorted(run.acked("spout") + run.failed("spout")) == sorted(REQUESTS)
        shape.assert_acks_tell_the_truth()
        assert_nothing_is_left(run, shape.tasks)
