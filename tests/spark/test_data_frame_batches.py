"""DataFrames as a source on the real engine: every row once, and the same rows whenever they are read again."""

from __future__ import annotations

import datetime as dt
import shutil
import time

import pytest
from pyspark.sql import SparkSession

from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches, InputFiles, Versions
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.errors import FailedException, SourceError, TopologyError
from tests.support.runs.collecting import Collecting
from tests.support.spark.bolts import once
from tests.support.spark.clusters import Cluster
from tests.support.spark.faults import OneFrame, tasks_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]

SEEN = "{frames}:seen"


class Keep(Collecting):
    """Counts each value."""

    seen = HashState("seen", value=int)

    def finish_batch(self):
        for tup in self.tuples:
            self.seen.increment(self.shown(tup[0]), 1)

    def shown(self, value):
        return str(value)


def topology(source, columns, cut, *, parallelism=2, keep=None):
    builder = TransactionalTopologyBuilder(
        "frames", "rows", DataFrameBatches(source, columns, cut), parallelism=parallelism
    )
    builder.set_committer_bolt("keep", keep or Keep(), parallelism=2).fields_grouping("rows", [columns[0]])
    return builder.build()


def numbers(low, high):
    return {str(number): 1 for number in range(low, high)}


@pytest.fixture
def session(cluster):
    return SparkSession(cluster.context)


