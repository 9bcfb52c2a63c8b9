"""Rows of CSV end where the csv module ends them, whatever blocks they are read in."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator import LocalCluster, RunOptions, stream
from coordinator.sources import Follow, JsonLines
from coordinator.sources.files.csv_files import CsvFiles, CsvKind, RowFinder
from coordinator.sources.files.record_scanner import RecordScanner
from coordinator.sources.files.stores.local_store import LocalFile
from coordinator.sources.records.csv_fields import CsvDialect
from state import SourceError, TopologyError, TransactionError, ValueState
from tests.support.sources.reading import cut, rows_of

DIALECTS: list[dict[str, Any]] = [
    {},
    {"delimiter": "\t"},
    {"delimiter": ";", "quotechar": "'"},
    {"doublequote": False, "escapechar": "\\"},
    {"quoting": csv.QUOTE_NONE, "escapechar": "\\"},
    {"quoting": csv.QUOTE_ALL},
    {"skipinitialspace": True},
]
VALUES = st.text(st.sampled_from("ab,;'\"\t\n\\ é"), max_size=5)


@settings(max_examples=200)
@given(
    rows=st.lists(st.lists(VALUES, min_size=1, max_size=3), max_size=8),
    options=st.sampled_from(DIALECTS),
    ending=st.sampled_from(["\n", "\r\n"]),
    has_last_end=st.booleans(),
)
def test_rows_are_told_apart_as_the_csv_module_writes_them(rows, options, ending, has_last_end):
    if options.get("quoting") == csv.QUOTE_NONE:
        rows = [[value.replace("\n", "n") for value in row] for row in rows]
    rows = [row for row in rows if row != [""]]
    text = io.StringIO()
    csv.writer(text, lineterminator=ending, **options).writerows(rows)
    content = text.getvalue().encode()
    if rows and not has_last_end:
        content = content.removesuffix(ending.encode())
    dialect = CsvDialect(**options)
    find = RowFinder(dialect.options)
    ends = find.ends(content)
    pieces = [content[start:end].decode().removesuffix(ending) for start, end in zip([0, *ends], ends, strict=False)]
    assert [dialect.rows([piece])[0] for piece in pieces] == list(
        csv.reader(io.StringIO(content.decode(), newline=""), strict=True, **dialect.options)
    )


TEXTS = int(os.environ.get("TXBATCH_CSV_TEXTS", "2000"))


def test_rows_of_random_texts_are_those_of_the_csv_module() -> None:
    """Up to the first row that csv refuses; it does not say where the next one begins."""
    random = Random(TEXTS)
    for number in range(TEXTS):
        dialect = CsvDialect(
            delimiter=random.choice(",;\t|:"),
            quotechar=random.choice("\"'"),
            escapechar=random.choice([None, None, "\\", "^"]),
            doublequote=random.random() < 0.7,
            skipinitialspace=random.random() < 0.3,
            quoting=random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONE]),
        )
        own = [dialect.options[name] or "" for name in ("delimiter", "quotechar", "escapechar")]
        letters = [*own, *own, "\n", "\n", "\r", "\r\n", " ", "a", "b", "é", "0", "\t", *",;'\"\\"]
        text = "".join(random.choices(letters, k=random.randrange(24)))
        content, expected = text.encode(), []
        is_refused = False
        ended = (
            text if text.endswith("\n") else f"{text}\n"
        )  # csv takes the last row after an escaped line break for open
        reader = csv.reader(re.findall(r"[^\n]*\n", ended), strict=True, **dialect.options)
        try:
            for row in reader:
                expected += [row] if row else []
        except csv.Error:
            is_refused = True
        kind = CsvKind(["a"], None, dialect, origin_fields=(), on_bad_record="fail", record_bytes_max=1000)
        found: list[Any] = []
        for record in kind.records(content, is_start=True)[0]:
            try:
                found += dialect.rows([record.decode()])
            except csv.Error:
                found.append(None)
                break
        assert found == [*expected, *[None] * is_refused], (number, text, dialect.options)


@settings(max_examples=100)
@given(
    rows=st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=1, max_size=10),
    block_bytes=st.integers(1, 30),
    record_limit=st.integers(1, 5),
)
def test_blocks_make_no_difference(tmp_path_factory, rows, block_bytes, record_limit):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    content = path.read_bytes()
    find = RowFinder(CsvDialect().options)
    ends = find.ends(content)
    with closing(LocalFile(str(path), "test")) as opened:
        scanner = RecordScanner(opened, 0, len(content), find=find, block_bytes=block_bytes)
        parts = []
        while not scanner.is_done():
            parts.append(scanner.take(record_limit))
    assert [part.end for part in parts] == [*ends[record_limit - 1 :: record_limit], *ends[-1:]][: len(parts)]
    assert sum(part.count for part in parts) == len(ends) == len(rows)
    assert [part.first for part in parts] == list(range(0, len(rows), record_limit))


def test_a_quote_inside_an_unquoted_value_is_a_character(tmp_path):
    (tmp_path / "a.csv").write_text('5" pipe,x\n6" pipe,y\n')
    assert rows_of(CsvFiles(str(tmp_path / "a.csv"), columns=["a", "b"])) == [['5" pipe', "x"], ['6" pipe', "y"]]


def test_a_quote_that_is_never_closed_is_noticed_before_it_takes_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1,2\n1,"2\n' + "3,4\n" * 1000)
    source = CsvFiles(str(tmp_path / "a.csv"), columns=["a", "b"], row_bytes_max=100, on_bad_record="skip")
    with pytest.raises(
        SourceError, match=r"a\.csv' has a record of more than 100 bytes: record 2, which starts at byte 4"
    ):
        cut(source)


def test_a_header_with_a_mark_and_quotes_names_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbf"b\nc",a\r\n1,2\r\n\r\n3,4')
    source = CsvFiles(str(tmp_path / "a.csv"), {"a": int, "b\nc": int}, 1, with_origin=("row_number", "offset"))
    assert rows_of(source) == [[2, 1, 1, 12], [4, 3, 3, 19]]


def test_characters_that_bytes_cannot_tell_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a\n")
    with pytest.raises(TopologyError, match="has to be an ASCII character"):
        CsvFiles(str(tmp_path / "a.csv"), ["a"], options={"delimiter": "é"})
    with pytest.raises(TopologyError, match="has neither fields nor columns"):
        CsvFiles(str(tmp_path / "a.csv"))


@pytest.mark.parametrize("policy", ["fail", "skip", "dead_letter"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_quote_that_is_never_closed_does_not_take_the_rows_of_a_small_file(tmp_path, pack, policy):
    (tmp_path / "a.csv").write_bytes(pack(b'1,2\n1,"2\n3,4\n5,6'))
    source = CsvFiles(str(tmp_path / "a.csv"), columns=["a", "b"], on_bad_record=policy)
    with pytest.raises(SourceError, match=r"a\.csv' has a quote that is never closed: the row that starts at byte 4"):
        cut(source)


def test_a_last_row_with_an_open_quote_that_takes_no_other_line_is_a_bad_record(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1,2\n1,"2')
    source = CsvFiles(str(tmp_path / "a.csv"), columns=["a", "b"], on_bad_record="skip")
    assert rows_of(source) == [["1", "2"]]


@pytest.mark.parametrize("more", [{}, {"columns": ["a"]}])
def test_a_file_with_nothing_but_a_byte_order_mark_has_no_rows(tmp_path: Path, more: Any) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf")
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfa\nx\n" if not more else b"\xef\xbb\xbfx\n")
    assert rows_of(CsvFiles(str(tmp_path / "*.csv"), ["a"], **more)) == [["x"]]


@pytest.mark.parametrize(
    ("header", "wanted", "row"),
    [
        ("n,,", ["n"], ["1"]),
        ("n,,m", ["m", "n"], ["2", "1"]),
        ("n,x,x", ["n"], ["1"]),
        ("n,x,x", ["x"], "is the name of 2 columns"),
        ("n,x,x", ["y"], "'y' of CsvFields is not a column"),
        ("n;m;x", ["m", "n"], "is separated by ';', not by ',', by its header 'n;m;x': give CsvFiles options="),
        ('"n"\t"m m"', ["m m", "n"], "give CsvFiles options={'delimiter': '\\\\t'}"),
        ("n;m;x", ["n;m;x"], "it has 3 values, and there are 1 columns"),
        ("a,c", ["a", "b"], r"a\.csv' begins with the row 'a,c', which cannot be the header for the fields .*'b'"),
    ],
)
def test_columns_matter_as_far_as_they_are_wanted(tmp_path: Path, header: str, wanted: list[str], row: Any) -> None:
    (tmp_path / "a.csv").write_bytes(f"{header}\r\n1,,2\r\n".encode())
    if isinstance(row, list):
        assert rows_of(CsvFiles(str(tmp_path / "a.csv"), wanted)) == [row]
    else:
        with pytest.raises(SourceError, match=row):
            rows_of(CsvFiles(str(tmp_path / "a.csv"), wanted))


@pytest.mark.parametrize("before", ["", "\n", "\r\n\n", "\ufeff", "\ufeff\r\n"])
def test_empty_lines_before_a_header_are_left_out(tmp_path: Path, before: str) -> None:
    (tmp_path / "a.csv").write_bytes(f"{before}n\n1\n".encode())
    source = CsvFiles(str(tmp_path / "a.csv"), ["n"], with_origin=["offset", "row_number"])
    assert rows_of(source) == [["1", len(before.encode()) + 2, 1]]
    (tmp_path / "b.csv").write_bytes(before.encode())
    assert rows_of(CsvFiles(str(tmp_path / "[ab].csv"), ["n"])) == [["1"]]


def test_a_row_of_another_delimiter_is_told_which(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;2\n")
    with pytest.raises(SourceError, match="are 2 columns; perhaps they are separated by ';': give that as delimiter"):
        rows_of(CsvFiles(str(tmp_path / "a.csv"), columns=["a", "b"]))


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_line_break_that_is_escaped_and_not_quoted_is_part_of_its_value(tmp_path: Path, ending: str) -> None:
    """As MySQL's OUTFILE and COPY of PostgreSQL write it."""
    (tmp_path / "a.csv").write_bytes(f"1,b\\\nc{ending}2,\\\n{ending}3,d".encode())
    source = CsvFiles(str(tmp_path / "a.csv"), columns=["n", "t"], options={"escapechar": "\\"}, with_origin=["offset"])
    assert rows_of(source) == [["1", "b\nc", 0], ["2", "\n", 6 + len(ending)], ["3", "d", 10 + 2 * len(ending)]]


