"""The rest of golden case G8: partial key, local or shuffle, and custom groupings."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import (
    CustomGrouping,
    FieldsGrouping,
    LocalOrShuffleGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from coordinated_bolt.streams.routing import Router
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.topology.building.topology_description import described
from state.errors import TopologyError
from tests.support.tasks.custom_groupings import FirstTasks, Lottery
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wirings import RecordingBolt, Sent, attempt, output, wire
from tests.support.topologies.components import Lines

FIELDS = ("word", "number")


@dataclass
class Answering(CustomGrouping):
    """Answers anything."""

    answer: Any

    def choose_tasks(self, values: tuple[Any, ...]) -> Sequence[int]:
        return self.answer  # type: ignore[no-any-return]


@dataclass
class ByRule(CustomGrouping):
    """Chooses by a function, whose repr holds its address."""

    rule: Callable[[Any], int]

    def choose_tasks(self, values: tuple[Any, ...]) -> Sequence[int]:
        return [self.rule(values[0])]


def choose_all(chooser, rows):
    return [list(chooser.choose(row)) for row in rows]


def choices(grouping, rows, *, target_count=6, seed=1):
    return choose_all(grouping.chooser(target_count, FIELDS, seed), rows)


# Partial key


@pytest.mark.case(id="G8")
def test_a_partial_key_goes_to_one_task_to_another_and_to_the_first_again():
    (one,), (two,), (three,) = choices(PartialKeyGrouping(("word",)), [["key1", 1]] * 3)
    assert one != two
    assert three == one


@pytest.mark.case(id="G8")
@pytest.mark.parametrize("target_count", [2, 3, 6, 10])
def test_no_key_has_the_same_candidate_twice(target_count):
    for number in range(500):
        rows = [[f"word{number}", n] for n in range(8)]
        chosen = Counter(t for (t,) in choices(PartialKeyGrouping(("word",)), rows, target_count=target_count))
        assert sorted(chosen.values()) == [4, 4]


def test_only_the_key_fields_of_a_partial_key_count():
    rows = [[f"word{n}", 7] for n in range(100)]
    assert len({t for (t,) in choices(PartialKeyGrouping(("number",)), rows, target_count=50)}) == 2
    assert len({t for (t,) in choices(PartialKeyGrouping(("word",)), rows, target_count=50)}) > 40


def test_every_pair_of_tasks_is_some_keys_candidates():
    rows = [[f"word{n}", n] for n in range(2_000)]
    pairs = Counter(
        frozenset(t for (t,) in choices(PartialKeyGrouping(("word",)), [row] * 2, target_count=5)) for row in rows
    )
    assert len(pairs) == 10
    assert all(140 < count < 260 for count in pairs.values())


def skewed_rows(count):
    """Words of which the most frequent one makes up a quarter, as in Zipf's law."""
    words = [f"word{rank}" for rank in range(1_000)]
    weights = [1 / (rank + 1) ** 1.2 for rank in range(1_000)]
    drawn = random.Random(11).choices(words, weights, k=count)
    return [[word, 0] for word in drawn]


def heaviest_over_mean(loads, target_count):
    return max(loads.values()) * target_count / sum(loads.values())


def test_partial_keys_spread_a_skewed_load_evenly_where_fields_do_not():
    by_word, partial = FieldsGrouping(("word",)), PartialKeyGrouping(("word",))
    rows = skewed_rows(50_000)
    loads = {grouping: Counter(t for (t,) in choices(grouping, rows)) for grouping in (by_word, partial)}
    assert heaviest_over_mean(loads[by_word], 6) > 1.5
    assert heaviest_over_mean(loads[partial], 6) < 1.05


def test_partial_keys_spread_a_skewed_load_over_many_attempts_too():
    rows = skewed_rows(50_000)
    loads: Counter[int] = Counter()
    for seed, start in enumerate(range(0, len(rows), 500)):
        loads.update(t for (t,) in choices(PartialKeyGrouping(("word",)), rows[start : start + 500], seed=seed))
    assert heaviest_over_mean(loads, 6) < 1.1


