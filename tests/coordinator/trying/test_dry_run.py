"""A dry run: the first batches through the whole topology, in this process, and nothing committed."""

from __future__ import annotations

from decimal import Decimal

import pytest

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import FixedBatchesSpout, TransactionalTopologyBuilder
from coordinator.spouts.committing import ICommitterTransactionalSpout
from coordinator.trying.dry_run import DryChange, dry_run
from examples.word_count import CountWords, StoreCounts
from state import HashState, ListState, SetState, ValueState
from state.errors import FailedException, ReplayLimitError, TopologyError, UserCodeError
from tests.support.topologies.components import Pass
from tests.support.topologies.example_topologies import EXAMPLES

LINES = ([["to be"], ["or not"]], [["to be"]], [["that"]])


def topology(*bolts, batches=LINES):
    """lines -> each bolt in turn, a task each."""
    builder = TransactionalTopologyBuilder("dry", "lines", FixedBatchesSpout(batches, fields=["line"]))
    heard = "lines"
    for name, bolt in bolts:
        builder.set_bolt(name, bolt).global_grouping(heard)
        heard = name
    return builder.build()


def word_count(store=None):
    return topology(("count", CountWords()), ("store", store or StoreCounts()))


class Raises(BaseBatchBolt):
    output_fields = ("word",)

    def execute(self, tup):
        if "that" in tup["line"]:
            raise ValueError("no such word")
        self.collector.emit([tup["line"]])


class Fails(BaseBatchBolt):
    def execute(self, tup):
        raise FailedException("later")


class Refuses(BaseBatchBolt):
    def execute(self, tup):
        self.collector.dead_letter(tup, f"refused {tup['line']}")


class RunningTotal(BaseBatchBolt, ICommitter):
    """Reads what earlier batches have written."""

    seen = HashState("seen", value=int)
    last = ValueState("last", value=str)
    words = SetState("words")
    log = ListState("log", value=str)

    def prepare(self, conf, context, collector, attempt):
        self.tuples = []

    def execute(self, tup):
        self.tuples.append(tup["word"])

    def finish_batch(self):
        self.seen.put("batches", (self.seen.get("batches") or 0) + 1)
        for word in sorted(self.tuples):
            self.words.add(word)
        self.words.remove("gone")
        self.last.put(self.tuples[-1])
        self.log.append(self.tuples[0])


class CountsByLetter(BaseBatchBolt, ICommitter):
    """Has a state with parts, written in the order in which words arrive."""

    by_letter = HashState("by_letter", value=int).per("letter")

    def prepare(self, conf, context, collector, attempt):
        self.words = []

    def execute(self, tup):
        self.words.append(tup["word"])

    def finish_batch(self):
        for word in self.words:
            self.by_letter[word[0]].increment(word)


class Mails(StoreCounts):
    external_effects = True
    sent: list[str] = []

    def finish_batch(self):
        self.sent.append("mail")


def emitted(batch):
    return {component.component_id: [values for _, values in component.emitted] for component in batch.components}


def test_it_shows_what_every_component_emits_and_what_would_be_written():
    (batch,) = dry_run(word_count())
    assert batch.txid == 1
    assert emitted(batch) == {
        "lines": [["to be"], ["or not"]],
        "count": [["to", 1], ["be", 1], ["or", 1], ["not", 1]],
        "store": [],
    }
    (writes,) = batch.writes or ()
    assert (writes.component_id, writes.key, writes.redis_type) == ("store", "{dry}:counts", "hash")
    assert sorted(writes.changes, key=repr) == [DryChange("increment", word, 1) for word in ("be", "not", "or", "to")]


class Prices(BaseBatchBolt, ICommitter):
    sums = HashState("sums", value=Decimal, scale=2)
    shares = HashState("shares", value=float)
    notes = HashState("notes", value="json").per("word")

    def execute(self, tup):
        """Is the same for every word."""

    def finish_batch(self):
        self.sums.put("kept", Decimal("12.34"))
        for _ in range(2):
            self.sums.increment("all", Decimal("0.35"))
            self.shares.increment("all", 0.5)
        self.notes["be"].put("is", [1, {"a": None}])


