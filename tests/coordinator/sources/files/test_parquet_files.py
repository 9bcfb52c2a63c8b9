"""Parquet files: types, row groups, what is no longer what was cut, and files that cannot be read."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.sources import JsonLines, ParquetFiles
from coordinator.sources.files.record_ranges import parse_ranges
from state import SourceError, TopologyError
from state.codec import pack_exact
from tests.support.approved import approved, refusals, wrongly
from tests.support.sources.reading import context, cut, read, rows_of, standing

BERLIN = ZoneInfo("Europe/Berlin")


def write(path: Path, row_group_size: int = 3, **columns: Any) -> str:
    pa.parquet.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return str(path)


def test_values_are_pythons_and_can_be_stored(tmp_path: Path) -> None:
    moment = dt.datetime(2026, 7, 1, 12, tzinfo=BERLIN)
    columns = {
        "i": pa.array([1, None], pa.int32()),
        "f": [0.5, 1.5],
        "d": pa.array([Decimal("1.10"), None], pa.decimal128(9, 2)),
        "s": pa.array(["a", "é"]).dictionary_encode(),
        "b": [b"\0", b""],
        "day": [dt.date(2026, 1, 1), None],
        "at": pa.array([moment, None], pa.timestamp("ns", "Europe/Berlin")),
        "local": pa.array([dt.datetime.fromisoformat("2026-01-01"), None], pa.timestamp("ms")),
        "many": [[1, 2], []],
        "yes": [True, False],
    }
    first, second = rows_of(ParquetFiles(write(tmp_path / "a.parquet", **columns), list(columns)))
    assert first[:6] == [1, 0.5, Decimal("1.10"), "a", b"\0", dt.date(2026, 1, 1)]
    assert (first[6], first[6].utcoffset()) == (moment, dt.timedelta(0))
    assert first[7:] == [dt.datetime.fromisoformat("2026-01-01"), [1, 2], True]
    assert second == [None, 1.5, None, "é", b"", None, None, None, [], False]
    pack_exact([*first[:6], *first[7:]])


@settings(max_examples=60)
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=3),
    group=st.integers(1, 5),
    batch=st.integers(1, 15),
    stop_after=st.integers(0, 6),
)
def test_every_row_is_read_once_and_in_order(tmp_path_factory, counts, group, batch, stop_after):
    folder = tmp_path_factory.mktemp("tables")
    expected: list[list[Any]] = []
    for number, count in enumerate(counts):
        values = list(range(100 * number, 100 * number + count))
        path = write(folder / f"{number}.parquet", group, other=[0.5] * count, n=pa.array(values, pa.int64()))
        expected += [[value, path, index + 1] for index, value in enumerate(values)]
    source = ParquetFiles(str(folder / "*.parquet"), ["n"], batch, with_origin=("file", "row_number"))
    batches = cut(source, limit=stop_after)
    batches += cut(source, batches[-1] if batches else None)
    by_batch = [[row for _, row in read(source, [metadata])] for metadata in batches]
    assert by_batch == [expected[start : start + batch] for start in range(0, len(expected), batch)]
    ends = [parse_ranges(metadata)[-1] for metadata in batches]
    assert all(part.mark is not None for part in ends)
    assert not ends or (ends[-1].mark is not None and ends[-1].mark.is_whole)


@pytest.mark.parametrize("nested", [False, True])
def test_times_of_impala_are_read_in_any_year_and_refused_if_they_have_nanoseconds(tmp_path, nested):
    def put(nanoseconds: list[int | None], unit: str) -> str:
        times = pa.array(nanoseconds, pa.timestamp(unit))
        column = pa.array([[each] for each in times.to_pylist()], pa.list_(times.type)) if nested else times
        pa.parquet.write_table(
            pa.table({"a.b": column, "n": range(len(column))}),
            tmp_path / "a.parquet",
            use_deprecated_int96_timestamps=True,
        )
        return str(tmp_path / "a.parquet")

    years = [dt.datetime.fromisoformat(f"{year}-07-01T12:00:00.000001") for year in ("1401", "1677", "2262", "9999")]
    microseconds = [(each - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) for each in years]  # noqa: DTZ001
    found = rows_of(ParquetFiles(put([*microseconds, None], "us"), ["a.b"]))
    assert [row[0][0] if nested else row[0] for row in found] == [*years, None]
    if not nested:
        with pytest.raises(SourceError, match=r"a\.parquet' holds a value that Python cannot have: .*lose data"):
            rows_of(ParquetFiles(put([1_000, 1_001], "ns"), ["n", "a.b"]))


def test_a_struct_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], fields=[pa.field("a", pa.int64())] * 2)
    path = write(tmp_path / "a.parquet", s=twice, n=[1])
    assert rows_of(ParquetFiles(path, ["n"])) == [[1]]
    with pytest.raises(SourceError, match=r"column 's' of .* has the type struct<a: int64, a: int64>, which a tuple"):
        rows_of(ParquetFiles(path, ["s"]))


def test_a_summary_of_a_folder_of_tables_has_no_rows_of_its_own(tmp_path: Path) -> None:
    collected: list[Any] = []
    table = pa.table({"n": [1, 2]})
    pa.parquet.write_to_dataset(table, tmp_path, metadata_collector=collected)
    pa.parquet.write_metadata(table.schema, tmp_path / "_common_metadata")
    pa.parquet.write_metadata(table.schema, tmp_path / "_metadata", metadata_collector=collected)
    assert rows_of(ParquetFiles(str(tmp_path / "*"), ["n"])) == [[1], [2]]


@pytest.mark.parametrize("byte", ["in a row group", "in the footer"])
def test_a_byte_that_changed_is_noticed_by_a_replay(tmp_path: Path, byte: str) -> None:
    path = tmp_path / "a.parquet"
    source = ParquetFiles(write(path, n=list(range(9))), ["n"])
    batches = cut(source)
    content = bytearray(path.read_bytes())
    place = content.index(b"ARROW:schema") if byte == "in the footer" else 10
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"has changed: bytes 0 to \d+ were cut into a transaction"):
        read(source, batches)


def test_a_file_that_was_rewritten_in_the_middle_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    source = ParquetFiles(write(path, n=list(range(9))), ["n"], 4)
    (last,) = cut(source, limit=1)
    write(path, n=list(range(100, 109)))
    coordinator = source.get_coordinator({}, context())
    with pytest.raises(SourceError, match="has changed: bytes"):
        standing(coordinator, 1, last).resume()
    coordinator.close()


@pytest.mark.parametrize(
    ("content", "story"),
    [
        (b"PAR1" + b"x" * 20, "does not end as a Parquet file does"),
        (b"PAR1" + b"x" * 20 + (12).to_bytes(4, "little") + b"PAR1", "has a footer that is damaged"),
        (b"PAR1" + (999).to_bytes(4, "little") + b"PAR1", "does not end as a Parquet file does"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, content, story):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=rf"a\.parquet' {story}"):
        cut(ParquetFiles(str(tmp_path / "a.parquet"), ["n"]))


def test_a_file_without_the_column_or_with_two_of_its_name_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"has no column 'm', only \['n'\]"):
        cut(ParquetFiles(write(tmp_path / "a.parquet", n=[1]), ["m"]))
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pa.parquet.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="has several columns 'a': fix it"):
        cut(ParquetFiles(str(tmp_path / "b.parquet"), ["a"]))


def test_fields_that_are_no_list_of_names_are_refused_not_taken_apart(tmp_path):
    path = write(tmp_path / "a.parquet", user=["a"])
    cases = {
        "an unknown origin": wrongly(ParquetFiles, path, ["user"], with_origin=("offset",)),
        "fields as a text": wrongly(ParquetFiles, path, "user"),
        "fields with types": wrongly(ParquetFiles, path, {"user": str}),
        "origins as a text": wrongly(ParquetFiles, path, ["user"], with_origin="file"),
        "origins of JSON as a text": wrongly(JsonLines, path, ["user"], with_origin="file"),
    }
    approved(refusals(cases, TopologyError), "parquet-arguments")


def test_what_is_not_parquet_is_refused_before_a_run_starts_anything(tmp_path):
    (tmp_path / "a.parquet").write_text("a,b\n")
    with pytest.raises(TopologyError, match="is not a Parquet file"):
        ParquetFiles(str(tmp_path / "*.parquet"), ["n"]).find_input()


def test_a_python_without_pyarrow_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", n=[1])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TopologyError, match=r"needs pyarrow, .* pip install 'txbatch\[arrow\]'"):
        ParquetFiles(path, ["n"])


def test_a_share_of_a_large_row_group_is_not_taken_for_all_of_it(tmp_path: Path) -> None:
    source = ParquetFiles(write(tmp_path / "a.parquet", 10_000, n=list(range(10_000))), ["n"], 100)
    coordinator = source.get_coordinator({}, context())
    (whole,) = {part.end for metadata in cut(source) for part in parse_ranges(metadata)}
    assert coordinator.estimated_bytes(cut(source)[0]) == 6400 < whole
    coordinator.close()


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([dt.time(1, 2)]), r"time64\[us\]"),
        (pa.array([dt.timedelta(1)]), r"duration\[us\]"),
        (pa.array([[dt.time(1, 2)]]), r"list<.*: time64\[us\]>"),
        (pa.array([[("a", dt.time(1))]], pa.map_(pa.string(), pa.time64("us"))), r"map<string, time64\[us\].*>"),
        (pa.array([b"0123456789abcdef"], pa.uuid()), r"extension<arrow\.uuid>"),
        (pa.array([{"a": {"b": dt.time(1)}}]), r"struct<a: struct<b: time64\[us\]>>"),
    ],
)
def test_a_column_no_tuple_can_carry_is_told_before_it_is_read(tmp_path: Path, column: Any, kind: str) -> None:
    path = write(tmp_path / "a.parquet", n=[1], c=column)
    with pytest.raises(SourceError, match=rf"column 'c' of input file '.*' has the type {kind}, which a tuple cannot"):
        cut(ParquetFiles(path, ["n", "c"]))
    assert rows_of(ParquetFiles(path, ["n"])) == [[1]]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**62], pa.timestamp("us")),
        pa.array([1], pa.timestamp("ns")),
        pa.array([[1]], pa.list_(pa.timestamp("ns"))),
        pa.array([[1]], pa.large_list(pa.timestamp("ns"))),
        pa.array([{"at": [1]}], pa.struct([("at", pa.list_(pa.timestamp("ns"), 1))])),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.timestamp("ns"))),
        pa.array([2**31 - 1], pa.date32()),
    ],
)
def test_a_time_that_python_cannot_have_is_told_without_blaming_the_file_for_a_change(tmp_path, column):
    source = ParquetFiles(write(tmp_path / "a.parquet", c=column), ["c"])
    why = ".*lose data" if column.type == pa.timestamp("ns") else ""
    told = rf"a\.parquet' holds a value that Python cannot have: {why}.*; write its times in microseconds"
    with pytest.raises(SourceError, match=told):
        rows_of(source)


def test_a_file_with_encrypted_columns_is_refused_and_does_not_end_the_process(tmp_path: Path) -> None:
    from pyarrow.parquet import encryption

    class Keys(encryption.KmsClient):
        def wrap_key(self, key_bytes: bytes, _: str) -> str:
            return key_bytes.hex()

    connection = encryption.KmsConnectionConfig()
    wanted = encryption.EncryptionConfiguration("foot", column_keys={"column": ["a"]}, plaintext_footer=True)
    properties = encryption.CryptoFactory(lambda _: Keys()).file_encryption_properties(connection, wanted)
    table = pa.table({"a": [1], "b": [2]})
    with pyarrow.parquet.ParquetWriter(tmp_path / "a", table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    with pytest.raises(
        SourceError, match=r"has columns that are encrypted, though its footer is not: write it in plai"
    ):
        rows_of(ParquetFiles(str(tmp_path / "a"), ["b"]))


def test_rows_that_pyarrow_leaves_out_are_missed(tmp_path, monkeypatch):
    source = ParquetFiles(write(tmp_path / "a.parquet", n=[1, 2, 3]), ["n"])
    whole = pyarrow.parquet.ParquetFile.read_row_group
    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "read_row_group", lambda *a, **k: whole(*a, **k).slice(1))
    with pytest.raises(SourceError, match="pyarrow found 2 rows in the group, but its footer says 3; "):
        rows_of(source)


def test_a_text_that_is_not_utf_8_is_named_with_what_to_do(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(SourceError, match=r"can't decode byte 0xff .*; write that column as binary, or do without"):
        rows_of(ParquetFiles(write(tmp_path / "a.parquet", a=broken), ["a"]))