@pytest.mark.parametrize("follow", [False, Follow(complete="quiet", quiet_s=0)])
@pytest.mark.parametrize(("end", "is_whole"), [("\\\n", False), ("\\\\\n", True), ("\\\r\n", True), ("\n", True)])
def test_a_file_that_ended_with_an_escaped_line_break_is_not_read_further(tmp_path, follow, end, is_whole):
    path = tmp_path / "a.csv"
    path.write_bytes(f"1,b{end}".encode())
    cluster = LocalCluster()

    def count() -> Any:
        options = {"escapechar": "\\"}
        source = CsvFiles(str(path), columns=["n", "t"], options=options, follow=follow, on_bad_record="skip")
        rows = stream(source)
        rows.count_by(None, into=ValueState("n"))
        run = cluster.submit(rows.topology("letters"), options=RunOptions(adopt=True))
        run.run_until_idle()
        run.close()
        return run.state("n")

    assert count() == (1 if is_whole else None)
    with path.open("ab") as file:
        file.write(b"c,d\n")
    if is_whole:
        assert count() == 2
    else:
        with pytest.raises(
            TransactionError, match=r"ended at byte 5 within a line|was complete with 5 bytes of content"
        ):
            count()


def test_a_byte_order_mark_where_files_were_joined_belongs_to_no_value(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfn,t\n1,a\n\xef\xbb\xbf2,"\xef\xbb\xbfb"\n\xef\xbb\xbf\n3,c\n')
    assert rows_of(CsvFiles(str(tmp_path / "a.csv"), {"n": int, "t": str})) == [[1, "a"], [2, "\ufeffb"], [3, "c"]]
    (tmp_path / "a.json").write_bytes(b'{"n":1}\n\xef\xbb\xbf{"n":2}\n')
    assert rows_of(JsonLines(str(tmp_path / "a.json"), {"n": int})) == [[1], [2]]
