"""The calls that take columns do what single calls do, and raise what they raise."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state import HashState, ListState, SetState, SortedSetState
from state.errors import TopologyError
from state.kinds.session import StateSession
from state.values.state_kind import MAX_INTEGER
from tests.support.case_names import shown
from tests.support.values import Number

odd = st.sampled_from([True, None, 1.5, "a\ud800", b"x", Decimal(1), float("nan"), 2**60, -(2**53), "wörd"])
texts = st.sampled_from(["a", "b", "c", "ö", ""])
fields = st.one_of(st.lists(texts, max_size=6), st.lists(texts | odd, max_size=6))
integers = st.sampled_from([0, 1, -3, MAX_INTEGER, -MAX_INTEGER])
floats = st.sampled_from([0.0, 0.5, -1.25, 1e300]) | integers


def outcome(state, *calls) -> tuple[Any, ...]:
    """The writes, in order, or the error; and what a later single call makes of them."""
    session = StateSession()
    live = state.bind(session)
    session.open()
    error = None
    try:
        for name, *arguments in calls:
            getattr(live, name)(*arguments)
    except (TypeError, ValueError, OverflowError) as raised:
        error = type(raised), str(raised)
    writes = session.writes.state("s", live.kind, live.value_type.stored, live.retention).settled()
    return error, repr((writes.puts, writes.increments, writes.deletes, writes.appends))


def agree(state, many, single, *columns, before=()):
    rows = list(zip(*columns, strict=True))
    assert outcome(state, *before, (many, *columns)) == outcome(state, *before, *((single, *row) for row in rows))


def column(of, count):
    return st.lists(of, min_size=count, max_size=count)


HASH_BEFORE = [
    (),
    (("increment", "a", 2),),
    (("put", "a", 1),),
    (("delete", "b"),),
    (("increment", "a"), ("put", "c", 3)),
]
SCORES_BEFORE = [(), (("increment", "a", 0.5),), (("remove", "a"),)]
CALLS = [
    (HashState("s"), "increment_many", fields, integers, HASH_BEFORE),
    (HashState("s"), "put_many", fields, integers, HASH_BEFORE),
    (HashState("s", value=float), "increment_many", fields, floats, [()]),
    (HashState("s", value=float), "put_many", fields, floats, [()]),
    (HashState("s", field=int), "increment_many", st.lists(integers | odd), integers, [()]),
    (HashState("s", field=bytes), "increment_many", st.lists(st.just(b"x")), integers, [()]),
    (SortedSetState("s"), "put_many", fields, floats, SCORES_BEFORE),
    (SortedSetState("s"), "increment_many", fields, floats, SCORES_BEFORE),
    (SetState("s"), "add_many", fields, None, [(), (("remove", "a"),)]),
]
"""A state, the call that takes columns, its keys and amounts, and calls that may precede it."""


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[1]} of {call[0]!r}")
@given(st.data())
def test_a_call_with_columns_does_what_single_calls_do_or_raises_what_they_raise(call, data):
    state, many, keys, amounts, preceding = call
    columns = [data.draw(keys)]
    if amounts is not None:
        count = len(columns[0])
        columns.append(data.draw(column(amounts, count) | column(amounts | odd, count)))
    before = data.draw(st.sampled_from(preceding))
    for earlier in (before, (*before, (many, *columns))):
        agree(state, many, many.removesuffix("_many"), *columns, before=earlier)


def test_members_may_be_a_set_and_pairs_a_mapping():
    assert outcome(SetState("s"), ("add_many", {"a"})) == outcome(SetState("s"), ("add", "a"))
    amounts = {"a": 1, "b": 2}
    for name in ("increment_many", "put_many"):
        assert outcome(HashState("s"), (name, amounts)) == outcome(HashState("s"), (name, ["a", "b"], [1, 2]))
        assert outcome(SortedSetState("s"), (name, amounts)) == outcome(SortedSetState("s"), (name, ["a", "b"], (1, 2)))


def test_what_counts_as_an_integer_does_so_in_columns_too():
    agree(HashState("s"), "increment_many", "increment", ["a"], [Number(7)])


def test_arrow_columns_are_taken():
    arrow = pytest.importorskip("pyarrow")
    columns = arrow.array(["a", "b"]), arrow.array([1, 2])
    assert outcome(HashState("s"), ("increment_many", *columns)) == outcome(
        HashState("s"), ("increment_many", ["a", "b"], [1, 2])
    )


@pytest.mark.parametrize("state", [HashState("s"), SortedSetState("s")], ids=shown)
@pytest.mark.parametrize("name", ["increment_many", "put_many"])
class TestRefusals:
    def test_columns_of_two_lengths_change_nothing(self, state, name):
        error, writes = outcome(state, (name, ["a", "b"], [1]))
        assert error[1] == f"{name} of state 's' was given columns of 2 and 1 values; give one value for each field"
        assert writes == "({}, {}, {}, [])"

    @pytest.mark.parametrize("column", ["ab", 5, {"a", "b"}, None], ids=shown)
    def test_what_has_no_order_is_no_column(self, state, name, column):
        error, _ = outcome(state, (name, column, [1, 2]))
        assert error[0] is TypeError
        assert f"{name} of state 's' was given {column!r}" in error[1] or isinstance(column, set)

    def test_state_that_is_closed_stays_closed(self, state, name):
        live = state.bind(StateSession())
        with pytest.raises(TopologyError, match="open only in finish_batch"):
            getattr(live, name)(["a"], [1])


def test_a_list_takes_items_as_they_are_or_none():
    assert outcome(ListState("s", value=int), ("extend", [1, Number(7)]))[1] == "({}, {}, {}, [1, 7])"
    error, writes = outcome(ListState("s", value=int), ("extend", [1, "x"]))
    assert error is not None
    assert writes == "({}, {}, {}, [])"


def test_increments_of_nothing_leave_no_change_to_send():
    session = StateSession()
    live = HashState("s").bind(session)
    session.open()
    live.increment_many([], [])
    assert not session.close().states
