"""Batches of a Python program: each is one transaction, and a later run takes up where the last one stopped."""

from __future__ import annotations

import datetime as dt
import enum
import math
import pickle
import threading
from collections import Counter
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from coordinator import RunOptions, TransactionalTopologyBuilder
from coordinator.sources.batches import MAX_BATCH_BYTES, Batches
from state import FailedException, HashState, SourceError, TopologyError, UserCodeError
from tests.coordinator.sources.contract import SPEC_BYTES_MAX, SourceContract, SourceWorld
from tests.support.case_names import shown
from tests.support.runs.collecting import Collecting
from tests.support.sources.reading import context, standing

WORDS = [[["a"], ["b"]], [], [["a"]], [["c"], ["c"], ["a"]], [["b"]]]
COUNTS = Counter(row[0] for batch in WORDS for row in batch)


class Count(Collecting):
    """Counts words; raises where it is told to."""

    counts = HashState("counts", value=int)

    def __init__(self, fail=(), shown=str):
        self.fail, self.shown = fail, shown

    def finish_batch(self):
        if self.attempt.txid in self.fail:
            raise RuntimeError("asked for")
        self.counts.increment_many(Counter(self.shown(tup["word"]) for tup in self.tuples))


def topology(make, *, bolt=None, tasks=2):
    builder = TransactionalTopologyBuilder("words", "batches", Batches(make, ["word"]), parallelism=tasks)
    builder.set_committer_bolt("count", bolt or Count(), parallelism=2).fields_grouping("batches", ["word"])
    return builder.build()


def run(cluster, make, **more):
    options = more.pop("options", RunOptions())
    submitted = cluster.submit(topology(make, **more), options=options)
    submitted.run_until_idle()
    return submitted


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_each_batch_is_one_transaction(cluster, tasks):
    submitted = run(cluster, lambda: WORDS, tasks=tasks)
    assert submitted.state("counts") == COUNTS
    assert submitted.statistics.last_txid == len(WORDS)


def test_an_iterable_that_begins_at_a_number_is_given_that_number(cluster):
    begun: list[int] = []

    def batches(start):
        begun.append(start)
        return iter(WORDS[start:])

    with pytest.raises(UserCodeError):
        run(cluster, batches, bolt=Count(fail=[3]), options=RunOptions(max_spout_pending=2))
    submitted = run(cluster, batches)
    assert begun[0] == 0
    assert begun[1] in (3, 4)  # of the window, what was cut is replayed as it is stored
    assert submitted.state("counts") == COUNTS


def test_a_replay_emits_the_stored_batch_and_not_what_the_program_gives_now(cluster):
    def batches(start):
        return iter(WORDS[start:] if start == 0 else [[["z"]]])

    with pytest.raises(UserCodeError):
        run(cluster, batches, bolt=Count(fail=[5]))
    submitted = run(cluster, batches)
    assert submitted.state("counts") == COUNTS + Counter("z")


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ([{"a": math.nan}], "[{'a': nan}]"),
        ({math.nan}, "{nan}"),
        (Decimal("sNaN"), "Decimal('sNaN')"),
        (np.int64(7), "7"),
        (np.uint8(7), "7"),
        ([np.int32(7)], "[7]"),
        (Colour.RED, "3"),
        (7**1000, repr(7**1000)),
    ],
    ids=shown,
)
def test_a_value_that_is_no_text_is_stored_and_emitted_as_bolts_would_emit_it(cluster, value, seen):
    stopped = run(cluster, lambda: [[[value]]], bolt=Count(shown=repr))
    assert stopped.state("counts") == {seen: 1}
    assert run(cluster, lambda: [[[value]]], bolt=Count(shown=repr)).state("counts") == {seen: 1}, "as stored"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.float64(1.5), r"\(1.5\) of type numpy.float64; send value.item\(\)"),
        (np.array([1, 2]), "of type numpy.ndarray; send value.item"),
        (object(), "object; send one of"),
        ("\ud800", "is not valid Unicode"),
        (dt.timedelta(1), r"send value.total_seconds\(\)"),
    ],
    ids=shown,
)
def test_a_value_that_cannot_travel_is_named_by_batch_row_and_field(cluster, value, told):
    with pytest.raises(SourceError, match=rf"^field 'word' of row 2 in batch 2 of topology 'words' holds .*({told})"):
        run(cluster, lambda: [WORDS[0], [["a"], [value]]])


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (WORDS[:2], "has taken 3 batches before, and there are 2 now"),
        ([[["a"], ["b"]], [], [["b"]], [["c"]]], "has taken 3 batches before, and those are others now"),
    ],
)
def test_an_iterable_that_gives_other_batches_than_were_taken_is_refused(cluster, now, told):
    given = list(WORDS[:3])
    run(cluster, lambda: given)
    given[:] = now
    with pytest.raises(SourceError, match=told) as caught:
        run(cluster, lambda: given)
    assert "`txbatch drop words`" in str(caught.value)