@pytest.mark.parametrize("parallelism", [1, 2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.often("2")
def test_every_row_of_a_table_is_read_once_by_ranges_of_a_column(cluster, session, parallelism):
    frame = session.range(0, 1000, 1, 5)
    found = cluster.run(topology(frame, ["id"], ColumnRanges("id", 128), parallelism=parallelism))

    assert cluster.hash(SEEN) == numbers(0, 1000)
    assert (found.committed, found.tuples, found.counters) == (8, 1000, {})


@pytest.mark.nightly
def test_ranges_without_rows_are_left_out_and_negative_numbers_are_cut_alike(cluster, session):
    frame = session.createDataFrame([(-250,), (-1,), (0,), (99,), (1_000_000,)], "n int")
    found = cluster.run(topology(lambda _: frame, ["n"], ColumnRanges("n", 100)))

    assert cluster.hash(SEEN) == {"-250": 1, "-1": 1, "0": 1, "99": 1, "1000000": 1}
    assert found.committed == 4


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sql", "width"),
    [
        ("timestamp '2024-01-01 00:00:00Z' + make_interval(0,0,0,0,0, cast(id as int))", dt.timedelta(minutes=10)),
        ("date_add(date '1969-12-01', cast(id as int))", dt.timedelta(days=10)),
    ],
)
def test_dates_and_timestamps_are_cut_by_periods(cluster, session, sql, width):
    frame = session.range(60).selectExpr("id", f"{sql} AS at")
    found = cluster.run(topology(frame, ["id"], ColumnRanges("at", width)))

    assert cluster.hash(SEEN) == numbers(0, 60)
    assert found.committed in (6, 7)


@pytest.mark.nightly
def test_as_many_rows_below_the_position_with_other_keys_are_named(cluster, session):
    ids = [*range(20), 55]
    made = topology(lambda spark: spark.createDataFrame([(n,) for n in ids], "id int"), ["id"], ColumnRanges("id", 10))
    cluster.run(made)
    ids.remove(3)
    ids += [31, 70]
    with pytest.raises(SourceError, match="the input up to 55 is not what was read: other rows"):
        cluster.run(made)
    ids.remove(31)
    ids.append(3)
    cluster.run(made)
    assert cluster.hash(SEEN) == {**numbers(0, 20), "55": 1, "70": 1}


@pytest.mark.parametrize("early_commit", [True, False])
@pytest.mark.often("False")
def test_a_replay_that_gives_other_rows_ends_the_run_by_name(cluster, session, early_commit):
    path, marker = cluster.notes / "table", cluster.notes / "rewritten"
    session.range(0, 100, 1, 1).write.parquet(str(path))

    class Rewrite(Keep):
        """Puts other rows into the table while its transaction is under way."""

        def finish_batch(self):
            if once(marker):
                (file,) = path.glob("*.parquet")
                shutil.copy(path.parent / "other" / "x.parquet", file)
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
                raise FailedException("asked for once")
            super().finish_batch()

    other = path.parent / "other"
    session.range(0, 100, 1, 1).selectExpr("if(id = 7, 8, id) as id").write.parquet(str(other))
    next(other.glob("*.parquet")).rename(other / "x.parquet")
    made = topology(lambda spark: spark.read.parquet(str(path)), ["id"], ColumnRanges("id", 1000), keep=Rewrite())

    with pytest.raises(SourceError, match="it had 100 rows when it was read first, and has others now"):
        cluster.run(made, early_commit=early_commit)
    assert cluster.hash(SEEN) == {}


def test_rows_without_a_value_to_be_cut_by_are_refused(cluster, session):
    frame = session.createDataFrame([(1,), (None,)], "n int")
    with pytest.raises(SourceError, match="column 'n' is NULL in 1 rows"):
        cluster.run(topology(frame, ["n"], ColumnRanges("n", 10)))


@pytest.mark.parametrize(
    ("columns", "cut", "told"),
    [
        ("'1' AS text", ColumnRanges("m", 10), r"has no column 'm', by which it is cut; it has \['n', 'text'\]"),
        ("'1' AS text", ColumnRanges("text", 10), "column 'text' is string, and only integers, dates and timestamps"),
        ("1L AS id", ColumnRanges("id", dt.timedelta(1)), "column 'id' is bigint: give an integer for integers"),
        ("1 AS id, 2 AS id", ColumnRanges("id", 10), "several columns 'id', by which it is cut"),
        ("1 AS id", InputFiles(), "does not say which files its rows are from"),
    ],
)
def test_a_frame_that_cannot_be_cut_so_is_refused_by_name(cluster, session, columns, cut, told):
    frame = session.sql(f"SELECT 3 AS n, {columns}")
    with pytest.raises(TopologyError, match=told):
        cluster.run(topology(lambda _: frame, ["n"], cut))


@pytest.mark.nightly
def test_files_are_read_once_in_the_order_of_their_names_and_new_ones_by_the_next_run(cluster, session):
    path = cluster.notes / "in files"
    path.mkdir()

    def put(name, low, high):
        (path / name).write_text("".join(f'{{"n": {number}}}\n' for number in range(low, high)))

    for number in range(5):
        put(f"{number}.json", 10 * number, 10 * number + 10)

    made = topology(lambda spark: spark.read.schema("n int").json(str(path)), ["n"], InputFiles(2))
    assert cluster.run(made).committed == 3
    put("5.json", 50, 60)
    assert cluster.run(made).committed == 1
    assert cluster.hash(SEEN) == numbers(0, 60)

    with pytest.MonkeyPatch.context() as patch:
        for zone in ("America/New_York", "Asia/Kolkata"):  # a machine in another time zone reads the same files
            patch.setenv("TZ", zone)
            time.tzset()
            assert cluster.run(made).committed == 0
    time.tzset()

    put("1.json", 10, 20)  # as it was, but another file
    put("11.json", 0, 3)
    with pytest.raises(SourceError, match="60 rows were read, and 63 are there now"):
        cluster.run(made)
    (path / "11.json").unlink()
    with pytest.raises(SourceError, match="is not what was read: other rows, files or versions are there now"):
        cluster.run(made)


@pytest.mark.nightly
def test_versions_are_transactions_of_their_own(cluster, session):
    def source(spark, version):
        return spark.range(10 * version, 10 * version + 10)

    versions = [1, 2]
    made = topology(source, ["id"], Versions(lambda _: versions))
    assert cluster.run(made).committed == 2
    versions += [3, 7]
    assert cluster.run(made).committed == 2

    assert cluster.hash(SEEN) == {**numbers(10, 40), **numbers(70, 80)}


def test_an_empty_frame_is_no_transaction(cluster, session):
    assert cluster.run(topology(session.range(0), ["id"], ColumnRanges("id", 5))).committed == 0


@pytest.mark.parametrize(
    "change", ["alter", *(pytest.param(change, marks=pytest.mark.nightly) for change in ("drop", "double"))]
)
def test_a_frame_of_rows_that_is_lost_or_altered_fails_its_attempt_and_not_the_answer(cluster, session, change):
    made = topology(session.range(0, 300, 1, 3), ["id"], ColumnRanges("id", 100))
    fault = OneFrame(cluster.notes / "hit", tasks_of(made, "keep"), 2, change)
    found = cluster.run(made, frame_fault=fault)

    assert (cluster.notes / "hit").exists()
    assert found.failed_attempts >= 1
    assert cluster.hash(SEEN) == numbers(0, 300)


class Lengths(Keep):
    """Counts texts by their length."""

    def shown(self, value):
        return str(len(value))


@pytest.mark.nightly
def test_rows_do_not_pass_through_the_driver(contexts, redis_backend, tmp_path):
    context = contexts.open(spark__driver__maxResultSize="500k")
    cluster = Cluster({"spark": context}, redis_backend.url, redis_backend.client(), tmp_path)
    hashes = ", ".join(f"sha2(concat(id, ' {number}'), 512)" for number in range(9))
    text = SparkSession(context).range(0, 4000, 1, 2).selectExpr("id", f"concat({hashes}) AS text")
    with pytest.raises(Exception, match="maxResultSize"):
        text.collect()
    assert cluster.run(topology(text, ["text"], ColumnRanges("id", 2000), keep=Lengths())).tuples == 4000
    assert cluster.hash(SEEN) == {"1152": 4000}


class Shown(Keep):
    """Keeps what each value is to Python."""

    def shown(self, value):
        return repr(value)


@pytest.mark.nightly
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_the_first_and_the_last_moments_of_pythons_years_are_read_in_any_time_zone(cluster, session, zone):
    moments = ["0001-01-01T00:00:00Z", "1883-11-18T12:00:00.000001Z", "9999-12-31T23:59:59.999999Z"]
    expected = [dt.datetime.fromisoformat(each) for each in moments]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    micros = ", ".join(f"timestamp_micros({(each - epoch) // dt.timedelta(microseconds=1)}L)" for each in expected)
    frame = session.range(1).selectExpr("id", f"explode(array({micros})) AS at")
    frame = frame.selectExpr("struct(at, array(at) AS all, map(at, named_struct('in', at)) AS by) AS at", "id")
    session.conf.set("spark.sql.session.timeZone", zone)
    cluster.run(topology(lambda _: frame, ["at"], ColumnRanges("id", 1), keep=Shown()))
    assert cluster.hash(SEEN) == {repr({"at": each, "all": [each], "by": {each: {"in": each}}}): 1 for each in expected}


NOT_IN_PYTHON = "a row of the DataFrame holds a value that Python cannot have"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("timestamp_micros(9000000000000000000L) AS at", NOT_IN_PYTHON),
        ("date_from_unix_date(99999999) AS at", NOT_IN_PYTHON),
        ("interval 1 day AS at", "column 'at' of the DataFrame holds interval day, which a tuple cannot carry"),
        ("array(interval 1 month) AS at", "column 'at' of the DataFrame holds interval month, which a tuple"),
        ("map(array(1), 2) AS at", "column 'at' of the DataFrame holds map<array<int>,int>, which a tuple"),
        ("cast(X'ff' AS string) AS at", r"the DataFrame holds a text that is not UTF-8, .* option\('encoding'"),
        ("array(NULL, cast(X'ff' AS string)) AS at", "a row of the DataFrame holds a text that is not UTF-8"),
        ("named_struct('a', 1, 'a', 2) AS at", "give each field of a struct its own name"),
        ("1 AS at, 2 AS at", r"the DataFrame has more than one column 'at' in \['id', 'at', 'at'\], as after a join"),
        ("1 AS at, 2 AS AT", r"the DataFrame has more than one column 'at' in \['id', 'at', 'AT'\], as after a join"),
    ],
)
def test_what_a_tuple_cannot_carry_of_a_frame_is_refused_by_name(cluster, session, columns, told):
    frame = session.sql(f"SELECT 1L AS id, {columns}")
    with pytest.raises(SourceError, match=told):
        cluster.run(topology(lambda _: frame, ["at"], ColumnRanges("id", 10)))
