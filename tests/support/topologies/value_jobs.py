"""Topologies about values, for every engine: what changes after the emit, equal keys, what cannot travel or count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ListState, SetState, ValueState
from tests.support.runs.collecting import Collecting
from tests.support.spark.bolts import note


class Integer:
    """An integer as other libraries have them: no int, but good for an index. Equal to nothing."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Grow(BaseBatchBolt):
    """Emits one list, one mapping and one tuple around a list again and again, and changes them in between."""

    output_fields = ("items", "by_name", "pair")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.items: list[int] = []
        self.by_name: dict[str, list[int]] = {"all": []}

    def execute(self, tup):
        self.items.append(tup["number"])
        self.by_name["all"].append(tup["number"])
        row: list[Any] = [self.items, self.by_name, (len(self.items), self.items)]
        if tup["number"] % 2:
            self.collector.emit(row)
        else:
            self.collector.emit_all([row])

    def finish_batch(self):
        self.items.clear()
        self.by_name.clear()


class KeepSeen(Collecting):
    """Keeps the text of each tuple, in order."""

    seen = ListState("seen", value=str)

    def finish_batch(self):
        self.seen.extend(repr(list(tup)) for tup in self.tuples)


def growing(count):
    builder = TransactionalTopologyBuilder(
        "growing", "numbers", FixedBatchesSpout([[[n] for n in range(count)]], ["number"])
    )
    builder.set_bolt("grow", Grow()).global_grouping("numbers")
    builder.set_committer_bolt("keep", KeepSeen()).global_grouping("grow")
    return builder.build()


def grown(count):
    lists = [list(range(n + 1)) for n in range(count)]
    return [repr([items, {"all": items}, (len(items), items)]) for items in lists]


class CountOn(Collecting):
    """Reads a count, and writes it back one higher for every tuple: right only if one task has all of a key."""

    counts = HashState("counts", value=int)

    def finish_batch(self):
        for key in self.column("name"):
            self.counts.put(key, (self.counts.get(key) or 0) + 1)


EQUAL_KEYS: list[tuple[str, Any]] = [
    ("mapping", {"a": 1, "b": 2}),
    ("mapping", {"b": 2, "a": 1}),
    ("mapping", {"b": 2.0, "a": True}),
    ("nested", ["x", {"a": {"c": 1, "d": 2}, "b": 2}]),
    ("nested", ["x", {"b": 2, "a": {"d": 2, "c": 1}}]),
    ("number", 1),
    ("number", 1.0),
    ("number", True),
    ("zero", 0.0),
    ("zero", -0.0),
    ("nan", float("nan")),
    ("nan", float("inf") - float("inf")),
]


def equal_keys():
    rows = [EQUAL_KEYS[start::2] for start in (0, 1)]
    builder = TransactionalTopologyBuilder(
        "equal-keys", "keys", FixedBatchesSpout(rows * 2, ["name", "key"]), parallelism=2
    )
    builder.set_committer_bolt("count", CountOn(), parallelism=7).fields_grouping("keys", ["key"])
    return builder.build()


EQUAL_COUNTS = {name: 2 * [key for key, _ in EQUAL_KEYS].count(name) for name, _ in EQUAL_KEYS}


class Numerals(BaseBatchBolt, ICommitter):
    """Counts, increments, puts, reads and emits what is no int but stands for one."""

    output_fields = ("value",)
    counts = HashState("counts", value=int)
    by_number = HashState("by_number", value=int, field=int)
    floats = HashState("floats", value=float)
    total = ValueState("total", value=int)
    members = SetState("members", value=int)

    def execute(self, tup):
        assert type(tup["number"]) is int
        self.context.count("seen", Integer(tup["number"]))

    def finish_batch(self):
        self.counts.increment("a", Integer(3))
        self.counts.increment("a", 4)
        self.counts.increment_many({"b": Integer(5)})
        self.by_number.increment(Integer(2), Integer(1))
        assert self.by_number.get(Integer(2)) is not None
        self.floats.increment("a", Integer(2))
        self.total.put(Integer(9))  # type: ignore[arg-type]
        self.members.add(Integer(6))  # type: ignore[arg-type]
        assert self.members.contains(Integer(6))  # type: ignore[arg-type]


