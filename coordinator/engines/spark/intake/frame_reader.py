"""Reads the DataFrame of a `DataFrameBatches`: the catalogue of its units, and the rows of one unit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import itemgetter
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DateType, IntegralType, TimestampType

from coordinator.engines.spark.intake.row_intake import RowIntake, is_ambiguous, quoted
from coordinator.engines.spark.session import SparkLease
from coordinator.engines.spark.shuffled_stages import Intake
from coordinator.sources.data_frame_batches import (
    Catalogue,
    ColumnRanges,
    DataFrameBatches,
    InputFiles,
    Unit,
    Versions,
)
from coordinator.spouts.answers import expect_made
from coordinator.topology.building.topology import Topology
from state.codec import digest64
from state.errors import SourceError, TopologyError

KEYS_SUM = "sum(xxhash64(key) & 4294967295)"
"""Differs if rows have other keys, even if as many; takes half of each hash, so that the sum cannot overflow."""
MAX_UNITS = 1_000_000
"""The most units of a catalogue, which the driver keeps in memory."""
Call = Callable[[Callable[[], Catalogue]], Catalogue]


def bound_to_spark(topology: Topology, lease: SparkLease, spark: Any) -> tuple[Topology, Intake]:
    """Returns the topology as the driver runs it, and the intake of its stage 0 (driver, once a run).

    Args:
        topology: the topology as built; its spout is a `DataFrameBatches`.
        lease: the Spark context of the run.
        spark: the user's session, or whatever else was given as `spark`.
    """
    spout, spec = topology.spout, topology.spout.spec
    assert isinstance(spec, DataFrameBatches)
    session = spark if isinstance(spark, SparkSession) else SparkSession(lease.context)
    reader = SparkFrameReader(session, spec, lease.watch.call)
    intake = RowIntake(spec.columns, reader.rows, lambda metadata: Unit.from_plain(metadata, "").row_count)
    bound = replace(spout, spec=spec.bound(reader))
    return replace(topology, components=(bound, *topology.components[1:])), intake


class SparkFrameReader:
    """Reads a DataFrame through Spark (driver).

    Args:
        session: the session on which the DataFrame is made.
        spout: defines the DataFrame, and how it is cut.
        call: runs a call into the Java process, and ends the call if that process is lost.
    """

    def __init__(self, session: SparkSession, spout: DataFrameBatches, call: Call) -> None:
        self._session, self._spout, self._call = session, spout, call
        self._frame: DataFrame | None = None

    def catalogue(self, after: int | str | None) -> Catalogue:
        """See `FrameReader.catalogue`; runs a job, on the run's thread."""
        match self._spout.cut:
            case ColumnRanges() as ranges:
                return self._call(lambda: self._ranges(ranges, after))
            case InputFiles() as files:
                return self._call(lambda: self._files(files, after))
            case Versions() as versions:
                return self._call(lambda: self._versions(versions, after))

    def rows(self, metadata: Any) -> DataFrame:
        """Returns the rows of a transaction, not read yet."""
        unit = Unit.from_plain(metadata, "")
        match self._spout.cut:
            case ColumnRanges(column=column):
                first, last = self._bound(unit.first), self._bound(unit.last)
                return self._whole().where(f"{quoted(column)} BETWEEN {first} AND {last}")
            case InputFiles():
                path = sql.col("_metadata.file_path")
                return self._whole().where(path.between(unit.first, unit.last))
            case Versions():
                return _frame(self._spout.source(self._session, unit.first))

    def _whole(self) -> DataFrame:
        if self._frame is None:
            source = self._spout.source
            self._frame = _frame(source(self._session) if callable(source) else source)
        return self._frame

    def _ranges(self, ranges: ColumnRanges, after: int | str | None) -> Catalogue:
        width = self._width(ranges)
        key = sql.expr(self._key(ranges.column))
        bucket = sql.expr(f"key div {width} - if(key % {width} < 0, 1, 0)")
        is_ahead = sql.lit(True) if after is None else sql.col("key") > sql.lit(after)
        grouped = self._whole().select(key.alias("key")).groupBy(bucket.alias("bucket"), is_ahead.alias("is_ahead"))
        figures = (sql.min("key"), sql.max("key"), sql.count("*"), sql.expr(KEYS_SUM))
        counted = grouped.agg(*figures).limit(MAX_UNITS + 1).collect()
        _check_size(len(counted), "a larger width")
        if null_count := sum(row[4] for row in counted if row[0] is None):
            raise SourceError(
                f"column {ranges.column!r} is NULL in {null_count} rows, which would belong to no transaction: leave "
                "them out of the DataFrame, or give them a value"
            )
        read = [row for row in counted if not row[1]]
        behind = through = sum(row[4] for row in read), sum(row[5] for row in read)
        units = []
        for _, _, first, last, count, keys in sorted((row for row in counted if row[1]), key=itemgetter(2)):
            through = through[0] + count, through[1] + keys
            units.append(Unit(str(ranges), first, last, count, through))
        return Catalogue(behind, tuple(units))

    def _files(self, files: InputFiles, after: int | str | None) -> Catalogue:
        changed = "unix_micros(_metadata.file_modification_time)"  # a timestamp would be in the local time zone
        try:
            stamps = self._whole().selectExpr(
                "_metadata.file_path path", "_metadata.file_size size", f"{changed} changed"
            )
        except AnalysisException as error:
            raise TopologyError(
                "the DataFrame does not say which files its rows are from: cut by files what spark.read reads from "
                "files, before it is joined or aggregated, or cut by ColumnRanges"
            ) from error
        counted = stamps.groupBy("path", "size", "changed").count().limit(MAX_UNITS + 1).collect()
        _check_size(len(counted), "fewer files")
        found = sorted((row[0], row[3], f"{row[0]} {row[1]} {row[2]}".encode()) for row in counted)
        behind = (0, 0)
        for path, count, stamp in found:
            if after is not None and path <= str(after):
                behind = _through(behind, count, stamp)
        ahead = [each for each in found if after is None or each[0] > str(after)]
        step = files.files_per_batch
        groups = (ahead[start : start + step] for start in range(0, len(ahead), step))
        units = (
            (group[0][0], group[-1][0], sum(each[1] for each in group), b"\n".join(each[2] for each in group))
            for group in groups
        )
        return Catalogue(behind, tuple(self._chained(units, behind)))

    def _versions(self, versions: Versions, after: int | str | None) -> Catalogue:
        behind = (0, 0)
        ahead = []
        for version in sorted(map(int, versions.existing(self._session))):
            if after is not None and version <= int(after):
                behind = _through(behind, 1, b"%d" % version)
            else:
                ahead.append((version, version, None, b"%d" % version))
        return Catalogue(behind, tuple(self._chained(ahead, behind)))

    def _chained(self, units: Iterable[tuple[Any, Any, int | None, bytes]], behind: tuple[int, int]) -> Iterable[Unit]:
        through = behind
        for first, last, row_count, stamp in units:
            through = _through(through, 1 if row_count is None else row_count, stamp)
            yield Unit(str(self._spout.cut), first, last, row_count, through)

    def _key(self, column: str) -> str:
        """Returns the SQL of the column as integers."""
        match self._type(column):
            case DateType():
                return f"unix_date({quoted(column)})"
            case TimestampType():
                return f"unix_micros({quoted(column)})"
            case _:
                return f"cast({quoted(column)} AS bigint)"

    def _bound(self, key: int | str) -> str:
        """Returns a literal of the column's own type, so that Spark can push the filter down to the source."""
        cut = self._spout.cut
        assert isinstance(cut, ColumnRanges)
        match self._type(cut.column):
            case DateType():
                return f"date_from_unix_date({key})"
            case TimestampType():
                return f"timestamp_micros({key})"
            case _:
                return str(key)

    def _type(self, column: str) -> Any:
        schema = self._whole().schema
        if column not in schema.names:
            raise TopologyError(f"the DataFrame has no column {column!r}, by which it is cut; it has {schema.names}")
        if is_ambiguous(self._whole(), column):
            raise TopologyError(f"the DataFrame has several columns {column!r}, by which it is cut: {schema.names}")
        found = schema[column].dataType
        if not isinstance(found, IntegralType | DateType | TimestampType):
            raise TopologyError(
                f"column {column!r} is {found.simpleString()}, and only integers, dates and timestamps are cut into "
                "ranges: take another column, or add one"
            )
        return found

    def _width(self, ranges: ColumnRanges) -> int:
        """Returns the width in the units of the key."""
        found, width = self._type(ranges.column), ranges.width
        if isinstance(found, IntegralType) and isinstance(width, int):
            return width
        if isinstance(found, TimestampType) and isinstance(width, dt.timedelta):
            return width // dt.timedelta(microseconds=1)
        if isinstance(found, DateType) and isinstance(width, dt.timedelta) and not width % dt.timedelta(days=1):
            return width.days
        raise TopologyError(
            f"width of ColumnRanges is {width!r} and column {ranges.column!r} is {found.simpleString()}: give an "
            "integer for integers, a timedelta for timestamps, and one of whole days for dates"
        )


def _through(before: tuple[int, int], count: int, stamp: bytes) -> tuple[int, int]:
    digest = before[1]
    for each in stamp.split(b"\n") if stamp else ():
        digest = digest64(b"%016x" % digest, each)
    return before[0] + count, digest


def _frame(made: Any) -> DataFrame:
    frame: DataFrame = expect_made(DataFrame, "the source of DataFrameBatches", made)
    return frame


def _check_size(unit_count: int, remedy: str) -> None:
    if unit_count > MAX_UNITS:
        raise TopologyError(f"the DataFrame would be cut into more than {MAX_UNITS} transactions; give {remedy}")
