"""Plain topologies on real Spark: what was acked was processed, what was not fails and is emitted again."""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict

import pytest

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.streams.groupings import CustomGrouping
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_topology import PlainTopology
from coordinator.start import RunStatus, start
from examples import plain_word_count
from state.errors import FailedException
from tests.support.spark.bolts import note, notes, once
from tests.support.spark.mishaps import AtValue, fail, hang, kill_worker
from tests.support.spark.plain_jobs import Feed, Join, Seen, builder_of, run
from tests.support.topologies.plain_components import AnchorTwice, Identity

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _nothing_told():
    Feed.told.clear()


@pytest.fixture
def context(contexts):
    return contexts.open()


def acked():
    return sorted(position for what, position in Feed.told if what == "ack")


def failed():
    return sorted(position for what, position in Feed.told if what == "fail")


def seen_by(path, component_id):
    return Counter(value for component, _, value in notes(path) if component == component_id)


@pytest.mark.nightly
def test_a_run_in_the_background_is_watched_and_drained(context, tmp_path):
    progressed = threading.Event()
    builder = builder_of(["nathan", "bob"])
    builder.set_bolt("seen", Seen(tmp_path / "notes")).shuffle_grouping("feed")

    topology: PlainTopology = builder.build()

    def look(statistics: PlainStatistics) -> None:
        if statistics.acked == 2:
            progressed.set()

    with start(topology, spark=context, on_progress=look) as run:
        assert progressed.wait(60.0)
        assert run.statistics.acked == 2

    assert (run.status, run.result().acked, acked()) == (RunStatus.DONE, 2, [0, 1])


class CountWords(BaseBasicBolt):
    """Emits the running count of each word."""

    output_fields = ("word", "count")

    def __init__(self, path):
        self.path = str(path)

    def prepare(self, conf, context):
        super().prepare(conf, context)
        self.counts: Counter[str] = Counter()

    def execute(self, tup, collector):
        word = tup[0]
        self.counts[word] += 1
        note(self.path, "count", self.context.task_index, [word, self.counts[word]])
        collector.emit([word, self.counts[word]])


class GlobalCount(BaseBasicBolt):
    """Counts tuples."""

    def __init__(self, path):
        self.path, self.count = str(path), 0

    def execute(self, tup, collector):
        self.count += 1
        note(self.path, "global", self.context.task_index, self.count)


@pytest.mark.case(id="G8")
def test_words_are_counted_by_key_and_all_of_them_in_order(context, tmp_path):
    # a bolt's memory lasts one wave on Spark, so these counts are right because all four words are in one wave
    path = tmp_path / "notes"
    builder = builder_of(["nathan", "bob", "joey", "nathan"])
    builder.set_bolt("count", CountWords(path), 3).fields_grouping("feed", ["value"])
    builder.set_bolt("global", GlobalCount(path)).global_grouping("count")

    statistics = run(context, builder.build())

    counted = [value for component, _, value in notes(path) if component == "count"]
    assert sorted(map(tuple, counted)) == [("bob", 1), ("joey", 1), ("nathan", 1), ("nathan", 2)]
    assert [value for component, _, value in notes(path) if component == "global"] == [1, 2, 3, 4]
    assert (statistics.waves, acked(), failed()) == (1, [0, 1, 2, 3], [])


class Split(BaseBasicBolt):
    """Splits lines into words; every third line fails the first time."""

    output_fields = ("word",)

    def __init__(self, folder):
        self.folder = folder

    def execute(self, tup, collector):
        number, _, text = tup["value"].partition(":")
        for word in text.split():
            collector.emit([word])
        if int(number) % 3 == 0 and once(self.folder / number):
            raise FailedException("once")


@pytest.mark.parametrize("ackers", [1, 3])
def test_a_word_count_whose_bolts_fail_some_lines_once_processes_every_line_at_least_once(context, tmp_path, ackers):
    path, lines = tmp_path / "notes", [f"{number}:to be or not{number}" for number in range(30)]
    builder = builder_of(lines, tasks=2, ackers=ackers, pending=10)
    builder.set_bolt("split", Split(tmp_path), 2).shuffle_grouping("feed")
    builder.set_bolt("count", CountWords(path), 2).fields_grouping("split", ["word"])

    statistics = run(context, builder.build())

    assert acked() == list(range(30))
    assert failed() == list(range(0, 30, 3))
    assert (statistics.emitted, statistics.acked, statistics.failed) == (40, 30, 10)
    counted = Counter(value[0] for _, _, value in notes(path))
    # a line that failed had its words counted twice: at least once is what is promised
    assert counted == {"to": 40, "be": 40, "or": 40, **{f"not{n}": 2 if n % 3 == 0 else 1 for n in range(30)}}


