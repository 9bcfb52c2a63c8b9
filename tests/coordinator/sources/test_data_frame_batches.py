"""How a DataFrame's catalogue becomes transactions, decided without Spark."""

from __future__ import annotations

import datetime as dt
import pickle

import pytest

from coordinator import FormerInput, LocalCluster, TransactionalTopologyBuilder
from coordinator.sources.data_frame_batches import (
    Catalogue,
    ColumnRanges,
    DataFrameBatches,
    DataFrameCoordinator,
    InputFiles,
    Unit,
    Versions,
)
from state import FailedException, SourceError, TopologyError
from tests.support.approved import approved, refusals, wrongly
from tests.support.sources.reading import standing
from tests.support.topologies.components import Sink

KIND = "by column 'id'"


class FixedReader:
    """Answers with ten rows in each range of ten numbers, as far as there are any.

    Args:
        ranges: first numbers.
        behind: rows below the position, unless they are what the ranges make them.
    """

    def __init__(self, *ranges: int, behind: int | None = None) -> None:
        self.ranges, self.behind = ranges, behind
        self.asked: list[int | str | None] = []

    def catalogue(self, after):
        self.asked.append(after)
        units = [unit(first, 10 * (number + 1)) for number, first in enumerate(self.ranges)]
        done = [each for each in units if after is not None and each.last <= after]
        behind = 10 * len(done) if self.behind is None else self.behind
        return Catalogue((behind, 0), tuple(units[len(done) :]))


def unit(first: int, through: int, kind: str = KIND) -> Unit:
    return Unit(kind, first, first + 9, 10, (through, 0))


def coordinator(reader: FixedReader, last: Unit | None = None, last_txid: int = 0) -> DataFrameCoordinator:
    made = DataFrameCoordinator(reader, KIND, "orders")
    standing(made, last_txid, None if last is None else last.to_plain()).resume()
    return made


def cut_all(source: DataFrameCoordinator, previous: Unit | None = None) -> list[Unit]:
    found: list[Unit] = []
    plain = None if previous is None else previous.to_plain()
    while not standing(source, 1, plain).is_exhausted():
        plain = source.initialize_transaction(len(found) + 1, plain)
        found.append(Unit.from_plain(plain, "orders"))
    return found


def former(last: Unit) -> FormerInput:
    return FormerInput(fingerprint="", is_same=True, last_txid=2, last=last.to_plain())


def test_each_unit_of_the_catalogue_is_one_transaction():
    reader = FixedReader(0, 20, 30)
    assert cut_all(coordinator(reader)) == [unit(0, 10), unit(20, 20), unit(30, 30)]
    assert reader.asked == [None]


def test_a_later_run_cuts_what_follows_its_position():
    reader = FixedReader(0, 20, 30, 50)
    last = unit(20, 20)
    assert cut_all(coordinator(reader, last, 2), last) == [unit(30, 30), unit(50, 40)]
    assert reader.asked == [29]


def test_nothing_is_cut_after_the_end():
    source = coordinator(FixedReader(0))
    last = source.initialize_transaction(1, None)
    with pytest.raises(FailedException, match="txid 2 cannot be cut"):
        source.initialize_transaction(2, last)


@pytest.mark.parametrize("now", [10, 13, 7])
def test_rows_that_joined_or_went_below_the_position_are_named(now):
    source = DataFrameCoordinator(FixedReader(0, 20, behind=now), KIND, "orders")
    changed = source.compare(former(unit(0, 10))).changed
    told = [each.startswith(f"up to 9 10 rows were read, and {now} are there now") for each in changed]
    assert told == ([] if now == 10 else [True])


def test_the_catalogue_is_asked_for_once_a_run():
    reader = FixedReader(0, 20)
    source = DataFrameCoordinator(reader, KIND, "orders")
    source.compare(former(unit(0, 10)))
    standing(source, 1, unit(0, 10).to_plain()).resume()
    assert reader.asked == [9]


def test_progress_counts_rows():
    source = coordinator(FixedReader(0, 20, 30, 50))
    assert standing(source).progress() == 0.0
    assert standing(source, 1, unit(20, 20).to_plain()).progress() == 0.5


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        *((plain, "was run with another kind of spout before") for plain in ([["a.txt", 0]], 7, [KIND, 1, 2])),
        (unit(0, 10, kind="by files").to_plain(), "was cut by files before and would be cut by column 'id' now"),
    ],
)
def test_metadata_of_another_kind_of_spout_or_cut_is_refused(plain, told):
    with pytest.raises(SourceError, match=told):
        standing(coordinator(FixedReader(0)), 1, plain).resume()


def test_what_is_read_stays_on_the_driver():
    spout = DataFrameBatches(lambda spark: spark, ["id"], Versions(lambda spark: [1]))
    shipped = pickle.loads(pickle.dumps(spout))
    assert (shipped.source, shipped.columns) == (None, ("id",))
    assert shipped.fingerprint() == spout.fingerprint() == "DataFrame of columns 'id', cut by versions"


WIDTHS = (0, -1, True, 1.5, "10", dt.timedelta(0))
REFUSED = {
    **{f"a width of {width!r}": wrongly(ColumnRanges, "id", width) for width in WIDTHS},
    **{f"files_per_batch {count!r}": wrongly(InputFiles, count) for count in (0, True, "2")},
    "a cut that is none": wrongly(DataFrameBatches, None, ["id"], "id"),
    "versions without a function": wrongly(DataFrameBatches, None, ["id"], Versions(lambda spark: [])),
}


def test_what_cannot_be_cut_is_refused():
    approved(refusals(REFUSED, TopologyError), "data-frame-arguments")


def test_a_data_frame_needs_spark():
    builder = TransactionalTopologyBuilder("orders", "rows", DataFrameBatches(None, ["id"], ColumnRanges("id", 5)))
    builder.set_bolt("take", Sink()).shuffle_grouping("rows")
    with LocalCluster() as cluster, pytest.raises(TopologyError, match="this engine is not Spark: run it with `run`"):
        cluster.submit(builder.build())
