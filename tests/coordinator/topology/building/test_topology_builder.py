"""What the builder accepts, and every refusal with its reason."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.declared import StreamSpec
from coordinator.topology.building import topology_description
from coordinator.topology.building.component import ComponentKind, Subscription
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.topology.planning.plan import make_plan
from state import HashState, SetState
from state.errors import TopologyError
from tests.support.topologies.components import Commit, Count, Lines, Pass, Sink, build, plan
from tests.support.topologies.plain_components import Identity


def builder_of(**changes):
    return TransactionalTopologyBuilder("test", "lines", Lines(), **changes)


def refused(builder, message):
    with pytest.raises(TopologyError, match=message):
        builder.build()


def test_components_come_after_what_they_hear_else_as_they_were_added():
    topology = build(("last", Pass(), ["b", "a"]), ("b", Pass(), ["lines"]), ("a", Pass(), ["b"]))
    assert [component.component_id for component in topology.components] == ["lines", "b", "a", "last"]
    assert topology.spout.component_id == "lines"


def test_a_bolt_that_is_a_committer_becomes_one_either_way():
    builder = builder_of()
    builder.set_bolt("bolt", Pass()).shuffle_grouping("lines")
    builder.set_bolt("by_class", Commit()).shuffle_grouping("lines")
    builder.set_committer_bolt("by_name", Pass()).shuffle_grouping("lines")
    kinds = {component.component_id: component.kind for component in builder.build().components}
    assert kinds == {
        "lines": ComponentKind.SPOUT,
        "bolt": ComponentKind.BOLT,
        "by_class": ComponentKind.COMMITTER,
        "by_name": ComponentKind.COMMITTER,
    }


def test_every_grouping_is_subscribed_on_named_streams():
    class Streams(Pass):
        def declare_output_fields(self, declarer):
            declarer.declare(("a", "b"))
            declarer.declare_stream("named", ("a", "b"))
            declarer.declare_stream("orders", ("a",), direct=True)

    builder = builder_of(parallelism=2)
    builder.set_bolt("many", Streams()).none_grouping("lines")
    declarer = builder.set_bolt("sink", Sink(), parallelism=3).shuffle_grouping("lines").all_grouping("many")
    declarer.fields_grouping("many", ["b"], "named").direct_grouping("many", "orders")
    builder.set_bolt("top", Sink()).global_grouping("many", "named")
    topology = builder.build({"key": "value"})
    assert topology.conf == {"key": "value"}
    assert [repr(s) for s in topology.component("sink").subscriptions] == [
        "Subscription(upstream_id='lines', stream_id='default', grouping=ShuffleGrouping())",
        "Subscription(upstream_id='many', stream_id='default', grouping=AllGrouping())",
        "Subscription(upstream_id='many', stream_id='named', grouping=FieldsGrouping(names=('b',)))",
        "Subscription(upstream_id='many', stream_id='orders', grouping=DirectGrouping())",
    ]
    assert isinstance(topology.component("top").subscriptions[0], Subscription)
    assert topology.component("many").streams["orders"] == StreamSpec("orders", ("a",), direct=True)


# P-17: what was not rejected in the original


class Orders(Pass):
    def declare_output_fields(self, declarer):
        declarer.declare_stream("orders", ("a",), direct=True)


def graph(*bolts: Any) -> Any:
    """A builder with bolts, each given as (id, bolt, *(grouping, its arguments))."""
    builder = builder_of()
    for component_id, bolt, *subscriptions in bolts:
        declarer = builder.set_bolt(component_id, bolt)
        for grouping, *arguments in subscriptions:
            getattr(declarer, grouping)(*arguments)
    return builder


SHUFFLE = ("shuffle_grouping", "lines")
TO_ORDERS = "'sink' cannot subscribe to stream 'orders' of 'orders': the stream is direct and takes only"
REFUSED: dict[str, tuple[list[Any], str]] = {
    "no bolt": ([], "the topology has no bolt; add one with set_bolt"),
    "no input": (
        [("alone", Pass())],
        r"component 'alone' has no input; subscribe it to a component, for example with .shuffle_grouping\(...\)",
    ),
    "cycle": (
        [
            ("a", Pass(), SHUFFLE, ("shuffle_grouping", "c")),
            ("b", Pass(), ("shuffle_grouping", "a")),
            ("c", Pass(), ("shuffle_grouping", "b")),
        ],
        r"the topology has a cycle: (\w -> ){3}\w; remove a subscription",
    ),
    "cycle of one": (
        [("echo", Pass(), SHUFFLE, ("shuffle_grouping", "echo"))],
        "the topology has a cycle: echo -> echo; remove a subscription",
    ),
    "unknown component": (
        [("pass", Pass(), ("shuffle_grouping", "line"))],
        r"component 'pass' subscribes to the unknown component 'line'; known: \['lines', 'pass'\]",
    ),
    "unknown stream": (
        [("pass", Pass(), ("shuffle_grouping", "lines", "errors"))],
        r"subscribes to the unknown stream 'errors' of 'lines'; declared: \['default'\]",
    ),
    "no stream": (
        [("sink", Sink(), SHUFFLE), ("pass", Pass(), ("shuffle_grouping", "sink"))],
        r"the unknown stream 'default' of 'sink'; declared: none; set its output_fields",
    ),
    "unknown field": (
        [("pass", Pass(), ("fields_grouping", "lines", ["line", "word"]))],
        r"component 'pass' cannot subscribe to stream 'default' of 'lines': "
        r"field 'word' does not exist; the stream has \('line', 'number'\)",
    ),
    "no field": ([("pass", Pass(), ("fields_grouping", "lines", []))], "fields_grouping needs at least one field"),
    "no direct stream": (
        [("sink", Sink(), ("direct_grouping", "lines"))],
        "'sink' cannot subscribe to stream 'default' of 'lines': direct_grouping needs a stream declared",
    ),
    **{
        f"direct stream, {grouping}": (
            [("orders", Orders(), SHUFFLE), ("sink", Sink(), (f"{grouping}_grouping", "orders", *fields, "orders"))],
            TO_ORDERS,
        )
        for grouping, *fields in [("shuffle",), ("all",), ("global",), ("none",), ("fields", ["a"])]
    },
}


@pytest.mark.case(id="P-17")
@pytest.mark.parametrize("name", REFUSED)
def test_a_graph_that_cannot_run_is_refused(name):
    bolts, message = REFUSED[name]
    refused(graph(*bolts), message)


@pytest.mark.case(id="P-17")
def test_fields_given_as_one_string_are_refused_at_once():
    declarer = builder_of().set_bolt("pass", Pass())
    message = r"component 'pass': fields_grouping takes a list of fields, not 'line'; write \['line'\]"
    with pytest.raises(TopologyError, match=message):
        declarer.fields_grouping("lines", "line")


@pytest.mark.case(id="P-17")
@pytest.mark.parametrize("component_id", ["lines", "pass"])
def test_a_duplicate_id_is_refused_at_once(component_id):
    builder = builder_of()
    builder.set_bolt("pass", Pass())
    for method in (builder.set_bolt, builder.set_committer_bolt):
        with pytest.raises(TopologyError, match=f"component id '{component_id}' is used twice"):
            method(component_id, Pass())


def test_a_stream_is_subscribed_once():
    declarer = builder_of().set_bolt("pass", Pass()).shuffle_grouping("lines")
    with pytest.raises(TopologyError, match="component 'pass' subscribes twice to stream 'default' of 'lines'"):
        declarer.fields_grouping("lines", ["line"])


@pytest.mark.parametrize("fields", ["line", ("line", "line"), ("",), (1,)])
def test_output_fields_that_are_no_list_of_names_are_refused(fields):
    class Odd(Pass):
        output_fields = fields

    builder = builder_of()
    builder.set_bolt("odd", Odd()).shuffle_grouping("lines")
    refused(builder, "component 'odd' (declares fields|names a field twice)")


# what is set is an object of the right kind


@pytest.mark.parametrize("method", ["set_bolt", "set_committer_bolt"])
@pytest.mark.parametrize(
    ("bolt", "described"),
    [
        (Pass, "the class Pass, not an instance of it"),
        (Lines(), r"<tests.support.topologies.components.Lines object at \w+> of type Lines"),
        (None, "None of type NoneType"),
        (print, "<built-in function print> of type builtin_function_or_method"),
    ],
    ids=["class", "spout", "None", "function"],
)
def test_a_bolt_that_is_no_object_of_a_batch_bolt_is_refused_at_once(method, bolt, described):
    with pytest.raises(TopologyError, match=f"component 'pass' is {described}; give an instance of IBatchBolt"):
        getattr(builder_of(), method)("pass", bolt)


@pytest.mark.case(id="P-17")
def test_a_committer_that_is_not_a_batch_bolt_is_refused():
    class OnlyMarked(ICommitter):
        pass

    with pytest.raises(TopologyError, match="of type OnlyMarked; give an instance of IBatchBolt"):
        builder_of().set_committer_bolt("store", OnlyMarked())


class BasicCommitter(Identity, ICommitter):
    """Would have nothing to commit in."""


@pytest.mark.case(id="P-17")
@pytest.mark.parametrize(
    ("method", "bolt"),
    [("set_bolt", BasicCommitter()), ("set_committer_bolt", BasicCommitter()), ("set_committer_bolt", Identity())],
)
def test_a_committer_that_is_a_basic_bolt_is_refused(method, bolt):
    message = f"component 'store' cannot be a committer: {type(bolt).__name__} is a basic bolt, which has no finish"
    with pytest.raises(TopologyError, match=message):
        getattr(builder_of(), method)("store", bolt)


@pytest.mark.parametrize("spout", [Lines, Pass(), None])
def test_a_spout_that_is_no_object_of_a_spout_is_refused_at_once(spout):
    message = (
        "spout 'lines' is .*; give an instance of ITransactionalSpout, IPartitionedTransactionalSpout or "
        "IOpaquePartitionedTransactionalSpout"
    )
    with pytest.raises(TopologyError, match=message):
        TransactionalTopologyBuilder("test", "lines", spout)


# names and numbers

BAD_NAMES = ["", "with space", "colon:", "{brace}", "ä", "x" * 65, None, 7]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_out_of_rule_are_refused_at_once(name):
    with pytest.raises(TopologyError, match=r"topology id .* is not a valid name; use 1 to 64 of the characters"):
        TransactionalTopologyBuilder(name, "lines", Lines())
    with pytest.raises(TopologyError, match=r"component id .* is not a valid name"):
        TransactionalTopologyBuilder("test", name, Lines())
    with pytest.raises(TopologyError, match=r"component id .* is not a valid name"):
        builder_of().set_bolt(name, Pass())


@pytest.mark.parametrize("name", ["__acker", "__anything"])
def test_names_with_two_underscores_in_front_are_ours(name):
    with pytest.raises(TopologyError, match=f"component id '{name}' begins with two underscores"):
        builder_of().set_bolt(name, Pass())
    with pytest.raises(TopologyError, match=f"component id '{name}' begins with two underscores"):
        TransactionalTopologyBuilder("test", name, Lines())


@pytest.mark.case(id="P-12")
@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2", 10_001])
def test_a_parallelism_or_acker_count_that_is_not_an_integer_from_1_is_refused(count):
    with pytest.raises(TopologyError, match=f"parallelism of component 'lines' is {count!r}; give an integer from 1"):
        builder_of(parallelism=count)
    with pytest.raises(TopologyError, match=f"parallelism of component 'pass' is {count!r}; give an integer from 1"):
        builder_of().set_bolt("pass", Pass(), parallelism=count)
    with pytest.raises(TopologyError, match=f"acker count is {count!r}; give an integer from 1 to 10000"):
        builder_of().set_acker_count(count)


@pytest.mark.case(id="P-12")
@pytest.mark.parametrize("seconds", [0, -1, 0.0, float("nan"), float("inf"), "5", None, True])
def test_a_message_timeout_that_is_not_a_time_is_refused(seconds):
    with pytest.raises(TopologyError, match=f"message timeout is {seconds!r}; give a number of seconds above 0"):
        builder_of().set_message_timeout_s(seconds)


def test_ackers_and_timeout_reach_the_topology():
    builder = builder_of()
    builder.set_bolt("pass", Pass()).shuffle_grouping("lines")
    assert (builder.build().acker_count, builder.build().message_timeout_s) == (1, 60.0)
    builder.set_acker_count(3)
    builder.set_message_timeout_s(1)
    assert (builder.build().acker_count, builder.build().message_timeout_s) == (3, 1.0)


# state


class CountNoCommitter(BaseBatchBolt):
    counts = HashState("counts")
    seen = SetState("seen")

    def execute(self, tup):
        """Ignores it."""

    def finish_batch(self):
        """Writes nothing."""


class Prefetching(Count):
    counts = HashState("counts").prefetch("word", "nowhere")


class Twice(Count):
    more = HashState("counts")


@pytest.mark.parametrize(
    ("bolts", "message"),
    [
        (
            {"count": CountNoCommitter()},
            r"component 'count' declares state \['counts', 'seen'\] but is not a committer",
        ),
        (
            {"one": Count(), "two": Count()},
            "state 'counts' is declared by 'one' and by 'two'; only one component may write a state",
        ),
        (
            {"count": Prefetching()},
            r"state 'counts' of 'count' prefetches by \['nowhere', 'word'\], which no tuple of its inputs has",
        ),
        ({"twice": Twice()}, "state 'counts' is declared twice in Twice, as 'counts' and 'more'; keep one"),
    ],
    ids=["no committer", "two components", "prefetch", "twice"],
)
def test_state_that_cannot_be_kept_is_refused(bolts, message):
    refused(graph(*((component_id, bolt, SHUFFLE) for component_id, bolt in bolts.items())), message)


def test_state_on_a_spout_is_refused():
    class Stateful(Lines):
        counts = HashState("counts")

    builder = TransactionalTopologyBuilder("test", "lines", Stateful())
    builder.set_bolt("pass", Pass()).shuffle_grouping("lines")
    refused(builder, r"component 'lines' declares state \['counts'\] but is not a committer")


# hooks


class Watching(ITaskHook):
    def __init__(self, what):
        self.what = what


def test_hooks_of_the_topology_are_shipped_to_every_task():
    builder = builder_of(parallelism=2)
    builder.set_bolt("pass", Pass()).shuffle_grouping("lines")
    builder.add_task_hook(Watching("all"))
    topology = builder.build()
    (specs,) = {wiring.hook_specs for wiring in plan(topology).wirings.values()}
    assert [pickle.loads(spec).what for spec in specs] == ["all"]
    assert "Watching" not in topology_description.described(topology)


@pytest.mark.parametrize("hook", [Watching, None, Pass()])
def test_a_hook_that_is_no_object_of_a_hook_is_refused(hook):
    with pytest.raises(TopologyError, match=r"add_task_hook got .*; give an instance of ITaskHook"):
        builder_of().add_task_hook(hook)


def test_a_hook_that_cannot_be_shipped_is_refused_by_its_name():
    def refuse(component_id, spec):
        if isinstance(spec, Watching):
            raise TopologyError(f"{component_id} cannot be shipped")
        return b""

    builder = builder_of()
    builder.set_bolt("pass", Pass()).shuffle_grouping("lines")
    builder.add_task_hook(Watching("all"))
    with pytest.raises(TopologyError, match="task hook Watching cannot be shipped"):
        make_plan(builder.build(), refuse)
