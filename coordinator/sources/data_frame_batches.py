"""Any Spark DataFrame as a source: cut by ranges of a column, by files, or by snapshot versions.

When a run begins, Spark lists the whole input once, as a catalogue of units; a transaction is one unit. Spark reads
the rows and gives them to the bolts on the executors. Rows that are read again have to be the same: a unit's number of
rows is known when it is cut, and their digest is stored before the transaction commits.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol

from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import not_of_this_spout
from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import FailedException, SourceError, TopologyError
from state.printable import counted
from state.values.whole import is_whole

ESTIMATED_ROW_BYTES = 100
"""Assumed size of a row, to keep waves within memory; the real size is unknown before it is read."""


@dataclass(frozen=True, slots=True)
class ColumnRanges:
    """Cuts by ranges of a column of integers, dates or timestamps without NULLs; equal values stay together.

    Rows that join later must have a higher value than all rows that were read; serial numbers and times of arrival do.
    Rows that join with a lower value are reported at the next start.

    Attributes:
        column: name of the column; it need not be emitted.
        width: width of a range: an integer for integers, a timedelta for timestamps, whole days for dates. Ranges begin
            at multiples of the width, and empty ranges are left out.
    """

    column: str
    width: int | dt.timedelta

    def __post_init__(self) -> None:
        width: Any = self.width
        is_usable = isinstance(width, int | dt.timedelta) and not isinstance(width, bool)
        if not is_usable or not width > type(width)():
            raise TopologyError(f"width of ColumnRanges is {width!r}; give a positive integer or timedelta")

    def __str__(self) -> str:
        return f"by column {self.column!r}"


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Cuts by the files that a DataFrame over files reads, in the order of their names.

    A file that joins later has to sort after all files that were read; otherwise it is reported at the next start.

    Attributes:
        files_per_batch: files per transaction.
    """

    files_per_batch: int = 1

    def __post_init__(self) -> None:
        if not is_whole(self.files_per_batch, 1):
            raise TopologyError(f"files_per_batch of InputFiles is {self.files_per_batch!r}; give an integer from 1")

    def __str__(self) -> str:
        return "by files"


@dataclass(frozen=True, slots=True)
class Versions:
    """Cuts by the versions of a versioned table, such as Delta or Iceberg: one transaction per version.

    The source of `DataFrameBatches` is then a function of session and version, which reads the rows that version added.

    Attributes:
        existing: function of the session that returns the existing versions, ascending.
    """

    existing: Callable[[Any], Sequence[int]]

    def __str__(self) -> str:
        return "by versions"


Cut = ColumnRanges | InputFiles | Versions


@dataclass(frozen=True, slots=True)
class Unit:
    """The part of the input that one transaction reads.

    Attributes:
        kind: how it was cut, in words.
        first, last: its first and last key: a value of the column as an integer (days, microseconds), the name of a
            file, or a version.
        row_count: how many rows it has; None if that is not known before they are read.
        through: (count, digest) of everything up to its end: the number of rows or versions, and a digest of the files
            or versions, or the sum of a hash of every row's key.
    """

    kind: str
    first: int | str
    last: int | str
    row_count: int | None
    through: tuple[int, int]

    @classmethod
    def from_plain(cls, plain: Any, topology_id: str) -> Unit:
        """Restores a unit from `to_plain`.

        Raises:
            SourceError: the data is the metadata of another kind of spout.
        """
        match plain:
            case [str(kind), (int() | str()) as first, (int() | str()) as last, row_count, [int(count), int(digest)]]:
                return cls(kind, first, last, row_count, (count, digest))
        raise not_of_this_spout(repr(plain), "a part of a DataFrame", topology_id)

    def to_plain(self) -> list[Any]:
        """Returns the unit as plain data, to be stored."""
        return [self.kind, self.first, self.last, self.row_count, list(self.through)]

    def __str__(self) -> str:
        return f"{self.first!r}" if self.first == self.last else f"{self.first!r} to {self.last!r}"