# Local or shuffle


def test_local_or_shuffle_is_shuffle_where_no_task_is_local():
    rows = [["x", n] for n in range(20)]
    assert choices(LocalOrShuffleGrouping(), rows, seed=9) == choices(ShuffleGrouping(), rows, seed=9)


def test_local_tasks_share_evenly_what_is_emitted_beside_them():
    chooser = LocalOrShuffleGrouping((4, 1, 4)).chooser(6, FIELDS, 1)
    assert Counter(t for (t,) in choose_all(chooser, [["x", n] for n in range(600)])) == {1: 300, 4: 300}


@pytest.mark.parametrize("position", [-1, 6])
def test_a_local_position_that_is_no_target_is_refused(position):
    with pytest.raises(ValueError, match="are not all from 0 to 5"):
        LocalOrShuffleGrouping((0, position)).chooser(6, FIELDS, 1)


# Custom


@pytest.mark.case(id="G8")
@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_a_custom_grouping_sends_a_copy_to_each_of_the_first_tasks(count):
    assert choices(FirstTasks(count), [["x", 1]]) == [list(range(count))]


@pytest.mark.case(id="G8")
def test_emit_returns_the_tasks_a_custom_grouping_chose_and_sends_to_no_other():
    sent = Sent()
    wiring = wire(RecordingBolt(), targets=(21, 22, 23), streams=output((21, 22, 23), FirstTasks(2)))
    outbox = attempt_outbox(wiring, attempt(1), sent.carrier)
    assert AttemptCollector(wiring, attempt(1), outbox).emit(["x"]) == [21, 22]
    outbox.close()
    assert [frame.target for frame in sent if frame.kind.name == "REGULAR"] == [21, 22]


def test_a_position_named_twice_is_sent_two_copies():
    chooser = Answering([2, 2]).chooser(3, FIELDS, 1)
    assert chooser.split([["x", 1]]) == {2: [["x", 1], ["x", 1]]}


@pytest.mark.parametrize("answer", [[3], [-1], [True], [1.0], ["1"], "12", b"\x01", None, 1, {1}, [[1]]])
def test_an_answer_that_is_no_list_of_positions_is_refused(answer):
    with pytest.raises(ValueError, match=r"choose_tasks of Answering\(.*\) returned .*integer from 0 to 2"):
        Answering(answer).chooser(3, FIELDS, 1).choose(["x", 1])


def test_a_custom_grouping_is_told_fields_targets_and_seed():
    class Asking(CustomGrouping):
        def choose_tasks(self, values):
            assert values == ("x", 1)
            return [self.context.fields.index("number"), self.context.target_count - 1, self.context.seed]

    assert choices(Asking(), [["x", 1]], seed=3) == [[1, 5, 3]]


def test_a_custom_grouping_cannot_change_what_is_sent():
    class Meddling(CustomGrouping):
        def choose_tasks(self, values):
            values[0] = "y"

    with pytest.raises(TypeError, match="does not support item assignment"):
        choices(Meddling(), [["x", 1]])


@dataclass(frozen=True)
class ByLength(CustomGrouping):
    """Written as the groupings of the house are: frozen."""

    offset: int = 0

    def choose_tasks(self, values):
        return [(len(values[0]) + self.offset) % self.context.target_count]


def test_a_frozen_dataclass_may_be_a_custom_grouping():
    assert choices(ByLength(1), [["to", 1], ["four", 1]]) == [[3], [5]]


def test_a_custom_grouping_is_copied_when_its_stream_is_first_emitted_on():
    prepared = []

    class Prepared(FirstTasks):
        def prepare(self, context):
            super().prepare(context)
            prepared.append(context.seed)

        def __deepcopy__(self, memo):
            return Prepared(self.count)

    router = Router("emitter", output([7, 8], Prepared(1), StreamSpec("default", FIELDS)), 5)
    assert prepared == []
    router.route(["x", 1], "default")
    router.route(["y", 1], "default")
    assert prepared == [5]


