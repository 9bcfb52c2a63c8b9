"""Golden case G5: a master cuts each word into sub-batches on two streams, and a join puts them together."""

from __future__ import annotations

import pytest

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_topology_builder import TopologyBuilder
from tests.support.topologies.batch_components import (
    TIMEOUT_S,
    Diary,
    Outside,
    Recorded,
    Requests,
    assert_nothing_is_left,
    cluster,
)

WORDS = {"first": "ccacccaa", "second": "bbb", "third": "ba"}
LENGTHS = [("first", [2, 6, 7]), ("second", []), ("third", [1])]
STAGES = ("master", "lengths", "join")


class Split(BaseBasicBolt):
    """One tuple for each word: a plain bolt before the sub-topology."""

    output_fields = ("request", "word")

    def execute(self, tup, collector):
        for word in tup["payload"].split():
            collector.emit([tup["request"], word])


class Prefixes(Recorded):
    """Emits the prefix before each a on stream multi, and the word on stream single."""

    def declare_output_fields(self, declarer):
        declarer.declare_stream("multi", ("request", "prefix"))
        declarer.declare_stream("single", ("request", "word"))

    def work(self, tup):
        request, word = tup.values
        for place, letter in enumerate(word):
            if letter == "a":
                self.collector.emit([request, word[:place]], "multi")
        self.collector.emit([request, word], "single")


class Length(BaseBasicBolt):
    """A basic bolt inside a sub-topology: neither told nor asked about batches."""

    output_fields = ("request", "length")

    def execute(self, tup, collector):
        collector.emit([tup["request"], len(tup["prefix"])])


class Join(Recorded):
    """The lengths of its request, once it knows that all have come."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.word, self.lengths = None, []

    def work(self, tup):
        if tup.stream_id == "single":
            self.word = tup["word"]
        else:
            self.lengths.append(tup["length"])

    def finish(self):
        if self.word is not None:
            self.collector.emit([self.request, sorted(self.lengths)])


def words_builder(words, *, failing=None, replay=False, master_tasks=1):
    builder = TopologyBuilder("test")
    builder.set_message_timeout_s(TIMEOUT_S)
    builder.set_spout("spout", Requests(words, replay=replay))
    batches = BatchSubtopologyBuilder("master", Prefixes(), master_tasks)
    builder.set_bolt("split", Split()).shuffle_grouping("spout")
    batches.master_declarer.shuffle_grouping("split")
    batches.set_bolt("lengths", Length(), 3).shuffle_grouping("master", "multi")
    join = batches.set_bolt("join", Join(failing), 3)
    join.fields_grouping("master", ["request"], "single").fields_grouping("lengths", ["request"])
    batches.extend_topology(builder)
    return builder


def joined(run):
    return sorted(tuple(values) for _, values in run.emitted("join"))


@pytest.mark.case(id="G5")
@pytest.mark.parametrize("capacity", [1, 2, 1024])
@pytest.mark.parametrize("seed", range(20))
def test_the_lengths_of_all_prefixes_of_a_word_are_joined_with_it(seed, capacity):
    with cluster(seed=seed, receive_capacity=capacity) as local:
        run = local.submit(words_builder(WORDS, master_tasks=1 + seed % 3).build())
        run.run_until_idle()
        assert joined(run) == LENGTHS
        assert sorted(run.acked("spout")) == sorted(WORDS)
        assert_nothing_is_left(run, STAGES)


@pytest.mark.case(id="P-15")
@pytest.mark.parametrize("seed", range(20))
def test_several_sub_batches_of_one_request_share_no_entry(seed):
    """Each word of a sentence is a batch of its own, at once and at one join task; some fail, so all are replayed."""
    sentences = {number: " ".join(WORDS.values()) for number in range(4)}
    failing = {f"execute:{number}": number for number in sentences}
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        run = local.submit(words_builder(sentences, failing=failing, replay=True, master_tasks=2).build())
        run.run_until_idle()
        assert sorted(run.acked("spout")) == sorted(sentences)
        found = {(number, tuple(lengths)) for number, lengths in joined(run)}
        assert found == {(number, lengths) for number in sentences for lengths in [(2, 6, 7), (), (1,)]}
        batches = [(task, batch) for _, name, task, batch, *_ in Diary.of("prepare") if name == "master"]
        assert len({batch.attempt_id for _, batch in batches}) == len(batches)
        assert len(batches) == 3 * (len(sentences) + len(run.failed("spout")))
        for task in {task for task, _ in batches}:
            txids = [batch.txid for of, batch in batches if of == task]
            assert txids == list(range(1, len(txids) + 1))
        run.advance_time(3 * TIMEOUT_S)
        run.run_until_idle()
        assert_nothing_is_left(run, STAGES)


@pytest.mark.parametrize("seed", range(20))
def test_a_sub_topology_may_feed_another(seed):
    """Each joined request begins a batch of a second master; it is part of the tree of the first."""
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        builder = words_builder(WORDS)
        second = BatchSubtopologyBuilder("second", Passing(), 2)
        second.master_declarer.shuffle_grouping("join")
        second.set_bolt("last", Passing(), 2).shuffle_grouping("second")
        second.extend_topology(builder)
        builder.set_bolt("outside", Outside()).global_grouping("last")
        run = local.submit(builder.build())
        run.run_until_idle()
        assert sorted(entry[1:] for entry in Diary.of("got")) == LENGTHS
        assert sorted(run.acked("spout")) == sorted(WORDS)
        for place, entry in enumerate(Diary.entries):
            if entry[0] == "acked":
                assert entry[1] in {got[1] for got in Diary.entries[:place] if got[0] == "got"}
        assert_nothing_is_left(run, (*STAGES, "second", "last"))


class Passing(Recorded):
    """Passes every tuple on."""

    def work(self, tup):
        self.collector.emit(tup.values)
