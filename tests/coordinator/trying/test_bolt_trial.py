"""One bolt alone: what it emits, what it writes, what it raises."""

from __future__ import annotations

import pytest

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinator.trying.bolt_trial import run_bolt
from examples.word_count import CountWords, StoreCounts
from state.errors import FailedException, ReplayLimitError, TopologyError, UserCodeError


class Upper(BaseBasicBolt):
    output_fields = ("word",)

    def execute(self, tup, collector):
        if tup["word"] == "later":
            raise FailedException("not now")
        collector.emit([tup["word"].upper()])


def test_a_batch_bolt_emits_by_batch_and_a_basic_bolt_is_tried_the_same_way():
    trial = run_bolt(CountWords(), [["to be"], ["to"]], [], [["be"]], fields=["line"])
    found = [sorted(values for _, values in batch) for batch in trial.batches]
    assert found == [[["be", 1], ["to", 2]], [], [["be", 1]]]
    assert trial.emitted() == [["to", 2], ["be", 1], ["be", 1]]
    assert run_bolt(Upper(), [["a"], ["b"]], fields=["word"]).emitted() == [["A"], ["B"]]


def test_a_committer_leaves_what_it_wrote():
    trial = run_bolt(StoreCounts(), [["to", 2]], [["to", 1]], fields=["word", "count"])
    assert (trial.states, trial.emitted()) == ({"counts": {"to": 3}}, [])


@pytest.mark.parametrize(
    ("batches", "error", "said"),
    [
        ([[[7]]], UserCodeError, r"at tuple Tuple\(input/default: word=7\) raised:\n(.*\n)*AttributeError"),
        ([[["later"]]], ReplayLimitError, "not now"),
        ([], TopologyError, "run_bolt got no batch"),
    ],
    ids=["it raises", "it always fails its batch", "no batch"],
)
def test_what_ends_a_trial_is_raised(batches: list[list[list[object]]], error: type[Exception], said: str):
    with pytest.raises(error, match=said):
        run_bolt(Upper(), *batches, fields=["word"])
