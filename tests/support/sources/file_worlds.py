"""Inputs of files for the contract: the same rows in every format, plain and compressed, near and far."""

from __future__ import annotations

import csv
import io
import json
from abc import abstractmethod
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from coordinator.sources import CsvFiles, Follow, JsonLines, ParquetFiles, TextFiles
from tests.coordinator.sources.contract import SourceWorld

FIELDS: dict[str, Any] = {"user": str, "price": Decimal, "count": int | None}
BATCH = 3


def plain(content: bytes) -> bytes:
    return content


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, "zstd", asbytes=True)
    return packed


class FilesWorld(SourceWorld):
    """Files that are written once, two for each addition, numbered."""

    adopt: ClassVar[bool | str] = True
    lost: ClassVar[str] = r"file '.*' (has changed|has shrunk|does not end as)"
    suffix: ClassVar[str]

    def __init__(self, folder: Path, pack: Callable[[bytes], bytes] = plain, **more: Any) -> None:
        super().__init__()
        self.folder, self.pack, self.more = folder, pack, more
        self.parts = 0

    def add(self, count: int) -> None:
        for size in (count // 2, count - count // 2):
            first = len(self.rows)
            rows = [self.row(first + number) for number in range(size)]
            self.rows += rows
            self.put(self.folder / f"{self.parts:03}.{self.suffix}", self.pack(self.content(rows)))
            self.parts += 1

    def put(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)

    def row(self, number: int) -> list[Any]:
        return [f"user {number % 7}", Decimal(number) / 4, None if number % 3 else number]

    def at(self, pattern: str) -> str:
        """How files of the folder are asked for."""
        return str(self.folder / pattern)

    def spout(self) -> Any:
        return self.made(self.at(f"*.{self.suffix}"))

    def other_spout(self) -> Any:
        (self.folder / "other").mkdir(exist_ok=True)
        (self.folder / "other" / f"a.{self.suffix}").write_bytes(self.content([self.row(1)]))
        return self.made(self.at(f"other/*.{self.suffix}"))

    def take_away(self) -> None:
        (self.folder / f"000.{self.suffix}").write_bytes(self.content([self.row(99)]))

    @abstractmethod
    def content(self, rows: list[list[Any]]) -> bytes: ...

    @abstractmethod
    def made(self, pattern: str) -> Any: ...


class TextWorld(FilesWorld):
    suffix: ClassVar[str] = "txt"

    def row(self, number: int) -> list[Any]:
        return [f"line {number} é"]

    def content(self, rows: list[list[Any]]) -> bytes:
        return "".join(f"{line}\n" for (line,) in rows).encode()

    def made(self, pattern: str) -> TextFiles:
        return TextFiles(pattern, BATCH, **self.more)


class JsonWorld(FilesWorld):
    suffix: ClassVar[str] = "jsonl"

    def content(self, rows: list[list[Any]]) -> bytes:
        objects = [{"user": user, "price": str(price), "count": count, "more": [1]} for user, price, count in rows]
        return "\n".join(map(json.dumps, objects)).encode()  # the last line has no end

    def made(self, pattern: str) -> JsonLines:
        return JsonLines(pattern, FIELDS, BATCH, **self.more)


class CsvWorld(FilesWorld):
    suffix: ClassVar[str] = "csv"

    def row(self, number: int) -> list[Any]:
        user, price, count = super().row(number)
        return [f'{user}, the\n"{number}"\r\n' if number % 2 else user, price, count]

    def content(self, rows: list[list[Any]]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["count", "user", "price"] if self.parts % 2 else ["user", "unused", "price", "count"])
        for user, price, count in rows:
            writer.writerow([count, user, price] if self.parts % 2 else [user, "x", price, count])
        return text.getvalue().encode()

    def made(self, pattern: str) -> CsvFiles:
        return CsvFiles(pattern, FIELDS, BATCH, **self.more)


class ParquetWorld(FilesWorld):
    suffix: ClassVar[str] = "parquet"
    group_rows: ClassVar[int] = 5

    def content(self, rows: list[list[Any]]) -> bytes:
        users, prices, counts = zip(*rows, strict=True) if rows else ((), (), ())
        types = pa.schema([("user", pa.string()), ("price", pa.decimal128(12, 2)), ("count", pa.int64())])
        table = pa.table([users, [price.quantize(Decimal("0.01")) for price in prices], counts], schema=types)
        made = io.BytesIO()
        pa.parquet.write_table(table, made, row_group_size=self.group_rows)
        return made.getvalue()

    def row(self, number: int) -> list[Any]:
        user, price, count = super().row(number)
        return [user, price.quantize(Decimal("0.01")), count]

    def made(self, pattern: str) -> ParquetFiles:
        return ParquetFiles(pattern, list(FIELDS), BATCH, **self.more)


class FarJsonWorld(JsonWorld):
    """The same files in a file system that only pyarrow knows."""

    def __init__(self, folder: Path) -> None:
        local = pyarrow.fs.SubTreeFileSystem(str(folder), pyarrow.fs.LocalFileSystem())
        super().__init__(folder, filesystem=local)

    def at(self, pattern: str) -> str:
        return pattern


class AddressedJsonWorld(JsonWorld):
    """The same files, by an address."""

    def at(self, pattern: str) -> str:
        return f"file://{super().at(pattern)}"


class GrowingJsonWorld(JsonWorld):
    """A folder that is followed: new files have names that sort before those that were read."""

    adopt: ClassVar[bool | str] = False
    is_finite: ClassVar[bool] = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, follow=Follow(complete="rename", poll_s=0))

    def put(self, path: Path, content: bytes) -> None:
        name = path.name if self.parts < 2 else f"{100 - self.parts:03}-before.{self.suffix}"
        super().put(path.with_name(name), content)