def words_of(metadata: Any) -> list[str]:
    """Returns in words which part of a DataFrame a transaction read.

    Raises:
        SourceError: the metadata is not a part of a DataFrame.
    """
    unit = Unit.from_plain(metadata, "")
    rows = "" if unit.row_count is None else f", {counted(unit.row_count, 'row')}"
    return [f"{unit.kind}: {unit}{rows}"]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The units of an input, seen from a position.

    Attributes:
        behind: (count, digest) of everything up to the position, see `Unit.through`.
        ahead: the units after the position, ascending.
    """

    behind: tuple[int, int]
    ahead: tuple[Unit, ...]


class FrameReader(Protocol):
    """Asks Spark for the catalogue (driver); see `coordinator.engines.spark.intake.frame_reader`."""

    def catalogue(self, after: int | str | None) -> Catalogue:
        """Returns the catalogue, as seen from the position after a key.

        Raises:
            SourceError, TopologyError: the DataFrame cannot be cut in this way.
        """


class DataFrameBatches(RowSpout):
    """Rows of a Spark DataFrame; a transaction is a range, a few files, or a version. Finite.

    A run reads the rows that exist when it begins; rows that join later are left to the next run. The catalogue costs a
    pass over the column, or over the files, at each start. A timestamp becomes a datetime in UTC, a struct a dict.

    Args:
        source: a DataFrame, or a function of a SparkSession that makes it (of session and version for `Versions`).
        columns: names of the columns that become the fields of the tuples, in order.
        cut: how the DataFrame is cut into transactions.

    Raises:
        TopologyError: a parameter cannot be used.
    """

    def __init__(self, source: Any, columns: Sequence[str], cut: Cut) -> None:
        super().__init__(columns)
        if not isinstance(cut, ColumnRanges | InputFiles | Versions):
            raise TopologyError(f"cut of DataFrameBatches is {cut!r}; give a ColumnRanges, InputFiles or Versions")
        if isinstance(cut, Versions) and not callable(source):
            raise TopologyError(
                f"source of DataFrameBatches is {source!r}, and it is cut by versions: give a function of session and "
                "version that makes a DataFrame"
            )
        self.source, self.cut = source, cut
        self._reader: FrameReader | None = None

    def bound(self, reader: FrameReader) -> DataFrameBatches:
        """Returns the same spout for one run, read by Spark; used by `run`."""
        made = type(self)(self.source, self.columns, self.cut)
        made._reader = reader  # noqa: SLF001 - its own class
        return made

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        if self._reader is None:
            raise TopologyError(
                f"component {context.component_id!r} of topology {context.topology_id!r} reads a Spark DataFrame, and "
                "this engine is not Spark: run it with `run` or `txbatch run`, and test its bolts with "
                "FixedBatchesSpout in its place"
            )
        return DataFrameCoordinator(self._reader, str(self.cut), context.topology_id)

    def describe(self, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        return f"DataFrame of columns {', '.join(map(repr, self.columns))}, cut {self.cut}"

    def __getstate__(self) -> dict[str, Any]:
        # executors get rows; sessions and DataFrames stay on the driver
        return {**self.__dict__, "_reader": None, "source": None, "cut": str(self.cut)}


class DataFrameCoordinator(SpoutCoordinator):
    """Cuts along the catalogue (driver).

    Args:
        reader: asks Spark.
        kind: how units are cut, in words.
        topology_id: for messages.
    """

    def __init__(self, reader: FrameReader, kind: str, topology_id: str) -> None:
        self._reader, self._kind, self._topology_id = reader, kind, topology_id
        self._catalogue: Catalogue | None = None

    def resume(self) -> None:
        last = self.run_so_far.last
        if last is None and self.run_so_far.last_txid:
            Unit.from_plain(last, self._topology_id)
        self._read(None if last is None else self._unit(last))

    def is_ready(self) -> bool:
        return self._next(self.run_so_far.last) is not None

    def initialize_transaction(self, txid: int, previous: Any) -> list[Any]:
        unit = self._next(previous)
        if unit is None:
            raise FailedException(f"txid {txid} cannot be cut: the input ends with the one before")
        return unit.to_plain()

    def is_exhausted(self) -> bool:
        return self._next(self.run_so_far.last) is None

    def compare(self, former: FormerInput) -> InputChange:
        """Returns how the rows, files or versions that were read have changed."""
        if former.last is None:
            return InputChange()
        unit = self._unit(former.last)
        behind = self._read(unit).behind
        if behind == unit.through:
            return InputChange()
        what = "versions" if unit.row_count is None else "rows"
        if behind[0] == unit.through[0]:
            said = f"the input up to {unit.last!r} is not what was read: other rows, files or versions are there now"
        else:
            said = f"up to {unit.last!r} {unit.through[0]} {what} were read, and {behind[0]} are there now"
        return InputChange(changed=(f"{said}; what joined there is never read",))

    def estimated_bytes(self, metadata: Any) -> int:
        return (self._unit(metadata).row_count or 0) * ESTIMATED_ROW_BYTES

    def progress(self) -> float | None:
        catalogue, last = self._catalogue, self.run_so_far.last
        if catalogue is None or not catalogue.ahead:
            return None
        done = catalogue.behind if last is None else self._unit(last).through
        total = catalogue.ahead[-1].through[0]
        return done[0] / total if total else None

    def _read(self, after: Unit | None) -> Catalogue:
        if self._catalogue is None:
            self._catalogue = self._reader.catalogue(None if after is None else after.last)
        return self._catalogue

    def _next(self, last: Any) -> Unit | None:
        """Returns the unit after a transaction."""
        assert self._catalogue is not None  # `resume` has read it
        ahead = self._catalogue.ahead
        index = 0
        if last is not None:
            key: Any = self._unit(last).last
            index = bisect_right(ahead, key, key=attrgetter("last"))
        return ahead[index] if index < len(ahead) else None

    def _unit(self, plain: Any) -> Unit:
        unit = Unit.from_plain(plain, self._topology_id)
        if unit.kind != self._kind:
            raise SourceError(
                f"topology {self._topology_id!r} was cut {unit.kind} before and would be cut {self._kind} now, "
                f"so its stored position means nothing: cut it as before, start over by `txbatch drop "
                f"{self._topology_id}`, or take another topology id"
            )
        return unit