class FirstTwo(CustomGrouping):
    """The first two tasks."""

    def prepare(self, context):
        pass

    def choose_tasks(self, values):
        return [0, 1]


class Sort(BaseRichBolt):
    """Every number on the default stream, and directly to the task it names."""

    output_fields = ("value",)

    def declare_output_fields(self, declarer):
        super().declare_output_fields(declarer)
        declarer.declare_stream("named", ("value",), direct=True)

    def execute(self, tup):
        self.collector.emit(tup.values, tup)
        tasks = self.context.component_tasks("direct")
        self.collector.emit_direct(tasks[tup["value"] % len(tasks)], tup.values, tup, "named")
        self.collector.ack(tup)


def test_every_grouping_brings_each_tuple_where_it_belongs_and_all_are_acked(context, tmp_path):
    path, count = tmp_path / "notes", 24
    builder = builder_of(range(count), tasks=2)
    builder.set_bolt("sort", Sort(), 2).none_grouping("feed")
    builder.set_bolt("shuffle", Seen(path), 3).shuffle_grouping("sort")
    builder.set_bolt("fields", Seen(path), 3).fields_grouping("sort", ["value"])
    builder.set_bolt("partial", Seen(path), 3).partial_key_grouping("sort", ["value"])
    builder.set_bolt("all", Seen(path), 2).all_grouping("sort")
    builder.set_bolt("global", Seen(path), 2).global_grouping("sort")
    builder.set_bolt("custom", Seen(path), 3).grouping("sort", FirstTwo())
    builder.set_bolt("local", Seen(path), 2).local_or_shuffle_grouping("sort")
    builder.set_bolt("direct", Seen(path), 3).direct_grouping("sort", "named")

    run(context, builder.build())

    where: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for component, task, value in notes(path):
        where[component][task, value] += 1
    once_each = Counter(range(count))
    for component in ("shuffle", "fields", "partial", "local"):
        assert seen_by(path, component) == once_each, component
    assert sorted(Counter(task for task, _ in where["shuffle"]).values()) == [8, 8, 8]
    assert where["all"] == Counter((task, value) for task in range(2) for value in range(count))
    assert where["custom"] == where["all"]
    assert where["global"] == Counter((0, value) for value in range(count))
    assert where["direct"] == Counter((value % 3, value) for value in range(count))
    assert (acked(), failed()) == (list(range(count)), [])


@pytest.mark.parametrize("ackers", [0, 1, 3])
def test_tuples_jump_over_levels_and_trees_close_however_many_ackers_there_are(context, tmp_path, ackers):
    path = tmp_path / "notes"
    builder = builder_of(range(10), tasks=2, ackers=ackers)
    builder.set_bolt("first", Identity(), 2).shuffle_grouping("feed")
    builder.set_bolt("second", Identity()).shuffle_grouping("first")
    last = builder.set_bolt("last", Seen(path), 3)
    last.shuffle_grouping("feed").fields_grouping("first", ["value"]).shuffle_grouping("second")

    run(context, builder.build())

    assert seen_by(path, "last") == Counter(dict.fromkeys(range(10), 3))
    assert (acked(), failed()) == (list(range(10)), [])


@pytest.mark.case(id="G6")
def test_a_branch_joined_by_a_bolt_that_anchors_on_both_sides_is_acked(context, tmp_path):
    path = tmp_path / "notes"
    builder = builder_of(range(6))
    builder.set_bolt("left", Identity(), 2).shuffle_grouping("feed")
    builder.set_bolt("right", Identity(), 2).shuffle_grouping("feed")
    joined = builder.set_bolt("join", Join(), 2)
    joined.fields_grouping("left", ["value"]).fields_grouping("right", ["value"])
    builder.set_bolt("end", Seen(path)).shuffle_grouping("join")

    run(context, builder.build())

    assert seen_by(path, "end") == Counter(range(6))
    assert (acked(), failed()) == (list(range(6)), [])


@pytest.mark.case(id="G6")
@pytest.mark.nightly
def test_one_side_of_a_join_that_is_missing_fails_the_other(context):
    builder = builder_of(range(4), replays=False)
    builder.set_bolt("left", Identity()).shuffle_grouping("feed")
    builder.set_bolt("right", AtValue(fail, 2)).shuffle_grouping("feed")
    joined = builder.set_bolt("join", Join(), 2)
    joined.fields_grouping("left", ["value"]).fields_grouping("right", ["value"])

    run(context, builder.build())

    assert (acked(), failed()) == ([0, 1, 3], [2])