def test_none_says_that_there_is_nothing_just_now(cluster):
    submitted = run(cluster, lambda: [None, WORDS[0], None, None, *WORDS[1:], None])
    assert submitted.state("counts") == COUNTS


def test_what_does_not_pickle_stays_on_the_driver(cluster):
    lock = threading.Lock()

    def batches() -> Any:
        with lock:
            return WORDS

    assert run(cluster, batches).state("counts") == COUNTS


def test_a_generator_is_closed_with_the_run(cluster):
    closed: list[bool] = []

    def batches():
        try:
            yield from WORDS
        finally:
            closed.append(True)

    with pytest.raises(UserCodeError):
        run(cluster, batches, bolt=Count(fail=[1]))
    assert closed == [True]


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        ("ab", "batch 1 of topology 'words' is a str; yield a list of rows"),
        ([["a", "b"]], "has the row .* which is not a list of 1 values"),
        ([["x" * (MAX_BATCH_BYTES + 1)]], f"yield batches of at most {MAX_BATCH_BYTES} bytes"),
    ],
)
def test_a_batch_that_cannot_be_one_is_named(cluster, batch, told):
    with pytest.raises(SourceError, match=told):
        run(cluster, lambda: [batch])
    with pytest.raises(SourceError, match="make of topology 'words' returned None: have it return a list of batches"):
        run(cluster, lambda: None)


class NamedRow(NamedTuple):
    n: int
    word: str


class SparkRow(tuple[Any, ...]):
    """Names its values as a row that Spark collected does."""

    __slots__ = ()
    __fields__ = ("n", "word")


@pytest.mark.parametrize("row", [NamedRow(1, "a"), SparkRow([1, "a"])])
def test_a_row_whose_names_are_in_another_order_than_the_fields_is_refused(row):
    def row_of(*fields):
        coordinator = standing(Batches(lambda: [[row]], fields).get_coordinator({}, context()))
        coordinator.resume()
        return coordinator.initialize_transaction(1, None)[1]

    assert row_of("n", "word") == row_of("other", "names") == [[1, "a"]]
    with pytest.raises(SourceError, match=r"names are in another order than the fields \['word', 'n'\]: a row is"):
        row_of("word", "n")


@pytest.mark.parametrize(
    ("raised", "error", "told"),
    [
        (LookupError("the program's own"), UserCodeError, "the program's own"),
        (FailedException("not now"), SourceError, "raised an error after batch 1, which ended it"),
    ],
)
def test_what_a_generator_raises_ends_the_run_and_does_not_pass_for_an_end(cluster, raised, error, told):
    """Even for the moment: what it would have yielded after that was lost, and the run done."""

    def batches():
        yield WORDS[0]
        raise raised

    with pytest.raises(error, match=told):
        run(cluster, batches)


def test_a_program_that_fails_for_the_moment_is_asked_again(cluster):
    asked: list[int] = []

    class Moody:
        def __init__(self):
            self.left = list(WORDS)

        def __iter__(self):
            return self

        def __next__(self):
            asked.append(1)
            if len(asked) % 2:
                raise FailedException("not now")
            if not self.left:
                raise StopIteration
            return self.left.pop(0)

    assert run(cluster, Moody).state("counts") == COUNTS


def test_the_parameters_are_checked():
    with pytest.raises(TopologyError, match="give a function that returns an iterable"):
        Batches(WORDS, ["word"])  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="takes a list of names"):
        Batches(lambda: WORDS, "word")


class BatchesWorld(SourceWorld):
    """A list of rows that a program cuts into batches of three."""

    lost: ClassVar[str] = "has taken . batches before, and (those are others|there are . now)"

    def __init__(self) -> None:
        super().__init__()
        self.there: list[list[Any]] = []

    def add(self, count: int) -> None:
        new = [[f"w{number}"] for number in range(len(self.rows), len(self.rows) + count)]
        self.rows += new
        self.there.append(new)

    def spout(self) -> Batches:
        def batches() -> Any:
            for added in self.there:
                for start in range(0, len(added), 3):
                    yield added[start : start + 3]

        return Batches(batches, ["word"])

    def other_spout(self) -> Batches:
        return Batches(lambda: [[["x"]]], ["word"])

    def take_away(self) -> None:
        self.there[0] = self.there[0][5:]


class TestBatches(SourceContract):
    """The contract of all sources."""

    @pytest.fixture
    def world(self) -> BatchesWorld:
        return BatchesWorld()

    def test_the_spec_is_small_and_works_where_it_arrives(self, cluster, world):
        """It arrives where rows are emitted; batches are made on the driver."""
        world.add(300)
        packed = pickle.dumps(world.spout())
        assert len(packed) < SPEC_BYTES_MAX
        assert pickle.loads(packed).fingerprint() == world.spout().fingerprint()
