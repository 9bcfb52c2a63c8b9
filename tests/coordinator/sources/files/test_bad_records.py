"""Bad records of files, by each policy, with the file and the place; and what says where a good one is from."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coordinated_bolt.watching.metrics import REASON_COUNTER
from coordinator.sources import CsvFiles, FunctionFormat, JsonLines, TextFiles
from state import SourceError
from tests.support.sources.reading import context, cut, read, rows_of
from tests.support.sources.recorder import halves

JSON = b'{"f": 1}\r\n\n{"f": "x"}\n{"f": 3}'
CSV = b'f,g\n1,"a\nb"\nx,c\n3,d\n'


@dataclass(frozen=True)
class Case:
    """A file with one bad record, field f of which is x, between good ones with 1 and 3."""

    name: str
    content: bytes
    make: Callable[..., Any]
    place: str
    bounds: tuple[int, int]

    def put(self, folder: Path, pack: Callable[[bytes], bytes]) -> str:
        path = folder / self.name
        path.write_bytes(pack(self.content))
        return str(path)


CASES = [
    Case("a.jsonl", JSON, lambda path, **more: JsonLines(path, {"f": int}, 2, **more), "line 3", (11, 22)),
    Case("a.csv", CSV, lambda path, **more: CsvFiles(path, {"f": int}, 2, **more), "row 2", (12, 16)),
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", CASES, ids=["json", "csv"])
class TestBadRecords:
    def test_fail_stops_the_run_and_names_the_place(self, tmp_path: Path, pack: Any, case: Case) -> None:
        path = case.put(tmp_path, pack)
        source = case.make(path)
        with pytest.raises(SourceError) as caught:
            read(source, cut(source))
        where = f"the record at {case.place} of input file '{path}' (byte {case.bounds[0]}) is bad: field 'f' is 'x'"
        assert str(caught.value).startswith(where)

    def test_skip_leaves_it_out_and_counts_it(self, tmp_path: Path, pack: Any, case: Case) -> None:
        source, task = case.make(case.put(tmp_path, pack), on_bad_record="skip"), context()
        assert [row for _, row in read(source, cut(source), task)] == [[1], [3]]
        assert task.counters == {"bad_records": 1, f"{REASON_COUNTER}field 'f' is …, which is not int": 1}

    def test_dead_letters_go_on_a_stream_of_their_own(self, tmp_path: Path, pack: Any, case: Case) -> None:
        path = case.put(tmp_path, pack)
        source = case.make(path, on_bad_record="dead_letter")
        sent = read(source, cut(source))
        assert [row for stream, row in sent if stream == "default"] == [[1], [3]]
        (letter,) = [row for stream, row in sent if stream == "dead_letters"]
        assert letter[0] == f"{case.place} of input file '{path}' (byte {case.bounds[0]})"
        assert letter[1] == case.content[slice(*case.bounds)].rstrip(b"\n")
        assert letter[2].startswith("field 'f' is 'x'")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("lines_per_batch", [1, 2, 10])
def test_tuples_carry_file_offset_and_line_number(tmp_path: Path, pack: Any, lines_per_batch: int) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_bytes(pack("\ufeffé\r\n\nlast".encode()))
    second.write_bytes(pack(b"next\n"))
    source = TextFiles(str(tmp_path / "*.txt"), lines_per_batch, with_origin=("line_number", "file", "offset"))
    assert rows_of(source) == [
        ["é", 1, str(first), 0],
        ["", 2, str(first), 7],
        ["last", 3, str(first), 8],
        ["next", 1, str(second), 0],
    ]


def test_numbers_go_on_where_the_run_before_has_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"1\n2\n3\n4\n5\n")
    first, second = (TextFiles(str(tmp_path / "*.txt"), 2, with_origin=("line_number",)) for _ in range(2))
    (last,) = cut(first, limit=1)
    assert [row for _, row in read(second, cut(second, last))] == [["3", 3], ["4", 4], ["5", 5]]


def test_a_format_of_the_users_own_reads_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ab\n\ncdef\n")
    source = JsonLines(str(tmp_path / "a.txt"), FunctionFormat(["first", "second"], halves))
    assert rows_of(source) == [[b"a", b"b"], [b"cd", b"ef"]]
