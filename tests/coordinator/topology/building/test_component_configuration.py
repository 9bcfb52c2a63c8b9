"""Tasks, executors and configuration per component, as the builder takes them and tasks are given them."""

from __future__ import annotations

import pytest

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.component import IComponent
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.topology.building.topology_description import described
from coordinator.topology.planning.plan import make_plan
from state.errors import TopologyError
from tests.support.topologies.components import Commit, Lines, Pass, plan, shape_of


def builder_of(spout=None, **changes):
    return TransactionalTopologyBuilder("test", "lines", spout or Lines(), **changes)


def wirings(topology, component_id):
    return [wiring for wiring in plan(topology).wirings.values() if wiring.component_id == component_id]


# tasks and executors


def test_tasks_are_what_groupings_choose_among_and_contexts_speak_of():
    builder = builder_of(parallelism=2)
    builder.spout_declarer.set_num_tasks(3)
    builder.set_bolt("pass", Pass(), parallelism=2).set_num_tasks(5).shuffle_grouping("lines")
    topology = builder.build()
    passing = topology.component("pass")
    assert (passing.parallelism, passing.task_count, passing.executor_count) == (2, 5, 2)
    assert [(w.task_id, w.task_index, w.task_count) for w in wirings(topology, "pass")] == [
        (4, 0, 5),
        (5, 1, 5),
        (6, 2, 5),
        (7, 3, 5),
        (8, 4, 5),
    ]
    (emitting,) = {w.streams["default"].subscribers[0].tasks for w in wirings(topology, "lines")}
    assert emitting == (4, 5, 6, 7, 8)
    assert [w.context().task_count for w in wirings(topology, "lines")] == [3, 3, 3]
    assert shape_of(topology) == ["lines*3[spout]<-()", "pass*5[bolt]<-(lines/default:ShuffleGrouping())"]


def test_executors_beyond_the_tasks_are_not_used():
    builder = builder_of()
    builder.set_bolt("pass", Pass(), parallelism=8).set_num_tasks(3).shuffle_grouping("lines")
    topology = builder.build()
    assert topology.component("pass").executor_count == 3
    assert plan(topology).executor_of == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}


@pytest.mark.parametrize(("limit", "own", "expected"), [(2, None, 2), (9, None, 4), (2, 3, 3), (9, 1, 1), (None, 3, 3)])
def test_max_task_parallelism_limits_tasks_and_a_components_own_limit_comes_first(limit, own, expected):
    builder = builder_of()
    if limit is not None:
        builder.set_max_task_parallelism(limit)
    declarer = builder.set_bolt("pass", Pass(), parallelism=4).shuffle_grouping("lines")
    if own is not None:
        declarer.set_max_task_parallelism(own)
    assert builder.build().component("pass").task_count == expected


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2", None, 10_001])
def test_a_number_of_tasks_that_is_no_integer_from_1_is_refused(count):
    builder = builder_of()
    with pytest.raises(TopologyError, match=f"number of tasks of component 'lines' is {count!r}; give an integer"):
        builder.spout_declarer.set_num_tasks(count)
    with pytest.raises(TopologyError, match=f"max task parallelism is {count!r}; give an integer from 1 to 10000"):
        builder.set_max_task_parallelism(count)
    with pytest.raises(TopologyError, match=f"max task parallelism of component 'pass' is {count!r}; give"):
        builder.set_bolt("pass", Pass()).set_max_task_parallelism(count)


def placed():
    builder = builder_of(parallelism=2)
    declarer = builder.set_bolt("pass", Pass(), parallelism=3).set_num_tasks(7)
    declarer.local_or_shuffle_grouping("lines")
    builder.set_bolt("store", Commit(), parallelism=2).local_or_shuffle_grouping("pass").shuffle_grouping("lines")
    builder.set_acker_count(2)
    return builder.build()


def test_tasks_are_dealt_to_executors_in_contiguous_runs_the_longer_ones_first():
    executor_of = plan(placed()).executor_of
    assert executor_of == {1: 1, 2: 2, 3: 3, 4: 3, 5: 3, 6: 4, 7: 4, 8: 5, 9: 5, 10: 6, 11: 7, 12: 8, 13: 9}


def test_executors_are_dealt_round_robin_and_local_targets_are_those_on_the_emitters_worker():
    made = make_plan(placed(), lambda component_id, spec: b"", worker_count=2)
    # executors 1 3 5 7 9 on worker 0, the others on worker 1
    assert [task for task, worker in made.worker_of.items() if worker == 0] == [1, 3, 4, 5, 8, 9, 11, 13]

    def local(task, subscriber):
        (positions,) = {
            s.grouping.local_positions  # type: ignore[attr-defined] # a local-or-shuffle grouping
            for s in made.wirings[task].streams["default"].subscribers
            if s.component_id == subscriber
        }
        return positions

    assert {task: local(task, "pass") for task in (1, 2)} == {1: (0, 1, 2, 5, 6), 2: (3, 4)}
    assert {task: local(task, "store") for task in range(3, 10)} == {
        **dict.fromkeys((3, 4, 5, 8, 9), (1,)),
        **dict.fromkeys((6, 7), (0,)),
    }


