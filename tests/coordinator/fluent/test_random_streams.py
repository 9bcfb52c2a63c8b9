"""Any tree of steps leaves what a loop over its rows leaves, however many steps share a bolt."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.fluent.stream import Stream
from state import HashState
from tests.support.topologies.short_forms import finished, rows

Row = dict[str, Any]
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
    """Steps as (kind, which fields it is given, what follows it)."""
    if not depth or draw(st.integers(0, 4)) == 0:
        return []
    kinds = st.sampled_from(["map", "pair", "flat_map", "filter", "key_by", "refuse"])
    step = st.tuples(kinds, st.integers(0, 7), trees(depth - 1))
    return draw(st.lists(step, min_size=1, max_size=2))


def chosen(fields: tuple[str, ...], bits: int) -> list[str]:
    return [name for place, name in enumerate(fields) if bits >> place & 1] or [fields[0]]


class Both:
    """Builds the stream, and keeps what a loop makes of the rows."""

    def __init__(self) -> None:
        self.expected: dict[str, Counter[str]] = {}
        self.numbers = count()

    def grow(self, stream: Stream, table: list[Row], tree: Any) -> None:
        if not tree:
            name = f"s{len(self.expected)}"
            self.expected[name] = Counter(repr((tuple(row), tuple(row.values()))) for row in table)
            fields = stream.fields
            shown = stream.map(lambda *values: repr((fields, values)), to="shown")
            shown.count_by("shown", into=HashState(name))
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


@given(trees(), st.sampled_from([(1, 64), (2, 3)]))
@settings(max_examples=60, deadline=None)
def test_a_tree_of_steps_is_a_loop_over_rows(tree, schedule):
    both, source = Both(), rows("a b c", *BATCHES)
    both.grow(source, [dict(zip("abc", row, strict=True)) for batch in BATCHES for row in batch], tree)
    run = finished(source.topology("random"), *schedule)
    assert {name: run.state(name) for name in both.expected} == both.expected
