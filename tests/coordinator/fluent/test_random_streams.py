"""Any tree of steps and aggregations leaves what a loop over its rows leaves.

Whatever runs it: however many steps share a bolt, however few tuples arrive together, and wherever drivers die.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.task_counts import with_tasks
from coordinated_bolt.batches import batch_task
from coordinator import Stream
from coordinator.engines.spark.shipping import pickle_spec
from coordinator.topology.planning.plan import make_plan
from state import HashState, SetState, ValueState
from tests.support.runs.whole_runs import CrashingStore, bounds, crash_points, run_until_it_ends
from tests.support.topologies.short_forms import finished, rows

Row = dict[str, Any]
PROGRAMS = int(os.environ.get("TXBATCH_RANDOM_PROGRAMS", "0")) or settings().max_examples
BATCHES = [[[1, 2, 3], [4, 5, 6]], [], [[7, 8, 9], [2, 2, 2], [0, 1, 0]]]


def told(*values):
    """A number that any values make."""
    return sum((place + 1) * value for place, value in enumerate(values)) % 5


def halves(*values):
    yield from range(told(*values) % 3)


def placed(fields: list[str], given: list[str], new: Row, row: Row) -> Row:
    """The row with new fields where the first of the given ones was, by a way of its own."""
    made: Row = {}
    for name in fields:
        if name == given[0]:
            made |= new
        if name not in given:
            made[name] = row[name]
    return made


@st.composite
def trees(draw, depth=4):
    """Steps as (kind, which fields it is given, what follows it); a number stands for what is kept at the end."""
    if not depth or draw(st.integers(0, 4)) == 0:
        return draw(st.integers(0, 8 * 27 - 1))
    kinds = st.sampled_from(["map", "pair", "flat_map", "filter", "key_by", "refuse"])
    step = st.tuples(kinds, st.integers(0, 7), trees(depth - 1))
    return draw(st.lists(step, min_size=1, max_size=2))


def chosen(fields: tuple[str, ...], bits: int) -> list[str]:
    return [name for place, name in enumerate(fields) if bits >> place & 1] or [fields[0]]


def weight(total, *values):
    return total + told(*values) + 1


class Both:
    """Builds the stream, and keeps what a loop makes of the rows."""

    def __init__(self) -> None:
        self.expected: dict[str, Any] = {}
        self.numbers = count()

    def keep(self, stream: Stream, table: list[Row], number: int) -> None:
        """Keeps the rows as they are, and in one more way; any field may be part, key and value at once."""
        name, fields = f"s{len(self.expected)}", stream.fields
        shown = stream.map(lambda *values: repr((fields, values)), to="shown")
        shown.count_by("shown", into=HashState(name))
        self.expected[name] = Counter(repr((tuple(row), tuple(row.values()))) for row in table)
        key, value, part = (fields[number // by % len(fields)] for by in (8, 24, 72))
        found: dict[Any, Any]
        into, keyed = HashState(f"{name}x", field=int), self._by(table, key)
        match number % 8:
            case 0 | 1 | 2 as place:
                keep = (stream.sum_by, stream.max_by, stream.min_by)[place]
                keep(key, value, into=into)
                found = {at: (sum, max, min)[place](row[value] for row in some) for at, some in keyed.items()}
            case 3:
                stream.reduce_by(key, weight, 0, into=into)
                found = {at: sum(weight(0, *row.values()) for row in some) for at, some in keyed.items()}
            case 4:
                stream.reduce_by(key, weight, 0, into=into, of=[key, value, key])
                found = {at: sum(weight(0, at, row[value], at) for row in some) for at, some in keyed.items()}
            case 5:
                stream.latest_by(key, value, into=HashState(f"{name}x", "json", int), of=[part, value])
                made = {at: [{value: row[value], part: row[part]} for row in some] for at, some in keyed.items()}
                found = {at: max(some, key=lambda o: (o[value], text_of(o))) for at, some in made.items()}
            case 6:
                stream.reduce_by(key, weight, 0, into=into.per(part, int))
                for each, some in self._by(table, part).items():
                    totals = {at: sum(weight(0, *row.values()) for row in rs) for at, rs in self._by(some, key).items()}
                    self.expected[f"{name}x:{each}"] = totals
                return
            case _:
                first = stream.distinct_by(key, into=SetState(f"{name}y", int))
                first.count_by(None, into=ValueState(f"{name}x"))
                found = {"": len(keyed)}
        self.expected[f"{name}x"] = found

    @staticmethod
    def _by(table: list[Row], key: str) -> dict[int, list[Row]]:
        groups: dict[int, list[Row]] = {}
        for row in table:
            groups.setdefault(row[key], []).append(row)
        return groups

    def grow(self, stream: Stream, table: list[Row], tree: Any) -> None:
        if isinstance(tree, int):
            self.keep(stream, table, tree)
            return
        for kind, bits, below in tree:
            of = chosen(stream.fields, bits)
            self.grow(*self.after(kind, stream, table, of, f"new{next(self.numbers)}"), below)

    def after(self, kind: str, stream: Stream, table: list[Row], of: list[str], name: str) -> tuple[Stream, list[Row]]:
        fields = [*stream.fields]
        answers = [(row, told(*(row[each] for each in of))) for row in table]
        match kind:
            case "map":
                return stream.map(told, to=name, of=of), [placed(fields, of, {name: n}, row) for row, n in answers]
            case "pair":
                stream = stream.map(lambda *values: [told(*values), len(values)], to=[name, f"{name}y"], of=of)
                return stream, [placed(fields, of, {name: n, f"{name}y": len(of)}, row) for row, n in answers]
            case "flat_map":
                many = [placed(fields, of, {name: part}, row) for row, n in answers for part in range(n % 3)]
                return stream.flat_map(halves, to=name, of=of), many
            case "filter":
                return stream.filter(told, of=of), [row for row, n in answers if n]
            case "key_by":
                return stream.key_by(told, name, of=of), [row | {name: n} for row, n in answers]
        return stream.dead_letter_if(told, "told", of=of), [row for row, n in answers if not n]


def text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def content(held: dict[Any, Any]) -> dict[Any, Any]:
    """What a state of a `MemoryStore` holds, with the objects that are kept as texts."""
    is_text = any(isinstance(value, str) for value in held.values())
    return {key: json.loads(value) for key, value in held.items()} if is_text else dict(held)


def grown(tree: Any) -> tuple[Both, Stream]:
    both, source = Both(), rows("a b c", *BATCHES)
    both.grow(source, [dict(zip("abc", row, strict=True)) for batch in BATCHES for row in batch], tree)
    return both, source


@given(trees(), st.sampled_from([(1, 64), (2, 3)]))
@settings(deadline=None)
def test_a_tree_of_steps_is_a_loop_over_rows(tree, schedule):
    both, source = grown(tree)
    run = finished(source.topology("random"), *schedule)
    plain = {name: held for name, held in both.expected.items() if ":" not in name and "" not in held and held}
    assert {name: run.state(name) for name in plain} == plain


sizes = st.tuples(st.integers(1, 4), st.sampled_from([0, 40, 1 << 20]))
"""Tuples of a frame, and bytes of those frames that a task executes together."""


@given(trees(), st.integers(1, 3), sizes, bounds, crash_points)
@settings(deadline=None, max_examples=PROGRAMS)
def test_it_is_so_whatever_arrives_together_and_wherever_drivers_die(tree, tasks, sizes, limits, crashes):
    both, source = grown(tree)
    topology = with_tasks(source.topology("random"), tasks)
    store = CrashingStore(crashes)
    made = make_plan(topology, pickle_spec)
    wirings = {task: replace(wiring, frame_tuples=sizes[0]) for task, wiring in made.wirings.items()}
    with mock.patch.object(batch_task, "EXECUTED_BYTES", sizes[1]):
        run_until_it_ends(topology, store, made=replace(made, wirings=wirings), **limits)
    expected = {name: held for name, held in both.expected.items() if held not in ({}, {"": 0})}
    others = ("y", "letters")  # the members that are known, and dead letters
    assert {name: content(held) for name, held in store.states.items() if not name.endswith(others)} == expected
