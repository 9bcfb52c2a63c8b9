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
    assert [sorted(values for _, values in batch) for batch in trial.batches] == [
        [["be", 1], ["to", 2]],
        [],
        [["be", 1]],
    ]
    assert trial.emitted() == [["to", 2], ["be", 1], ["be", 1]]
    assert run_bolt(Upper(), [["a"], ["b"]], fields=["word"]).emitted() == [["A"], ["B"]]


def test_a_committer_leaves_what_it_wrote():
    trial = run_bolt(StoreCounts(), [["to", 2]], [["to", 1]], fields=["word", "count"])
    assert (trial.states, trial.emitted()) == ({"counts": {"to": 3}}, [])


def test_what_the_bolt_raises_is_raised_with_its_tuple():
    with pytest.raises(UserCodeError, match=r"at tuple Tuple\(input/default: word=7\) raised:\n(.*\n)*AttributeError"):
        run_bolt(Upper(), [[7]], fields=["word"])


def test_a_bolt_that_always_fails_its_batch_is_given_up():
    with pytest.raises(ReplayLimitError, match="not now"):
        run_bolt(Upper(), [["later"]], fields=["word"])


def test_no_batch_is_refused():
    with pytest.raises(TopologyError, match="run_bolt got no batch"):
        run_bolt(Upper(), fields=["word"])