@pytest.mark.case(id="G6")
@pytest.mark.parametrize("feeds", [1, 3])
def test_a_tuple_anchored_twice_on_the_same_one_is_acked_once(context, feeds):
    builder = builder_of(range(feeds))
    builder.set_bolt("twice", AnchorTwice()).shuffle_grouping("feed")
    builder.set_bolt("end", Identity()).shuffle_grouping("twice")

    run(context, builder.build())

    assert (acked(), failed()) == (list(range(feeds)), [])


@pytest.mark.nightly
def test_ticks_do_not_come_and_the_log_says_so(context, tmp_path, caplog):
    path = tmp_path / "notes"
    builder = builder_of(["a", "b"], pending=1)
    builder.set_bolt("seen", Seen(path)).shuffle_grouping("feed").add_configuration(TICK_TUPLE_FREQ_SECS, 0.001)
    caplog.set_level("WARNING", "txbatch")

    statistics = run(context, builder.build())

    assert "seen: tick tuples were asked for, but there are none on Spark" in caplog.messages
    assert (statistics.waves, acked()) == (2, [0, 1])
    assert seen_by(path, "seen") == {"a": 1, "b": 1}


def test_a_worker_that_is_killed_fails_its_wave_which_is_processed_when_it_comes_again(context, contexts, tmp_path):
    path = tmp_path / "notes"
    builder = builder_of(range(4))
    builder.set_bolt("work", AtValue(kill_worker, 2, tmp_path / "killed"), 2).fields_grouping("feed", ["value"])
    builder.set_bolt("end", Seen(path), 2).shuffle_grouping("work")
    before = contexts.shuffle_files()  # Spark SQL leaves its own to the garbage collector

    statistics = run(context, builder.build())

    assert (tmp_path / "killed").exists()
    assert (statistics.crashed_waves, failed(), acked()) == (1, [0, 1, 2, 3], [0, 1, 2, 3])
    assert set(seen_by(path, "end")) == {0, 1, 2, 3}
    assert set(contexts.shuffle_files()) <= set(before)


@pytest.mark.nightly
@pytest.mark.redis
def test_a_worker_that_is_killed_is_run_again_by_a_spark_that_retries_and_nothing_fails(cluster_that_retries, tmp_path):
    path = tmp_path / "notes"
    builder = builder_of(range(40), tasks=2)
    builder.set_bolt("first", Identity(), 2).shuffle_grouping("feed")
    builder.set_bolt("work", AtValue(kill_worker, 21, tmp_path / "killed"), 2).shuffle_grouping("first")
    builder.set_bolt("end", Seen(path), 2).shuffle_grouping("work")

    statistics = run(cluster_that_retries.context, builder.build())

    assert (tmp_path / "killed").exists()
    assert (statistics.crashed_waves, failed(), acked()) == (0, [], list(range(40)))


@pytest.mark.parametrize("timeout_s", [3.0, pytest.param(6.0, marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_a_wave_that_hangs_is_ended_after_twice_the_message_timeout_named_and_fails(
    context, tmp_path, caplog, timeout_s
):
    builder = builder_of([0, 1])
    builder.set_message_timeout_s(timeout_s)
    builder.set_bolt("work", AtValue(hang, 1, tmp_path / "hung")).shuffle_grouping("feed")

    with caplog.at_level(logging.WARNING, logger="txbatch"):
        statistics = run(context, builder.build())

    limit = f"a wave's limit of {2 * timeout_s:g} s"
    assert f"component 'work', task 0 had not returned when {limit} ran out, in hang (" in caplog.text

    assert (set(failed()), acked()) == ({0, 1}, [0, 1])
    assert statistics.crashed_waves == 1


def test_shuffle_files_of_a_wave_are_gone_with_it(context, contexts):
    builder = builder_of(range(40), pending=10)
    builder.set_bolt("first", Identity(), 2).shuffle_grouping("feed")
    builder.set_bolt("second", Identity(), 2).shuffle_grouping("first")

    before, left = set(contexts.shuffle_files()), []
    run(context, builder.build(), on_progress=lambda _: left.append(set(contexts.shuffle_files()) - before))

    assert left == [set()] * 4


@pytest.mark.every_spark
def test_the_example_counts_every_word(context, tmp_path):
    output = tmp_path / "counts.txt"
    statistics = run(context, plain_word_count.topology(output=output))
    assert (statistics.acked, statistics.failed) == (len(plain_word_count.SENTENCES), 0)
    words = Counter(word for sentence in plain_word_count.SENTENCES for word in sentence.split())
    running = [f"{word} {number}" for word, count in words.items() for number in range(1, count + 1)]
    assert sorted(output.read_text(encoding="utf-8").splitlines()) == sorted(running)
