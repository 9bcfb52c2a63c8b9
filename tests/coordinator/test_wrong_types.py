"""What is given a value of the wrong type says so itself: no call of the public surface fails somewhere inside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coordinated_bolt import BaseBatchBolt
from coordinator import FixedBatchesSpout, RunOptions, TextFiles, TransactionalTopologyBuilder, stream
from coordinator.sources import ColumnRanges, CsvFiles, Follow, InputFiles, JsonLines, ParquetFiles, RedisStreams
from state import HashState
from state.errors import TransactionError

WRONG: list[Any] = [
    None,
    0,
    -1,
    "",
    b"x",
    [],
    {},
    object(),
    print,
    math.nan,
    True,
    2**70,
    [1],
    {1: 2},
    "\ud800",
    "\0",
    int,
]
GOOD: dict[str, Any] = {
    "pattern": "in.txt",
    "fields": ["a"],
    "function": len,
    "of": "line",
    "into": HashState("s"),
    "state": HashState("s"),
    "key": "line",
    "by": "line",
    "component_id": "in",
    "batches": [[["a"]]],
    "streams": "events",
    "column": "id",
    "width": 10,
    "to": "b",
}


class Nothing(BaseBatchBolt):
    """Does nothing."""


def on_stream(name: str) -> Callable[..., Any]:
    def call(**given: Any) -> Any:
        return getattr(stream(TextFiles("in.txt")), name)(**given)

    return call


def on_bolt(name: str) -> Callable[..., Any]:
    def call(**given: Any) -> Any:
        builder = TransactionalTopologyBuilder("t", "in", TextFiles("in.txt"))
        return getattr(builder.set_bolt("b", Nothing()), name)(**given)

    return call


CALLS: Mapping[str, tuple[Callable[..., Any], str]] = {
    "FixedBatchesSpout": (FixedBatchesSpout, "batches fields"),
    "TextFiles": (TextFiles, "pattern lines_per_batch encoding encoding_errors on_bad_record with_origin follow"),
    "JsonLines": (JsonLines, "pattern fields lines_per_batch on_bad_record with_origin line_bytes_max"),
    "CsvFiles": (CsvFiles, "pattern fields rows_per_batch columns dialect options encoding with_origin row_bytes_max"),
    "ParquetFiles": (ParquetFiles, "pattern fields rows_per_batch with_origin follow"),
    "RedisStreams": (RedisStreams, "streams fields"),
    "Follow": (Follow, "complete quiet_s marker poll_s done done_path"),
    "ColumnRanges": (ColumnRanges, "column width"),
    "InputFiles": (InputFiles, "files_per_batch"),
    "RunOptions": (RunOptions, "max_spout_pending max_attempts on_poison adopt retry_backoff_s"),
    "map": (on_stream("map"), "function to of"),
    "filter": (on_stream("filter"), "function of"),
    "count_by": (on_stream("count_by"), "key into"),
    "enrich": (on_stream("enrich"), "state by to"),
    "output": (on_stream("output"), "stream_id"),
    "fields_grouping": (on_bolt("fields_grouping"), "component_id fields stream_id"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_value_of_the_wrong_type_is_taken_or_refused_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a\n")
    call, parameters = CALLS[name]
    good = {each: GOOD[each] for each in parameters.split() if each in GOOD}
    for parameter in parameters.split():
        for wrong in WRONG:
            try:
                with suppress(TransactionError):
                    call(**{**good, parameter: wrong})
            except Exception as error:
                raise AssertionError(f"{name}({parameter}={wrong!r})") from error
