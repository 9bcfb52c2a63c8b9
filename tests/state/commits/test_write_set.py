"""Write sets compose as if every transaction had been applied by itself."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.codec import pack, unpack
from state.commits.packed_writes import unpacked
from state.commits.state_writes import OrderMattersError, StateWrites
from state.commits.write_set import WriteSet, compose
from state.values.state_kind import KEEP_ALL, VALUE_FIELD, StateKind, ValueType

FIELDS = ["a", "b", "c"]
INT_HASH = (StateKind.HASH, ValueType.INT)
FLOAT_HASH = (StateKind.HASH, ValueType.FLOAT)
SCORES = (StateKind.SORTED_SET, ValueType.FLOAT)
MEMBERS = (StateKind.SET, ValueType.STR)
ITEMS = (StateKind.LIST, ValueType.INT)

floats = st.floats(allow_nan=False, allow_infinity=False, width=32)
amounts = {INT_HASH: st.integers(-5, 5), FLOAT_HASH: floats, SCORES: floats}


def steps_of(shape):
    field = st.sampled_from(FIELDS)
    if shape == ITEMS:
        return st.tuples(st.just("append"), st.integers(0, 9)) | st.just(("delete", VALUE_FIELD))
    if shape == MEMBERS:
        return st.tuples(st.just("put"), field, st.just(True)) | st.tuples(st.just("delete"), field)
    amount = amounts[shape]
    single = (
        st.tuples(st.just("put"), field, amount)
        | st.tuples(st.just("increment"), field, amount)
        | st.tuples(st.just("delete"), field)
    )
    rows = st.lists(st.tuples(field, amount), min_size=1, max_size=4)
    return single | st.tuples(st.just("columns"), rows) if shape == INT_HASH else single


shapes = st.sampled_from([INT_HASH, FLOAT_HASH, SCORES, MEMBERS, ITEMS])
runs = shapes.flatmap(
    lambda shape: st.tuples(st.just(shape), st.lists(st.lists(steps_of(shape), max_size=4), max_size=5))
)
pairs = shapes.flatmap(
    lambda shape: st.tuples(
        st.just(shape),
        st.lists(st.lists(steps_of(shape), max_size=2), min_size=1, max_size=3),
        st.lists(st.lists(steps_of(shape), max_size=2), min_size=1, max_size=3),
    )
)


def transaction(shape, steps):
    """What one task writes in one transaction, as the handles would make it."""
    made = WriteSet()
    kind, value_type = shape
    writes = made.state("s", kind, value_type, KEEP_ALL)
    for name, *arguments in steps:
        if name == "columns":
            fields, by = map(list, zip(*arguments[0], strict=True))
            if not writes.settled().puts and not writes.settled().deletes:
                assert writes.hold(fields, by)
                continue
            for field, amount in arguments[0]:
                writes.settled().increment(field, amount)
        elif name == "append":
            writes.settled().appends.append(arguments[0])
        elif name == "increment" and shape[1] is ValueType.FLOAT:
            writes.settled().increment(arguments[0], [arguments[1]])
        else:
            getattr(writes.settled(), name)(*arguments)
    return made


def write(shape, steps):
    """The same, ready to be composed."""
    return transaction(shape, steps).settled()


def apply(write_set, model):
    """What the server does with one commit."""
    for state in write_set.states.values():
        for field in state.deletes:
            model.pop(field, None)
        model.update(state.puts)
        for field, deltas in state.increments.items():
            for delta in deltas if isinstance(deltas, list) else [deltas]:
                model[field] = model.get(field, 0) + delta
        if state.appends:
            model[VALUE_FIELD] = model.get(VALUE_FIELD, ()) + tuple(state.appends)
    return model


def start(shape):
    return {} if shape == ITEMS else {"a": 1, "z": 2}


@given(runs)
def test_what_a_task_adds_as_columns_composes_like_what_it_added_up(run):
    shape, transactions = run
    total, expected = WriteSet(), WriteSet()
    for steps in transactions:
        total.then(transaction(shape, steps))
        expected.then(write(shape, steps))
    assert total == expected
    assert [state.reach for state in total.states.values()] >= [state.reach for state in expected.states.values()]


@given(runs)
def test_composed_transactions_equal_the_same_one_by_one(run):
    shape, transactions = run
    one_by_one = start(shape)
    for steps in transactions:
        apply(write(shape, steps), one_by_one)
    composed = compose(write(shape, steps) for steps in transactions)
    assert apply(composed, start(shape)) == one_by_one


@given(runs)
def test_a_field_is_in_one_place_only(run):
    shape, transactions = run
    for state in map(unpacked, compose(write(shape, steps) for steps in transactions).states.values()):
        assert not (state.puts.keys() & state.increments.keys())
        assert not (state.puts.keys() & state.deletes.keys())
        assert not (state.increments.keys() & state.deletes.keys())
        assert len(list(state.fields())) == len(set(state.fields()))


@given(runs)
def test_write_set_survives_the_wire(run):
    shape, transactions = run
    composed = compose(write(shape, steps) for steps in transactions)
    restored = WriteSet.from_wire(unpack(pack(composed.to_wire())))
    assert restored == composed
    assert restored.to_wire() == composed.to_wire()


@given(pairs, st.randoms(use_true_random=False))
def test_tasks_side_by_side_equal_every_interleaving(pair, random):
    shape, left, right = pair
    joined = compose(write(shape, steps) for steps in left)
    try:
        joined.merge(compose(write(shape, steps) for steps in right))
    except OrderMattersError:
        return
    left, right, interleaved = list(left), list(right), start(shape)
    while left or right:
        side = left if left and (not right or random.random() < 0.5) else right
        apply(write(shape, side.pop(0)), interleaved)
    assert apply(joined, start(shape)) == interleaved


def test_composing_leaves_the_parts_as_they_were():
    first, second = (
        write(FLOAT_HASH, [("increment", "a", 0.5)]),
        write(FLOAT_HASH, [("increment", "a", 0.25)]),
    )
    compose([first, second])
    assert unpacked(first.states["s"]).increments == {"a": [0.5]}
    assert unpacked(second.states["s"]).increments == {"a": [0.25]}


@pytest.mark.parametrize("shape", [INT_HASH, FLOAT_HASH, SCORES])
@pytest.mark.parametrize("first", [("increment", "a", 5), ("put", "a", 5), ("delete", "a")])
def test_deletes_of_two_tasks_need_an_order_if_increments_may_have_met_the_other_ones_puts(shape, first):
    left = compose(write(shape, [step]) for step in (first, ("increment", "a", 5), ("delete", "a")))
    right = compose(write(shape, [step]) for step in (("put", "a", 5), ("delete", "a")))
    with pytest.raises(OrderMattersError):
        copy.deepcopy(left).merge(copy.deepcopy(right))
    with pytest.raises(OrderMattersError):
        right.merge(left)


@pytest.mark.parametrize("shape", [INT_HASH, MEMBERS])
def test_deletes_of_two_tasks_need_no_order_if_nothing_was_added(shape):
    left = compose(write(shape, [step]) for step in (("put", "a", 5), ("delete", "a")))
    right = write(shape, [("delete", "a"), ("delete", "b")])
    left.merge(right)
    assert unpacked(left.states["s"]).deletes == {"a": True, "b": True}


def test_reach_is_how_far_any_field_may_have_been_after_any_transaction():
    total = compose(write(INT_HASH, [("increment", "a", by), ("increment", "b", 1)]) for by in (5, -7, 2))
    assert unpacked(total.states["s"]).increments == {"a": 0, "b": 3}
    assert total.states["s"].reach == 14
    other = compose([write(INT_HASH, [("increment", "a", -3)])])
    total.merge(other)
    assert total.states["s"].reach == 17


@given(st.lists(st.lists(st.tuples(st.sampled_from(FIELDS), st.integers(-5, 5)), min_size=1), max_size=4))
def test_columns_reach_at_least_as_far_as_their_sums_and_change_the_same(transactions):
    in_columns = WriteSet()
    for rows in transactions:
        in_columns.then(transaction(INT_HASH, [("columns", rows)]))
    one_by_one = compose(write(INT_HASH, [("increment", *row) for row in rows]) for rows in transactions)
    assert in_columns == one_by_one
    for name, writes in in_columns.states.items():
        assert writes.reach >= one_by_one.states[name].reach


def test_columns_that_may_reach_far_are_not_held():
    writes = StateWrites(*INT_HASH)
    assert writes.hold(["a", "b"], [2**39, -(2**39)])
    assert not writes.hold(["a", "b"], [2**39, -(2**39) - 1])
    assert not writes.hold(["a", "b"], [1, True])


def test_increments_that_a_later_transaction_makes_void_are_remembered_with_their_reach():
    total = compose(
        write(INT_HASH, steps) for steps in ([("increment", "a", 5)], [("put", "a", 1)], [("increment", "a", 1)])
    )
    assert unpacked(total.states["s"]).puts == {"a": 2}
    assert unpacked(total.states["s"]).overwritten == {"a": 5}
    total = compose(
        write(FLOAT_HASH, steps) for steps in ([("increment", "a", 0.5)], [("increment", "a", -1.5)], [("delete", "a")])
    )
    assert unpacked(total.states["s"]).overwritten == {"a": 2.0}


def test_what_one_transaction_itself_makes_void_is_not_remembered():
    total = compose([write(INT_HASH, [("increment", "a", 5), ("put", "a", 1)])])
    assert unpacked(total.states["s"]).overwritten == {}


@pytest.mark.parametrize("shape", [INT_HASH, FLOAT_HASH, SCORES])
def test_a_number_known_to_have_left_its_range_reaches_infinitely_far(shape):
    most = StateWrites(*shape).most()
    steps = ([("put", "a", most)], [("increment", "a", most)], [("put", "a", most - most)])
    assert compose(write(shape, one) for one in steps).states["s"].reach == math.inf