class EmitIntegers(BaseBatchBolt):
    output_fields = ("number",)

    def execute(self, tup):
        self.collector.emit([Integer(tup["number"])])
        self.collector.emit_all([[Integer(0)]])


def numerals():
    builder = TransactionalTopologyBuilder("numerals", "numbers", FixedBatchesSpout([[[3], [4]]], ["number"]))
    builder.set_bolt("emit", EmitIntegers()).shuffle_grouping("numbers")
    builder.set_committer_bolt("store", Numerals(), parallelism=1).shuffle_grouping("emit")
    return builder.build()


class Misuse(BaseBatchBolt, ICommitter):
    """Does one wrong thing in its second transaction."""

    output_fields = ("first", "second")
    counts = HashState("counts", value=int)

    def __init__(self, wrong):
        self.wrong = wrong

    def execute(self, tup):
        if tup["number"] == 1 and self.wrong in IN_EXECUTE:
            IN_EXECUTE[self.wrong](self)

    def finish_batch(self):
        if self.attempt.txid == 2 and self.wrong in IN_FINISH_BATCH:
            IN_FINISH_BATCH[self.wrong](self)


IN_EXECUTE: dict[str, Callable[[Any], object]] = {
    "emit_object": lambda self: self.collector.emit(["good", [Misuse]]),
    "emit_all_bytearray": lambda self: self.collector.emit_all([["good", "good"], ["good", bytearray(b"x")]]),
    "emit_text": lambda self: self.collector.emit(["good", "half a pair: \ud800"]),
    "count_float": lambda self: self.context.count("seen", 2.5),
    "count_name": lambda self: self.context.count(5),
    "count_past_the_guard": lambda self: self.context.counters.update(seen=2.5),
}
IN_FINISH_BATCH: dict[str, Callable[[Any], object]] = {
    "emit_mapping": lambda self: self.collector.emit({"first": 1, "second": 2}),
    "increment_float": lambda self: self.counts.increment("a", 2.5),
    "increment_field": lambda self: self.counts.increment(2.5),
}
MISUSES = {
    "emit_object": [
        "component 'misuse' emitted ['good', [<class ",
        "on stream 'default', which cannot be sent or stored: field 'second' holds <class",
        "; send one of None, bool, int, float, str, bytes, list",
        'self.collector.emit(["good", [Misuse]])',
    ],
    "emit_all_bytearray": ["field 'second' holds bytearray(b'x')", "send bytes(value)", "self.collector.emit_all(["],
    "emit_text": ["field 'second' holds 'half a pair: \\ud800', which is not valid Unicode", "self.collector.emit(["],
    "emit_mapping": ["dict maps names to values", "self.collector.emit({"],
    "count_float": ["counter 'seen' was given 2.5 of type float; give an integer", 'self.context.count("seen", 2.5)'],
    "count_name": ["counter names must be strings, got 5 of type int", "self.context.count(5)"],
    "count_past_the_guard": ["counter 'seen' was given 2.5 of type float; give an integer"],
    "increment_float": ["state 'counts' was given increment 2.5 of type float", 'self.counts.increment("a", 2.5)'],
    "increment_field": ["state 'counts' was given field 2.5 of type float", "self.counts.increment(2.5)"],
}
"""What is done wrong -> what the user is told, among it the line."""


class Sink(BaseBatchBolt):
    """Takes anything."""

    def execute(self, tup):
        """Ignores it."""


def misuse(wrong):
    spout = FixedBatchesSpout([[[0]], [[1]], [[0]]], ["number"])
    builder = TransactionalTopologyBuilder(f"misuse-{wrong}", "numbers", spout)
    builder.set_committer_bolt("misuse", Misuse(wrong)).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).shuffle_grouping("misuse")
    return builder.build()