def test_the_repr_of_a_custom_grouping_says_the_same_in_every_run():
    assert repr(FirstTasks(2)) == "FirstTasks()"
    assert repr(Lottery(3)) == "Lottery(draws=3)"


# All of them

values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.binary(max_size=4), st.text(max_size=5)
)
rows_of_values = st.lists(st.tuples(values, values).map(list), max_size=20)


@given(st.integers(2, 7), st.integers(0, 2**64), rows_of_values)
def test_a_partial_key_takes_the_less_used_of_its_two_candidates(target_count, seed, rows):
    chooser = PartialKeyGrouping(("word",)).chooser(target_count, FIELDS, seed)
    used = [0] * target_count
    for row in rows:
        candidates = {t for (t,) in choices(PartialKeyGrouping(("word",)), [row] * 2, target_count=target_count)}
        (chosen,) = chooser.choose(row)
        assert chosen in candidates
        assert used[chosen] == min(used[candidate] for candidate in candidates)
        used[chosen] += 1


# In a topology


class Words(Lines):
    output_fields = FIELDS

    def declare_output_fields(self, declarer):
        super().declare_output_fields(declarer)
        declarer.declare_stream("orders", FIELDS, direct=True)


def building(subscribe):
    builder = TransactionalTopologyBuilder("words", "words", Words())
    subscribe(builder.set_bolt("bolt", RecordingBolt(), parallelism=3))
    return builder


@pytest.mark.parametrize(
    ("subscribe", "grouping"),
    [
        (lambda bolt: bolt.partial_key_grouping("words", ["word"]), PartialKeyGrouping(("word",))),
        (lambda bolt: bolt.local_or_shuffle_grouping("words"), LocalOrShuffleGrouping()),
        (lambda bolt: bolt.custom_grouping("words", Lottery(3)), Lottery(3)),
        (lambda bolt: bolt.custom_grouping("words", ByRule(len)), ByRule(len)),
    ],
)
def test_a_bolt_subscribes_with_the_grouping_it_names(subscribe, grouping):
    topology = building(subscribe).build()
    (subscription,) = topology.component("bolt").subscriptions
    assert (subscription.upstream_id, subscription.stream_id, subscription.grouping) == ("words", "default", grouping)
    assert described(topology) == described(building(subscribe).build())


@pytest.mark.parametrize(
    ("subscribe", "reason"),
    [
        (lambda bolt: bolt.partial_key_grouping("words", ["letter"]), "field 'letter' does not exist; the stream has"),
        (lambda bolt: bolt.partial_key_grouping("words", []), "partial_key_grouping needs at least one field"),
        (lambda bolt: bolt.partial_key_grouping("words", "word"), r"partial_key_grouping takes a list .* \['word'\]"),
        (lambda bolt: bolt.partial_key_grouping("words", ["word"], "orders"), "takes only direct_grouping"),
        (lambda bolt: bolt.local_or_shuffle_grouping("words", "orders"), "takes only direct_grouping"),
        (lambda bolt: bolt.custom_grouping("words", FirstTasks(1), "orders"), "takes only direct_grouping"),
        (lambda bolt: bolt.custom_grouping("words", ByRule(lambda word: 0)), "contains a memory address"),
        (lambda bolt: bolt.custom_grouping("words", FirstTasks), "the class FirstTasks, not an instance of it"),
        (lambda bolt: bolt.custom_grouping("words", ShuffleGrouping()), "give an instance of CustomGrouping"),
    ],
)
def test_a_grouping_that_does_not_fit_is_refused_with_the_reason(subscribe, reason):
    with pytest.raises(TopologyError, match=reason):
        building(subscribe).build()


def test_a_stream_of_a_custom_grouping_can_be_shipped():
    stream = output((21, 22), Lottery(), StreamSpec("default", FIELDS))["default"]
    shipped = pickle.loads(pickle.dumps(stream))
    assert shipped == stream
