"""What `execute_batch` is given: the same tuples, by column or one by one."""

from __future__ import annotations

import sys

import pytest

from coordinated_bolt.columns import Columns
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import TupleOrigin
from state.errors import TopologyError
from tests.support.tasks.wirings import attempt

ROWS = [["to", 2], ["be", 1]]
ORIGIN = TupleOrigin(
    attempt=attempt(7), source_component="count", source_task=3, stream_id="words", fields=("word", "count")
)


def batches():
    copies = [list(row) for row in ROWS]
    return [TupleBatch(copies, ORIGIN), TupleBatch(Columns.of_rows(ROWS, 2), ORIGIN)]


@pytest.mark.parametrize("batch", batches(), ids=["held as rows", "held as columns"])
class TestBatch:
    def test_it_is_read_by_name_by_position_or_as_a_whole(self, batch):
        assert batch.column("word") == batch.column(0) == ["to", "be"]
        assert batch.columns() == [["to", "be"], [2, 1]]
        assert batch.rows() == ROWS
        assert len(batch) == 2

    def test_its_tuples_are_those_that_execute_would_see(self, batch):
        assert [(tup["word"], tup[1], tup.source_task, tup.attempt.txid) for tup in batch] == [
            ("to", 2, 3, 7),
            ("be", 1, 3, 7),
        ]
        assert batch[1].values == ["be", 1]
        assert batch[-1]["word"] == "be"

    def test_it_knows_where_it_is_from(self, batch):
        assert (batch.source_component, batch.source_task, batch.stream_id) == ("count", 3, "words")
        assert (batch.fields, batch.attempt) == (("word", "count"), attempt(7))

    @pytest.mark.parametrize("field", ["line", 2])
    def test_an_unknown_field_is_named_with_those_there_are(self, batch, field):
        with pytest.raises(KeyError, match=r"stream 'words' of 'count' has no field .* it has \('word', 'count'\)"):
            batch.column(field)

    def test_a_column_is_the_same_list_each_time(self, batch):
        assert batch.column("word") is batch.column("word")


def test_arrow_has_the_columns_by_name():
    pyarrow = pytest.importorskip("pyarrow")
    for batch in batches():
        assert batch.to_arrow().to_pydict() == {"word": ["to", "be"], "count": [2, 1]}
    with pytest.raises(pyarrow.ArrowInvalid):
        TupleBatch([["to", 2], ["be", "one"]], ORIGIN).to_arrow()


def test_without_pyarrow_lists_work_and_arrow_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (batch, _) = batches()
    assert batch.column("count") == [2, 1]
    with pytest.raises(TopologyError, match=r"to_arrow needs pyarrow, .* or use column\(...\), which returns a list"):
        batch.to_arrow()
