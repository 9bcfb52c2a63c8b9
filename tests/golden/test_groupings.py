"""Golden case G8: which tasks a tuple goes to, and that nothing but its content and the seed decides."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.streams.choosers import Chooser
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from state.errors import TopologyError
from tests.support.tasks.custom_groupings import FirstTasks, Lottery
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wirings import RecordingBolt, Sent, attempt, output, wire

pytestmark = pytest.mark.case(id="G8")

FIELDS = ("word", "number")


def choose_all(chooser, rows):
    return [list(chooser.choose(row)) for row in rows]


@pytest.mark.parametrize("grouping", [ShuffleGrouping(), NoneGrouping()], ids=["shuffle", "none"])
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_shuffle_is_exactly_even(grouping, seed):
    chooser = grouping.chooser(6, FIELDS, seed)
    chosen = Counter(target for _ in range(30_000) for target in chooser.choose(["x", 1]))
    assert chosen == dict.fromkeys(range(6), 5_000)


def test_four_emitters_of_six_tuples_give_each_of_six_tasks_four():
    chosen: Counter[int] = Counter()
    for seed in range(4):
        chosen.update(ShuffleGrouping().chooser(6, FIELDS, seed).split([["x", n] for n in range(6)]).keys())
    assert chosen == dict.fromkeys(range(6), 4)


def test_all_reaches_every_task():
    assert choose_all(AllGrouping().chooser(5, FIELDS, 1), [["x", 1]]) == [[0, 1, 2, 3, 4]]


def test_global_reaches_the_lowest_task_only():
    assert choose_all(GlobalGrouping().chooser(5, FIELDS, 1), [["x", 1], ["y", 2]]) == [[0], [0]]


def test_equal_tuples_reach_one_task_by_fields():
    chooser = FieldsGrouping(FIELDS).chooser(6, FIELDS, 1)
    assert len({tuple(chooser.choose(["x", 1])) for _ in range(1_000)}) == 1


def test_only_the_key_fields_count():
    chooser = FieldsGrouping(("word",)).chooser(6, FIELDS, 1)
    assert len({tuple(chooser.choose(["x", number])) for number in range(1_000)}) == 1
    second = FieldsGrouping(("number",)).chooser(6, FIELDS, 1)
    assert len({tuple(second.choose([f"word{n}", 7])) for n in range(1_000)}) == 1


def test_fields_are_found_by_name_and_hashed_in_the_order_of_the_grouping():
    rows = [[f"word{n}", n] for n in range(50)]
    turned = [row[::-1] for row in rows]
    by_word = choose_all(FieldsGrouping(("word", "number")).chooser(1_000, FIELDS, 1), rows)
    assert by_word == choose_all(FieldsGrouping(("word", "number")).chooser(1_000, FIELDS[::-1], 1), turned)
    assert by_word != choose_all(FieldsGrouping(("number", "word")).chooser(1_000, FIELDS, 1), rows)


def test_a_million_keys_over_a_hundred_tasks_reach_all_evenly_enough():
    chooser = FieldsGrouping(("word",)).chooser(100, FIELDS, 1)
    shares = chooser.split([[f"word{n}", 0] for n in range(1_000_000)])
    sizes = [len(share) for share in shares.values()]
    assert sorted(shares) == list(range(100))
    assert min(sizes) > 9_500
    assert max(sizes) < 10_500


def test_byte_strings_go_by_content_and_apart_from_text():
    chooser = FieldsGrouping(("word",)).chooser(2**31, FIELDS, 1)
    assert chooser.choose([b"abc", 0]) == chooser.choose([bytes(bytearray(b"abc")), 0])
    assert chooser.choose([b"abc", 0]) != chooser.choose(["abc", 0])


def test_direct_chooses_nothing_by_itself():
    assert choose_all(DirectGrouping().chooser(3, FIELDS, 1), [["x", 1]]) == [[]]


def test_emit_direct_reaches_the_named_task_only():
    sent = Sent()
    spec = StreamSpec("orders", ("value",), direct=True)
    wiring = wire(RecordingBolt(), targets=(21, 22, 23), streams=output((21, 22, 23), None, spec))
    outbox = attempt_outbox(wiring, attempt(1), sent.carrier)
    collector = AttemptCollector(wiring, attempt(1), outbox)
    collector.emit_direct(22, ["x"], "orders")
    outbox.close()
    assert [(frame.target, frame.kind.name) for frame in sent] == [
        (22, "REGULAR"),
        (21, "COORD"),
        (22, "COORD"),
        (23, "COORD"),
    ]


def test_regular_emit_on_a_direct_stream_and_the_reverse_are_errors():
    direct, regular = StreamSpec("orders", ("value",), direct=True), StreamSpec("default", ("value",))
    streams = output((21,), None, direct, regular)
    wiring = wire(RecordingBolt(), targets=(21,), streams=streams)
    collector = AttemptCollector(wiring, attempt(1), attempt_outbox(wiring, attempt(1), Sent().carrier))
    with pytest.raises(ValueError, match="stream 'orders' of 'bolt' is direct; use emit_direct"):
        collector.emit(["x"], "orders")
    with pytest.raises(ValueError, match="stream 'orders' of 'bolt' is direct; use emit_direct"):
        collector.emit_all([["x"]], "orders")
    with pytest.raises(ValueError, match="component 'bolt' has no direct stream 'default'"):
        collector.emit_direct(21, ["x"])
    with pytest.raises(ValueError, match="task 99 does not subscribe to the direct stream 'orders'"):
        collector.emit_direct(99, ["x"], "orders")
    with pytest.raises(TopologyError, match="the stream is direct and takes only direct_grouping"):
        ShuffleGrouping().check(("value",), direct=True)
    with pytest.raises(TopologyError, match="direct_grouping needs a stream declared with direct=True"):
        DirectGrouping().check(("value",), direct=False)


def test_emit_returns_the_chosen_task_ids():
    wiring = wire(RecordingBolt(), targets=(21, 22), streams=output((21, 22), AllGrouping()))
    collector = AttemptCollector(wiring, attempt(1), attempt_outbox(wiring, attempt(1), Sent().carrier))
    assert isinstance(collector, AttemptCollector)
    assert collector.emit(["x"]) == [21, 22]


keys = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.binary(max_size=4), st.text(max_size=5)
)
groupings: st.SearchStrategy[Grouping] = st.sampled_from(
    [
        ShuffleGrouping(),
        NoneGrouping(),
        AllGrouping(),
        GlobalGrouping(),
        FieldsGrouping(("word",)),
        FieldsGrouping(("number",)),
        FieldsGrouping(("number", "word")),
        PartialKeyGrouping(("word",)),
        PartialKeyGrouping(("number", "word")),
        LocalOrShuffleGrouping(),
        FirstTasks(1),
        Lottery(),
    ]
)


@given(
    groupings,
    st.integers(1, 7),
    st.integers(0, 2**64 - 1),
    st.lists(st.lists(st.tuples(keys, keys).map(list), max_size=9), max_size=4),
)
def test_split_equals_choosing_row_by_row(grouping, target_count, seed, portions):
    one_by_one, at_once = (grouping.chooser(target_count, FIELDS, seed) for _ in range(2))
    for rows in portions:
        assert at_once.split(rows) == Chooser.split(one_by_one, rows)


@given(groupings, st.integers(1, 7), st.integers(0, 2**64 - 1), st.lists(st.tuples(keys, keys).map(list)))
def test_the_same_seed_chooses_the_same_tasks_in_range(grouping, target_count, seed, rows):
    shipped = pickle.loads(pickle.dumps(grouping))
    first, second = (choose_all(made.chooser(target_count, FIELDS, seed), rows) for made in (grouping, shipped))
    assert first == second
    assert all(0 <= target < target_count for targets in first for target in targets)


def test_the_order_of_a_shuffle_depends_on_the_seed():
    orders = {tuple(ShuffleGrouping().chooser(6, FIELDS, seed).choose([])) for seed in range(50)}
    assert len(orders) == 6


@pytest.mark.parametrize("grouping", [FieldsGrouping(("word",)), PartialKeyGrouping(("word",))])
def test_a_key_in_a_lone_surrogate_is_sent_somewhere(grouping):
    assert len(grouping.chooser(4, FIELDS, 1).split([["\ud800", 1]])) == 1


CHOICES_IN_ANOTHER_PROCESS = """
from coordinated_bolt.streams.groupings import FieldsGrouping, PartialKeyGrouping, ShuffleGrouping
rows = [[f"word{n}", n] for n in range(200)]
rows += [[b"bytes", None], [("a", 1), {"k": 2}], [frozenset({"a", "b", "c"}), 1.5], [{"b": {1, "x"}, "a": 2.0}, 1]]
both = ("number", "word")
for grouping in (ShuffleGrouping(), FieldsGrouping(both), PartialKeyGrouping(("word",)), PartialKeyGrouping(both)):
    chooser = grouping.chooser(7, ("word", "number"), 12345)
    print([list(chooser.choose(row)) for row in rows])
"""


def test_every_process_chooses_the_same_whatever_its_hash_seed():
    answers = set()
    for hash_seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", CHOICES_IN_ANOTHER_PROCESS]
        answers.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert len(answers) == 1