class Spoil(BaseBatchBolt, ICommitter):
    """Changes its configuration, and keeps what it had found in it."""

    found = ListState("found", value=str)

    def prepare(self, conf, context, collector, attempt):
        assert conf == context.conf
        self.text = repr(dict(conf))
        for name in ("mine", "shared"):
            conf[name]["list"].append("spoilt")
            conf[name]["more"] = True
        conf["new"] = True

    def execute(self, tup):
        """Ignores it."""

    def finish_batch(self):
        self.found.append(self.text)


def spoiling():
    """A topology of which every task changes the configuration, and the text each should find it as."""
    conf: dict[str, Any] = {"shared": {"list": ["as built"]}, "mine": {"list": []}}
    builder = TransactionalTopologyBuilder(
        "spoiling", "numbers", FixedBatchesSpout([[[n]] for n in range(3)], ["number"])
    )
    declarer = builder.set_committer_bolt("spoil", Spoil(), parallelism=2).shuffle_grouping("numbers")
    own = {"list": ["as declared"]}
    declarer.add_configuration("mine", own)
    topology = builder.build(conf)
    own["list"].append("changed after it was declared")
    conf["shared"]["list"].append("changed after the build")
    return topology, repr({"shared": {"list": ["as built"]}, "mine": {"list": ["as declared"]}})


class GrowingSpout(BaseSpout):
    """Emits one list again and again, and changes it in between; so does it with its configuration."""

    output_fields = ("items",)

    def __init__(self, count):
        self.count = count

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        conf["found"].append("spout")
        self.items: list[int] = []

    def next_tuple(self):
        if len(self.items) < self.count:
            self.items.append(len(self.items))
            self.collector.emit([self.items])


class GrowMore(BaseBasicBolt):
    """Passes a list on twice, and changes it in between."""

    output_fields = ("items",)

    def execute(self, tup, collector):
        collector.emit([tup["items"]])
        tup["items"].append("more")
        collector.emit([tup["items"]])
        tup["items"].clear()


class NoteItems(BaseBasicBolt):
    def __init__(self, path):
        self.path = str(path)

    def prepare(self, conf, context):
        super().prepare(conf, context)
        self.found = list(conf["found"])
        conf["found"].append("bolt")

    def execute(self, tup, collector):
        note(self.path, "items", self.context.task_index, [tup["items"], self.found])


def plain_growing(path, count):
    builder = TopologyBuilder("plain-growing")
    builder.set_spout("spout", GrowingSpout(count))
    builder.set_bolt("grow", GrowMore()).global_grouping("spout")
    builder.set_bolt("note", NoteItems(path)).global_grouping("grow")
    return builder.build({"found": []})


def plain_grown(count):
    lists = [list(range(n + 1)) for n in range(count)]
    return [[items, []] for found in lists for items in (found, [*found, "more"])]


class EmitObject(BaseBasicBolt):
    output_fields = ("first", "second")

    def execute(self, tup, collector):
        collector.emit(["good", {"bad": EmitObject}])


class EmitSet(BaseSpout):
    output_fields = ("items",)

    def next_tuple(self):
        self.collector.emit({"x"})  # type: ignore[arg-type]


def plain_misuse(wrong):
    builder = TopologyBuilder(f"plain-misuse-{wrong}")
    builder.set_spout("spout", EmitSet() if wrong == "set" else GrowingSpout(2))
    builder.set_bolt("emit", EmitObject()).shuffle_grouping("spout")
    builder.set_bolt("sink", EmitObject()).fields_grouping("emit", ["first"])
    return builder.build({"found": []})


PLAIN_MISUSES = {
    "object": [
        "component 'emit' emitted ['good', {'bad': <class ",
        "on stream 'default', which cannot be sent or stored: field 'second' holds <class",
        "; send one of None, bool, int, float, str, bytes, list",
        'collector.emit(["good", {"bad": EmitObject}])',
    ],
    "set": ["component 'spout' emitted {'x'} on stream 'default'", "set has no order", 'self.collector.emit({"x"})'],
}