def test_values_are_shown_as_given_and_each_field_once_whichever_tasks_change_it():
    builder = TransactionalTopologyBuilder("dry", "lines", FixedBatchesSpout([[["to be"]]], ["line"]))
    builder.set_bolt("prices", Prices(), parallelism=2).shuffle_grouping("lines")
    (batch,) = dry_run(builder.build())
    changes = {writes.key: set(writes.changes) for writes in batch.writes or () if "notes" not in writes.key}
    assert changes == {
        "{dry}:sums": {DryChange("put", "kept", Decimal("12.34")), DryChange("increment", "all", Decimal("1.40"))},
        "{dry}:shares": {DryChange("increment", "all", 2.0)},
    }
    (notes,) = [writes for writes in batch.writes or () if "notes" in writes.key]
    assert notes.changes == (DryChange("put", "is", [1, {"a": None}]),)


def test_parts_of_a_state_are_shown_in_order():
    (batch,) = dry_run(topology(("count", CountWords()), ("store", CountsByLetter())))
    assert [writes.key for writes in batch.writes or ()] == [f"{{dry}}:by_letter:{letter}" for letter in "bnot"]


def test_later_batches_read_what_earlier_ones_wrote_and_the_end_of_the_input_ends_it():
    batches = list(dry_run(topology(("count", CountWords()), ("store", RunningTotal())), batches=9))
    assert [batch.txid for batch in batches] == [1, 2, 3]
    seen = [change for batch in batches for w in batch.writes or () for change in w.changes if w.key == "{dry}:seen"]
    assert seen == [DryChange("put", "batches", number) for number in (1, 2, 3)]
    last = {writes.key: writes.changes for writes in batches[2].writes or ()}
    assert last == {
        "{dry}:seen": (DryChange("put", "batches", 3),),
        "{dry}:words": (DryChange("delete", "gone", None), DryChange("put", "that", True)),
        "{dry}:last": (DryChange("put", "", "that"),),
        "{dry}:log": (DryChange("append", "", "that"),),
    }


def test_an_error_of_user_code_follows_what_was_emitted_before_it():
    batches = dry_run(topology(("pass", Raises())), batches=3)
    shown = [next(batches) for _ in range(3)]
    assert emitted(shown[2]) == {"lines": [["that"]], "pass": []}
    assert shown[2].writes is None
    with pytest.raises(UserCodeError, match=r"(?s)pass.*that.*no such word"):
        next(batches)


def test_a_batch_that_fails_on_every_attempt_says_so():
    batches = dry_run(topology(("pass", Fails())))
    assert next(batches).writes is None
    with pytest.raises(ReplayLimitError, match="later"):
        next(batches)


def test_dead_letters_are_shown_with_their_batch():
    first, second = dry_run(topology(("pass", Refuses())), batches=2)
    assert [letter.reason for letter in first.dead_letters] == ["refused to be", "refused or not"]
    assert [letter.reason for letter in second.dead_letters] == ["refused to be"]


def test_external_effects_do_not_happen():
    batches = list(dry_run(word_count(Mails()), batches=2))
    assert [(batch.txid, batch.writes) for batch in batches] == [(1, None), (2, None)]
    assert emitted(batches[1])["count"] == [["to", 1], ["be", 1]]
    assert Mails.sent == []


def test_an_input_without_batches_and_a_topology_without_committers_are_fine():
    assert list(dry_run(topology(("pass", Pass()), batches=()))) == []
    (batch,) = dry_run(topology(("count", CountWords())))
    assert batch.writes == ()


class ToldSpout(FixedBatchesSpout, ICommitterTransactionalSpout):
    def get_committer(self, conf, context):
        raise AssertionError("a dry run has nothing to tell")


def test_a_spout_is_not_told_that_anything_was_committed():
    builder = TransactionalTopologyBuilder("dry", "lines", ToldSpout(LINES, fields=["line"]))
    builder.set_bolt("count", CountWords()).global_grouping("lines")
    assert [batch.txid for batch in dry_run(builder.build(), batches=2)] == [1, 2]


@pytest.mark.parametrize(
    ("name", "said"),
    [("plain_word_count", "is a plain one: its bolts write where"), ("streaming_bridge", "which only Spark can read")],
)
def test_what_cannot_be_run_dry_says_why(name, said):
    with pytest.raises(TopologyError, match=said):
        next(dry_run(EXAMPLES[name]()))
