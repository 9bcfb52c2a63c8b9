"""Feeds stage 0 with the partitions of each transaction's DataFrame, whose rows stay on the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from coordinated_bolt.batches.wave_outbox import WaveOutbox
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, Source
from coordinator.engines.spark.intake.row_values import Convert, Shape, counted_from_1970, row_converter, shape_of
from coordinator.engines.waves.alarm import alarm_for
from coordinator.engines.waves.stage import WaveInput
from coordinator.engines.waves.stage_context import Addressed, Post, StageContext
from coordinator.spouts.partition_cut import UNCHAINED, partition_scope
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.emitter_task import EmitterTask, chained_to, report_chain
from coordinator.transactional.engine import WaveProcessed
from state.codec import unpack
from state.errors import SourceError
from state.printable import message_of

ROW_COUNT, HASH_SUM = "__rows", "__row_hashes"
"""Counters that report to the driver what was read; users do not see them."""


@dataclass(frozen=True, slots=True)
class Role:
    """The part of one Spark partition in one attempt.

    Attributes:
        batch_index: the index of the attempt's batch in the wave.
        task_id: the task of the spout that the partition stands for.
        shapes: how the values of its rows are converted; empty if it has no rows.
        fault: why the rows cannot be read, which fails the attempt.
    """

    batch_index: int
    task_id: int
    shapes: tuple[Shape, ...] = ()
    fault: str = ""


class RoleRows:
    """The rows of one role (executor).

    Args:
        role: the role whose rows these are.
        records: its Spark rows, each with a 64-bit hash as its last value if the wave is tallied.
        is_tallied: whether rows are counted and their hashes added up.
    """

    def __init__(self, role: Role, records: Iterable[Any], *, is_tallied: bool) -> None:
        self._role, self._records, self._is_tallied = role, records, is_tallied
        self._row_count, self._hash_sum = 0, 0

    def __iter__(self) -> Iterator[list[Any]]:
        """See `Rows`.

        Raises:
            SourceError: the rows cannot be read.
        """
        if self._role.fault:
            raise SourceError(self._role.fault)
        if not self._role.shapes:
            return
        try:
            yield from self._converted(row_converter(self._role.shapes))
        except (OverflowError, ValueError) as error:
            raise SourceError(
                f"a row of the DataFrame holds a value that Python cannot have: {message_of(error)}; leave out or "
                "replace dates and times outside the years 1 to 9999, for example with `where`"
            ) from error

    def _converted(self, convert: Convert) -> Iterator[list[Any]]:
        if not self._is_tallied:
            yield from map(convert, self._records)
            return
        for record in self._records:
            row = convert(record)
            if (found := row.pop()) is None:
                raise SourceError(
                    "a row of the DataFrame holds a text that is not UTF-8, which Spark would alter: name the encoding "
                    "where it is read, as by option('encoding', 'ISO-8859-1'), or select it as binary"
                )
            self._hash_sum += found
            self._row_count += 1
            yield row

    def tally(self) -> dict[str, int]:
        """See `Rows`."""
        if not self._is_tallied:
            return {}
        half = 2**63  # counters are signed
        return {ROW_COUNT: self._row_count, HASH_SUM: (self._hash_sum + half) % (2 * half) - half}


@dataclass(frozen=True, slots=True)
class RowStage:
    """Runs the spout's tasks on rows.

    Attributes:
        entry: the entry of the wave's job.
        wave: the attempts of the wave.
        roles: the roles of each Spark partition; only a partition with a single role has rows.
        is_tallied: whether rows end with their hash, and are counted and added up.
    """

    entry: StageContext[Plan]
    wave: WaveInput
    roles: tuple[tuple[Role, ...], ...]
    is_tallied: bool = False

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Addressed]:
        plan = self.entry.plan.value
        routes, wave = plan.chain.routes_into(1), self.wave.attempts()
        for role in self.roles[partition]:
            post = Post(routes)
            outbox = WaveOutbox(wave, post.send)
            wiring = plan.wirings[role.task_id]
            rows = RoleRows(role, records, is_tallied=self.is_tallied)
            chained = chained_to(plan, role.task_id, outbox.carrier, clock=perf_counter_ns)
            emitter = EmitterTask(wiring, outbox.carrier, {}, rows=rows, new_outbox=chained.outboxes(wiring))
            with alarm_for(wiring, self.entry.deadline) as alarm:
                batch = self.wave.batches[role.batch_index]
                for attempt, result in emitter.run([batch], alarm.begin):
                    report_chain(plan, role.task_id, attempt, result, chained, begin=alarm.begin, send=outbox.report)
            outbox.flush()
            yield from post.take()


if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import Column, DataFrame

FrameOf = Callable[[Any], "DataFrame"]
"""The metadata of a transaction -> its rows; called on the driver for every attempt, may raise `SourceError`."""

DIGEST_SCOPE = partition_scope(0)
"""The scope in which the number of rows and the sum of their hashes are stored, by txid."""


class RowIntake:
    """The intake of a `RowSpout`.

    Args:
        columns: the columns of the DataFrame, in the order of the tuples' fields.
        frame_of: returns the rows of a transaction.
        expected: metadata -> its number of rows, None if unknown; given if a transaction must have the same rows
            whenever it is read.
    """

    has_task_partitions = False

    def __init__(
        self, columns: tuple[str, ...], frame_of: FrameOf, expected: Callable[[Any], int | None] | None = None
    ) -> None:
        self._columns = columns
        self._frame_of = frame_of
        self._expected = expected

    def frames(self, jobs: FrameJobs, entry: StageContext[Plan], wave: WaveInput) -> Frames:
        """See `Intake.frames`."""
        tasks = entry.plan.value.chain.stages[0].tasks
        is_tallied = self._expected is not None
        read: list[RDD[Any]] = []
        roles: list[tuple[Role, ...]] = []
        without_rows: list[Role] = []
        for index, batch in enumerate(wave.batches):
            try:
                frame = selected(self._frame_of(unpack(batch.packed_metadata)), self._columns)
                shapes = tuple(shape_of(field.name, field.dataType) for field in frame.schema)
                read_as = [counted_from_1970(sql.col(quoted(each.name)), each.dataType) for each in frame.schema]
                frame = frame.select(*read_as, *([row_hash(frame)] if is_tallied else []))
            except SourceError as error:
                without_rows += [Role(index, task, fault=str(error)) for task in tasks]
                continue
            rows = frame.rdd
            if rows.getNumPartitions() > len(tasks):
                rows = rows.coalesce(len(tasks))
            partition_count = rows.getNumPartitions()
            if partition_count:
                read.append(rows)
            roles += [(Role(index, task, shapes),) for task in tasks[:partition_count]]
            without_rows += [Role(index, task) for task in tasks[partition_count:]]
        frames = []
        if read:
            rows_read = Source.of(jobs.context.union(read))
            frames.append(Frames(rows_read, (RowStage(entry, wave, tuple(roles), is_tallied),)))
        if without_rows:
            one = Source.of(jobs.context.parallelize([0], 1))
            frames.append(Frames(one, (RowStage(entry, wave, (tuple(without_rows),), is_tallied),)))
        return frames[0] if len(frames) == 1 else Frames(jobs.joined(*frames))

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        """See `Intake.checked`; stores a digest of the rows with the cuts of emitters, before anything is committed."""
        if self._expected is None:
            return processed
        stored = wave.stored.get(DIGEST_SCOPE, {})
        packed = {batch.attempt: batch.packed_metadata for batch in wave.batches}
        for outcome in processed.outcomes:
            seen = [outcome.counters.pop(ROW_COUNT, 0), outcome.counters.pop(HASH_SUM, 0) % 2**64]
            if outcome.failure is not None:
                continue
            expected = self._expected(unpack(packed[outcome.attempt]))
            before = stored.get(outcome.attempt.txid)
            if expected not in (None, seen[0]):
                outcome.failure = _changed(f"it had {expected} rows when it was cut and has {seen[0]} now")
            elif before not in (None, seen):
                outcome.failure = _changed(f"it had {before[0]} rows when it was read first, and has others now")
            else:
                outcome.metadata[DIGEST_SCOPE] = seen
                outcome.began_from[DIGEST_SCOPE] = UNCHAINED
        return processed


def _changed(story: str) -> Failure:
    return Failure(
        FailureKind.SOURCE,
        "DataFrame",
        0,
        f"the DataFrame was changed where a transaction reads it: {story}; give the rows again as they were, or start "
        "over, and let nothing change what is read but rows that join at its end",
    )


def row_hash(frame: DataFrame) -> Column:
    """Returns a 64-bit hash of a row, computed by Spark; NULLs matter, and maps are hashed as text.

    From Spark 4 on, it is NULL if a text is not UTF-8, since different such texts could become equal in Python.
    """
    parts: list[Column] = []
    is_valid = sql.lit(True)
    for field in frame.schema:
        value = sql.col(quoted(field.name))
        kind = field.dataType.simpleString()
        parts += [value.cast("string") if "map<" in kind else value, value.isNull()]
        if "string" in kind and hasattr(sql, "is_valid_utf8"):
            is_valid &= sql.is_valid_utf8(value.cast("string")) | value.isNull()
    return sql.when(is_valid, sql.xxhash64(*parts))


def selected(frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Returns a DataFrame of the columns that a spout reads (driver).

    Raises:
        SourceError: the DataFrame lacks such a column, or has it twice.
    """
    if twice := [name for name in columns if is_ambiguous(frame, name)]:
        raise SourceError(
            f"the DataFrame has more than one column {twice[0]!r} in {frame.columns}, as after a join: give each a "
            "name of its own with `withColumnRenamed` before the join, or drop one"
        )
    if missing := [name for name in columns if name not in frame.columns]:  # SQL would take `user` for a function
        raise SourceError(
            f"the DataFrame has columns {frame.columns}, and the spout wants {missing} too: select them under these "
            "names, or change the spout's"
        )
    return frame.select([quoted(name) for name in columns])


def is_ambiguous(frame: DataFrame, column: str) -> bool:
    """Returns whether a name could mean more than one of the columns in Spark."""
    if frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return frame.columns.count(column) > 1
    return [each.lower() for each in frame.columns].count(column.lower()) > 1


def quoted(column: str) -> str:
    """Returns a column's name as quoted in SQL, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"