def test_without_workers_nothing_is_local_and_tasks_share_their_streams():
    made = plan(placed())
    assert made.worker_of == {}
    assert made.wirings[1].streams is made.wirings[2].streams
    assert "local_positions" not in described(placed())


def test_a_worker_without_a_target_emits_to_all():
    builder = builder_of(parallelism=1)
    builder.set_bolt("pass", Pass(), parallelism=2).local_or_shuffle_grouping("lines")
    made = make_plan(builder.build(), lambda component_id, spec: b"", worker_count=3)
    (subscriber,) = made.wirings[1].streams["default"].subscribers
    chooser = subscriber.grouping.chooser(2, ("line", "number"), 1)
    assert {chooser.choose([n, n])[0] for n in range(4)} == {0, 1}


# configuration


class Configured(Pass):
    def get_component_configuration(self):
        return {"own": "bolt", "both": "bolt", "all": "bolt"}


def test_the_declarer_wins_over_the_bolt_and_the_bolt_over_the_topology():
    builder = builder_of()
    declarer = builder.set_bolt("configured", Configured()).shuffle_grouping("lines")
    declarer.add_configuration("all", "declarer").add_configurations({"set": [1, None], "more": {"x": 2}})
    builder.set_bolt("plain", Pass()).shuffle_grouping("lines")
    topology = builder.build({"topology": 1, "both": "topology", "all": "topology"})
    (configured,) = wirings(topology, "configured")
    assert configured.conf == {
        "topology": 1,
        "own": "bolt",
        "both": "bolt",
        "all": "declarer",
        "set": [1, None],
        "more": {"x": 2},
    }
    (other,) = wirings(topology, "plain")
    assert other.conf == topology.conf == {"topology": 1, "both": "topology", "all": "topology"}


class ConfiguredLines(Lines):
    def get_component_configuration(self):
        return {"of": "spout", "kept": 1}


class ConfiguredBasic(BaseBasicBolt):
    def execute(self, tup, collector):
        """Does nothing."""

    def get_component_configuration(self):
        return {"of": "basic"}


def test_spouts_and_basic_bolts_have_a_configuration_too():
    builder = builder_of(ConfiguredLines())
    builder.spout_declarer.add_configuration("of", "declarer")
    builder.set_bolt("basic", ConfiguredBasic()).shuffle_grouping("lines")
    confs = [wiring.conf for wiring in plan(builder.build()).wirings.values()]
    assert confs == [{"of": "declarer", "kept": 1}, {"of": "basic"}]
    assert issubclass(IPartitionedTransactionalSpout, IComponent)


@pytest.mark.parametrize("value", [object(), {"deep": [print]}, "\ud800", lambda: 1])
def test_a_value_that_is_no_plain_data_is_refused_with_its_name(value):
    class Odd(Pass):
        def get_component_configuration(self):
            return {"odd": value}

    builder = builder_of()
    with pytest.raises(TopologyError, match="component 'pass': configuration value 'odd' cannot be sent or stored"):
        builder.set_bolt("pass", Pass()).add_configuration("odd", value)
    builder.set_bolt("odd", Odd()).shuffle_grouping("lines")
    with pytest.raises(TopologyError, match="component 'odd': configuration value 'odd' cannot be sent or stored"):
        builder.build()
    good = builder_of()
    good.set_bolt("pass", Pass()).shuffle_grouping("lines")
    with pytest.raises(TopologyError, match="the topology: configuration value 'odd' cannot be sent or stored"):
        good.build({"odd": value})


@pytest.mark.parametrize("name", ["", 7, None])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(
        TopologyError, match=f"component 'lines': configuration names must be non-empty strings, got {name!r}"
    ):
        builder_of().spout_declarer.add_configuration(name, 1)


TICKS = "topology.tick.tuple.freq.secs"


class Ticking(Pass):
    def get_component_configuration(self):
        return {TICKS: 5}


@pytest.mark.parametrize("where", ["bolt", "declarer", "spout", "topology"])
def test_tick_tuples_are_refused_wherever_they_are_asked_for(where):
    builder = builder_of()
    declarer = builder.set_bolt("pass", Ticking() if where == "bolt" else Pass()).shuffle_grouping("lines")
    if where == "declarer":
        declarer.add_configuration(TICKS, 5)
    if where == "spout":
        builder.spout_declarer.add_configuration(TICKS, 5)
    who = {"spout": "component 'lines'", "topology": "the topology's configuration"}.get(where, "component 'pass'")
    with pytest.raises(TopologyError, match=f"{who} sets '{TICKS}', but in a transactional topology every tuple"):
        builder.build({TICKS: 5} if where == "topology" else None)
