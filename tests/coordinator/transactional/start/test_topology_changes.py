"""A topology that is not what it was: said at start, and refused where a state would lose its meaning."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from coordinator import LocalCluster, MemoryTransactionalSpout, RunOptions, TransactionalTopologyBuilder
from coordinator.topology.building.topology_description import TopologyChange, changes, described, summary
from state import HashState, SetState, ValueState
from state.errors import Interruption, StateRefusedError
from state.fault_points import installed
from state.redis_admin.topology import RedisTopology
from tests.support.runs.collecting import Collecting

ROWS = [["a"], ["b"], ["a"]]
CONTROL = "{graph}:txbatch:control"


class Writing(Collecting):
    output_fields = ("line",)


class Counts(Writing):
    counts: HashState[Any] = HashState("counts", value=int)

    def finish_batch(self):
        for line in self.column("line"):
            self.counts.increment(line, 1)


class FloatCounts(Counts):
    counts = HashState("counts", value=float)


class BytesCounts(Counts):
    counts = HashState("counts", value=int, field=bytes)

    def finish_batch(self):
        for line in self.column("line"):
            self.counts.increment(line.encode(), 1)


class Renamed(Counts):
    counts = HashState("tallies", value=int)


class AsValue(Writing):
    counts = ValueState("counts", value=int)

    def finish_batch(self):
        self.counts.increment(len(self.column("line")))


class Stateless(Writing):
    def finish_batch(self):
        pass


class More(Counts):
    seen = SetState("seen")

    def finish_batch(self):
        super().finish_batch()
        for line in self.column("line"):
            self.seen.add(line)


def topology(committer: Any, *, spout_tasks: int = 1, tasks: int = 1, component_id: str = "count", rows: Any = ROWS):
    spout = MemoryTransactionalSpout([rows], ["line"], 1)
    builder = TransactionalTopologyBuilder("graph", "lines", spout, parallelism=spout_tasks)
    builder.set_committer_bolt(component_id, committer, tasks).fields_grouping("lines", ["line"])
    return builder.build()


def run(cluster: LocalCluster, built: Any, **options: Any) -> Any:
    with closing(cluster.submit(built, options=RunOptions(**options))) as made:
        made.run_until_idle()
        assert made.is_done
        return made.statistics


MOVED = "state 'counts': owner changed from 'count' to 'store'"
LATE = "state 'seen' is new; what was committed up to txid 3 is not read again for it, so it is not in there"
SAID = [
    ({"tasks": 2}, {"component 'count': tasks changed from 1 to 2"}),
    ({"spout_tasks": 3}, {"component 'lines': tasks changed from 1 to 3"}),
    ({"component_id": "store"}, {"component 'count' was removed", "component 'store' is new", MOVED}),
    ({"committer": More()}, {LATE}),
]


@pytest.mark.parametrize(("change", "said"), SAID, ids=["tasks", "spout tasks", "component id", "another state"])
def test_a_change_that_harms_nothing_is_said_at_start_by_what_has_changed(cluster, caplog, change, said):
    run(cluster, topology(Counts()))
    given: dict[str, Any] = {"committer": Counts(), "rows": [*ROWS, ["c"]], **change}
    with caplog.at_level(logging.WARNING, "txbatch"):
        statistics = run(cluster, topology(**given), adopt=True)
    notices = statistics.notices
    assert said <= set(notices)
    assert statistics.to_dict("graph")["notices"] == list(notices)
    assert all(f"topology 'graph': {sentence}" in caplog.text for sentence in said)
    caplog.clear()
    assert run(cluster, topology(**given)).notices == (), "what was said and stored is not said again"


STATES = [
    (FloatCounts(), "state 'counts': value type changed from int to float"),
    (BytesCounts(), "state 'counts': field type changed from str to bytes"),
    (AsValue(), "state 'counts': kind changed from hash to string"),
    (Renamed(), "state 'counts' was removed"),
    (Stateless(), "state 'counts' was removed"),
]


@pytest.mark.parametrize(("committer", "story"), STATES, ids=lambda part: type(part).__name__)
def test_a_state_that_is_gone_or_has_other_types_is_refused_until_that_is_accepted(cluster, committer, story):
    run(cluster, topology(Counts()))
    before = cluster.client.hgetall(CONTROL)
    with pytest.raises(StateRefusedError) as caught:
        run(cluster, topology(committer))
    ways_out = ["--accept-state-changes", "RunOptions.accept_state_changes", "txbatch drop graph"]
    for part in (story, "up to txid 3", *ways_out):
        assert part in str(caught.value)
    assert cluster.client.hgetall(CONTROL) == before, "a start that is refused changes nothing"
    assert story in run(cluster, topology(committer), accept_state_changes=True).notices


def test_a_change_that_was_accepted_is_stored_with_the_first_write(cluster):
    run(cluster, topology(Counts()))
    run(cluster, topology(Renamed(), rows=[*ROWS, ["c"]]), accept_state_changes=True, adopt=True)
    run(cluster, topology(Renamed(), rows=[*ROWS, ["c"]]))
    with pytest.raises(StateRefusedError, match="state 'tallies' was removed"):
        run(cluster, topology(Counts(), rows=[*ROWS, ["c"]]))
    assert cluster.client.hgetall("{graph}:counts") == {b"a": b"2", b"b": b"1"}
    assert cluster.client.hgetall("{graph}:tallies") == {b"c": b"1"}


def test_before_anything_is_committed_states_may_be_renamed_at_will(cluster):
    cluster.submit(topology(Counts())).close()
    assert "state 'counts': value type changed from int to float" in run(cluster, topology(FloatCounts())).notices
    assert cluster.client.hgetall("{graph}:counts") == {b"a": b"2", b"b": b"1"}


def test_a_description_is_readable_and_equal_topologies_have_equal_ones():
    text = described(topology(Counts(), tasks=2))
    assert text == described(topology(Counts(), tasks=2))
    assert json.loads(text) == {
        "components": {
            "count": {
                "kind": "committer",
                "tasks": 2,
                "parallelism": 2,
                "inputs": ["lines/default: FieldsGrouping(names=('line',))"],
            },
            "lines": {"kind": "spout", "tasks": 1, "parallelism": 1, "inputs": []},
        },
        "states": {"counts": {"kind": "hash", "value": "int", "field": "str", "owner": "count"}},
    }


@pytest.mark.parametrize("stored", ["", "graph", "[]", '{"components": 3}', "null"])
def test_a_description_that_cannot_be_read_has_to_be_accepted_as_changed_states_are(stored):
    change = changes(stored, described(topology(Counts())))
    assert change.said == ()
    assert change.states == (f"its stored description {stored!r} cannot be read",)


def test_a_description_has_a_short_form_for_readers():
    assert summary(described(topology(More(), tasks=2))) == (
        "count*2[committer], lines*1[spout]; states counts:hash, seen:set"
    )
    assert summary(described(topology(Stateless()))).endswith("; states none")
    assert summary("graph") == "graph"


BEFORE = described(topology(Counts()))
BY_SHUFFLE = BEFORE.replace("FieldsGrouping(names=('line',))", "ShuffleGrouping()")
THREE_EXECUTORS = BEFORE.replace('"kind": "committer", "parallelism": 1', '"kind": "committer", "parallelism": 3')


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (BEFORE, ()),
        (
            BY_SHUFFLE,
            ("component 'count': inputs changed from [lines/default: fields line] to [lines/default: shuffle]",),
        ),
        (described(topology(Counts(), tasks=2)), ("component 'count': tasks changed from 1 to 2",)),
        (THREE_EXECUTORS, ("component 'count': parallelism changed from 1 to 3",)),
    ],
    ids=["none", "grouping", "tasks, told once", "executors, if the number of tasks stays"],
)
def test_a_change_is_said_in_words(after, said):
    assert changes(BEFORE, after) == TopologyChange(said)


class KilledError(Interruption):
    """The process of a run ends at a point of its code."""


def kill_at(fatal: str) -> Callable[[str], None]:
    def visit(point: str) -> None:
        if point == fatal:
            raise KilledError

    return visit


def test_a_state_that_another_run_commits_while_this_one_starts_must_not_have_changed(cluster):
    """The other run's commit leaves the metadata as it was: txid 1 is the last committed one, and the only one."""
    before, changed = topology(Counts(), rows=ROWS[:1]), topology(FloatCounts(), rows=ROWS[:1])
    with installed(kill_at("commit.sending")), pytest.raises(KilledError):
        run(cluster, before)

    def other_commits(point: str) -> None:
        if point == "start.looked":
            with installed(lambda point: None):
                run(cluster, before)

    with installed(other_commits), pytest.raises(StateRefusedError, match="its states have changed since"):
        run(cluster, changed)
    assert cluster.client.hgetall("{graph}:counts") == {b"a": b"1"}


def test_a_state_that_is_no_longer_declared_stays_the_topologys_through_further_changes_and_goes_with_a_drop(cluster):
    run(cluster, topology(More()))
    cluster.client.set("{graph}:labels", "of another program")
    accepting = {"accept_state_changes": True, "adopt": "changed"}
    for number, committer in enumerate((Counts(), Renamed(), Renamed())):
        run(cluster, topology(committer, rows=[*ROWS, *[["c"]] * (number + 1)]), **accepting)
    assert json.loads(cluster.client.hget(CONTROL, "topology"))["former"] == {"counts": [""], "seen": [""]}
    store = RedisTopology("redis://cluster", "graph", client=cluster.client)
    assert store.drop().left == ("{graph}:labels",)
    assert cluster.client.keys() == [b"{graph}:labels"]
