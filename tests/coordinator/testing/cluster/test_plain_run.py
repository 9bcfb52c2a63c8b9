"""A plain topology in one process: life cycle, time, ticks, hands-on bolts, errors."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest

from coordinated_bolt import TICK_TUPLE_FREQ_SECS, BaseBasicBolt, BaseRichBolt, BaseSpout, is_tick
from coordinator import FeederSpout, LocalCluster, RunOptions, TopologyBuilder
from coordinator.testing.cluster import plain_run
from state.errors import TopologyError, UserCodeError
from tests.support.topologies.plain_components import Identity, Numbers, Sink, fed_builder, start

T = 10


class Life(BaseRichBolt):
    """Records its life."""

    log: ClassVar[list[str]] = []

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        Life.log.append(f"prepare {context.task_index} of {context.task_count}")

    def execute(self, tup):
        Life.log.append("tick" if is_tick(tup) else f"execute {tup[0]}")
        if tup[0] == "bad":
            raise KeyError("bad value")
        self.collector.ack(tup)

    def cleanup(self):
        Life.log.append("cleanup")


class LivingSpout(FeederSpout):
    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        Life.log.append("open")

    def activate(self):
        Life.log.append("activate")

    def deactivate(self):
        Life.log.append("deactivate")

    def close(self):
        Life.log.append("close")


@pytest.fixture(autouse=True)
def _new_life():
    Life.log.clear()
    Numbers.acked.clear()
    Numbers.failed.clear()


def run_of(name, bolt, conf=None, *, spout=None, parallelism=1, **options):
    """A run of one bolt below a spout, by default one that is fed."""
    builder = TopologyBuilder("test")
    builder.set_spout("spout", spout or FeederSpout(("value",)))
    builder.set_bolt(name, bolt, parallelism=parallelism).shuffle_grouping("spout")
    return start(builder, conf, **options)


def held_builder():
    builder = fed_builder()
    builder.set_bolt("held", Identity()).shuffle_grouping("spout")
    builder.set_message_timeout_s(T)
    return builder


def held_run(**options):
    return start(held_builder(), by_hand=("held",), **options)


def feed(run, message_id, value=0):
    run.feed("spout", [value], message_id)
    run.run_until_idle()


def ends(run):
    """The messages that were acked, those that failed, and how many are pending."""
    return run.acked("spout"), run.failed("spout"), run.pending_count("spout")


# time


@pytest.mark.parametrize(
    ("emitted_at", "fails_at"), [(0, 20), (0.5, 20), (5, 20), (9.99, 20), (10, 30), (10.01, 30), (19.99, 30)]
)
def test_an_unacked_message_fails_between_t_and_2t_at_the_second_rotation(emitted_at, fails_at):
    run = held_run()
    run.advance_time(emitted_at)
    feed(run, "m")
    age_s = fails_at - emitted_at
    assert T < age_s <= 2 * T
    run.advance_time(age_s - 0.001)
    assert ends(run) == ([], [], 1)
    run.advance_time(0.001)
    assert ends(run) == ([], ["m"], 0)


def test_a_reset_keeps_a_message_from_timing_out():
    run = held_run()
    feed(run, "m")
    for _ in range(5):
        run.advance_time(T)
        run.reset_timeout(run.waiting("held")[0])
        run.run_until_idle()
    assert run.failed("spout") == []
    run.ack(run.waiting("held")[0])
    run.run_until_idle()
    assert run.acked("spout") == ["m"]


def test_trees_their_spout_has_given_up_do_not_stay_with_the_ackers():
    run = held_run()
    for number in range(5):
        feed(run, number)
    (acker,) = run._ackers
    run.advance_time(2 * T)
    assert run.failed("spout") == [0, 1, 2, 3, 4]
    assert len(acker) == 5
    run.advance_time(T)
    assert len(acker) == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_spout_at_its_bound_goes_on_when_its_message_times_out(seed):
    builder = TopologyBuilder("test")
    builder.set_spout("spout", Numbers(1))
    builder.set_bolt("held", Identity()).shuffle_grouping("spout")
    builder.set_max_spout_pending(1)
    builder.set_message_timeout_s(T)
    run = start(builder, seed=seed, by_hand=("held",))
    # the spout emits, is asked in vain, and tuple and INIT are delivered: nothing is left to do
    assert [run.tick() for _ in range(4)] == [True] * 4
    run.advance_time(2 * T)
    run.run_until_idle()
    assert len(run.emitted("spout")) == 2


@pytest.mark.case(id="P-12")
def test_without_ackers_messages_are_acked_at_once_and_never_fail_whatever_bolts_do():
    builder = held_builder()
    builder.set_acker_count(0)
    run = start(builder, by_hand=("held",))
    feed(run, "m")
    assert run.acked("spout") == ["m"]
    run.fail(run.waiting("held")[0])
    run.advance_time(10 * T)
    run.run_until_idle()
    assert ends(run) == (["m"], [], 0)


def test_bolts_that_ask_for_ticks_get_them_at_their_period():
    run = run_of("life", Life(), {TICK_TUPLE_FREQ_SECS: 3}, parallelism=2)
    Life.log.clear()
    run.advance_time(2.9)
    run.run_until_idle()
    assert Life.log == []
    run.advance_time(6.1)
    assert Life.log == []  # nothing is delivered while time moves
    run.run_until_idle()
    assert Life.log == ["tick"] * 6
    assert run.now_s == 9


@pytest.mark.parametrize("period", [0, -1, "5", None, True, float("nan")])
def test_a_tick_period_that_is_no_time_is_refused(period):
    message = f"component 'held': '{TICK_TUPLE_FREQ_SECS}' is {period!r}; give a number of seconds above 0"
    with pytest.raises(TopologyError, match=message):
        start(held_builder(), {TICK_TUPLE_FREQ_SECS: period})


# the life of a run


def test_bolts_are_prepared_before_spouts_open_and_all_are_closed_once():
    run = run_of("life", Life(), spout=LivingSpout(("value",)), parallelism=2)
    run.feed("spout", ["x"])
    run.run_until_idle()
    run.deactivate()
    run.close()
    run.close()
    assert Life.log[:5] == ["prepare 0 of 2", "prepare 1 of 2", "open", "activate", "execute x"]
    assert Life.log[5:] == ["deactivate", "close", "cleanup", "cleanup"]


def test_an_inactive_topology_emits_nothing_and_finishes_what_is_under_way():
    run = held_run()
    feed(run, "before")
    run.deactivate()
    feed(run, "after")
    run.ack(run.waiting("held")[0])
    run.run_until_idle()
    assert run.acked("spout") == ["before"]
    assert len(run.emitted("spout")) == 1
    run.activate()
    run.run_until_idle()
    assert len(run.emitted("spout")) == 2


def test_a_closed_run_calls_no_user_code_any_more():
    run = run_of("life", Life())
    run.feed("spout", ["a"])
    run.close()
    Life.log.clear()
    for move in (run.tick, run.activate, run.deactivate, run.run_until_idle, lambda: run.advance_time(100 * T)):
        with pytest.raises(RuntimeError, match="the run is closed"):
            move()
    assert Life.log == []


def test_what_user_code_raises_ends_the_run_and_every_task_is_closed_still():
    run = run_of("life", Life())
    run.feed("spout", ["bad"], "m")
    with pytest.raises(UserCodeError, match=r"component 'life', task 0, at tuple Tuple\(spout/default: value='bad'\)"):
        run.run_until_idle()
    for method in (run.tick, run.activate, run.deactivate, lambda: run.advance_time(1)):
        with pytest.raises(UserCodeError, match="KeyError: 'bad value'"):
            method()
    run.close()
    assert Life.log[-1] == "cleanup"


class RaisingCleanup(Sink):
    def cleanup(self):
        raise OSError("cannot clean up")


def test_a_cleanup_that_raises_keeps_nobody_else_from_cleaning_up():
    builder = fed_builder()
    builder.set_bolt("raising", RaisingCleanup()).shuffle_grouping("spout")
    builder.set_bolt("life", Life()).shuffle_grouping("spout")
    run = start(builder)
    with pytest.raises(UserCodeError, match="OSError: cannot clean up"):
        run.close()
    assert Life.log[-1] == "cleanup"


class Changing(BaseRichBolt):
    """Changes the list it was given, and shows it."""

    seen: ClassVar[list[list[int]]] = []

    def execute(self, tup):
        tup[0].append(len(tup[0]))
        Changing.seen.append(list(tup[0]))
        self.collector.ack(tup)


def test_tasks_share_no_values():
    builder = fed_builder()
    builder.set_bolt("changing", Changing(), parallelism=3).all_grouping("spout")
    run = start(builder)
    Changing.seen.clear()
    run.feed("spout", [[7]], "m")
    run.run_until_idle()
    assert Changing.seen == [[7, 1]] * 3
    assert run.acked("spout") == ["m"]


def test_an_endless_spout_is_stopped_by_the_bound_of_run_until_idle(monkeypatch):
    monkeypatch.setattr(plain_run, "STEP_LIMIT", 100)
    run = run_of("sink", Sink(), spout=Occasional(every=1))
    with pytest.raises(RuntimeError, match="the run is not idle after 100 steps"):
        run.run_until_idle()
    run.deactivate()
    assert run.run_until_idle() < 100


class Occasional(BaseSpout):
    """Has a tuple every so many times it is asked."""

    output_fields = ("value",)
    asked = 0

    def __init__(self, every=3):
        self.every = every

    def next_tuple(self):
        self.asked += 1
        if self.asked % self.every == 0:
            self.collector.emit([self.asked])


def test_a_spout_that_had_nothing_is_asked_again_by_the_next_tick():
    run = run_of("sink", Sink(), spout=Occasional())
    for _ in range(30):
        run.tick()
    assert [values for _, values in run.emitted("spout")][:3] == [[3], [6], [9]]


# handled by hand


def test_tuples_of_a_component_handled_by_hand_wait_for_the_test():
    builder = held_builder()
    builder.set_bolt("sink", Sink()).shuffle_grouping("held")
    run = start(builder, by_hand=("held",))
    for number in range(3):
        feed(run, number, value=number)
    one, two, three = run.waiting("held")
    assert [tup["value"] for tup in (one, two, three)] == [0, 1, 2]
    run.emit("held", ["joined"], anchors=[one, two])
    run.ack(one)
    run.ack(two)
    run.fail(three)
    assert run.waiting("held") == []
    assert (run.acked("spout"), run.failed("spout")) == ([], [])
    run.run_until_idle()
    assert sorted(run.acked("spout")) == [0, 1]
    assert run.failed("spout") == [2]
    assert run.emitted("held") == [("default", ["joined"])]


def test_only_what_waits_can_be_handled():
    run = held_run()
    feed(run, "m")
    (tup,) = run.waiting("held")
    run.ack(tup)
    with pytest.raises(ValueError, match="is not waiting there; take a tuple"):
        run.ack(tup)
    with pytest.raises(TopologyError, match="component 'held' is not handled by hand; name it in by_hand"):
        start(held_builder()).waiting("held")
    with pytest.raises(TopologyError, match="the topology has no bolt 'spout'"):
        start(held_builder(), by_hand=("spout",))


def test_only_feeders_are_fed_lists_and_only_what_is_there_is_asked_for():
    numbers, fed = run_of("sink", Sink(), spout=Numbers(1)), run_of("sink", Sink())
    for refused, said in (
        (lambda: numbers.feed("spout", [1]), "spout 'spout' cannot be fed: it is not a FeederSpout"),
        (lambda: numbers.feed("nobody", [1]), r"the topology has no spout 'nobody'; it has \['spout'\]"),
        (lambda: fed.feed("spout", "x"), r"feed takes a list of values, not 'x'; write \['x'\]"),
        (
            lambda: run_of("sink", Sink(), by_hand="sink"),
            r"by_hand takes a list of component ids, not 'sink'; write \['sink'\]",
        ),
    ):
        with pytest.raises(TopologyError, match=said):
            refused()


@pytest.mark.parametrize("given", [{"options": RunOptions()}, {"frame_fault": lambda frame: [frame]}])
def test_what_means_nothing_for_a_plain_topology_is_refused(given):
    builder = fed_builder()
    builder.set_bolt("sink", Sink()).shuffle_grouping("spout")
    [name] = given
    with LocalCluster() as cluster, pytest.raises(TopologyError, match=f"submit got {name}, which has no effect on a"):
        cluster.submit(builder.build(), **given)


# golden cases G8


class CountWords(BaseBasicBolt):
    output_fields = ("word", "count")

    def prepare(self, conf, context):
        super().prepare(conf, context)
        self.counts: Counter[str] = Counter()

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])


class CountAll(BaseBasicBolt):
    output_fields = ("count",)
    count = 0

    def execute(self, tup, collector):
        self.count += 1
        collector.emit([self.count])


@pytest.mark.case(id="G8")
@pytest.mark.parametrize("seed", range(20))
def test_words_are_counted_one_by_one_and_all_together(seed):
    builder = fed_builder(("word",), parallelism=3)
    builder.set_bolt("words", CountWords(), parallelism=4).fields_grouping("spout", ["word"])
    builder.set_bolt("all", CountAll()).global_grouping("spout")
    run = start(builder, seed=seed)
    for word in ("nathan", "bob", "joey", "nathan"):
        run.feed("spout", [word], word)
    run.run_until_idle()
    counted = sorted(values for _, values in run.emitted("words"))
    assert counted == [["bob", 1], ["joey", 1], ["nathan", 1], ["nathan", 2]]
    assert [values for _, values in run.emitted("all")] == [[1], [2], [3], [4]]
    assert sorted(run.acked("spout")) == ["bob", "joey", "nathan", "nathan"]


@pytest.mark.case(id="G8")
def test_24_tuples_of_4_spout_tasks_are_shuffled_evenly_over_6_tasks():
    builder = fed_builder(parallelism=4)
    builder.set_bolt("count", CountAll(), parallelism=6).shuffle_grouping("spout")
    run = start(builder)
    for number in range(24):
        run.feed("spout", [number])
    run.run_until_idle()
    assert sorted(values for _, values in run.emitted("count")) == [[n] for n in (1, 2, 3, 4) for _ in range(6)]


class Refuses(Life):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        raise OSError("no room")


def test_a_prepare_that_raises_leaves_no_task_open_and_starts_no_other():
    Life.log.clear()
    builder = fed_builder()
    builder.set_bolt("a_life", Life()).shuffle_grouping("spout")
    builder.set_bolt("b_refuses", Refuses()).shuffle_grouping("spout")
    builder.set_bolt("c_life", Life()).shuffle_grouping("spout")
    with pytest.raises(UserCodeError, match="OSError: no room"):
        start(builder)
    assert Life.log == ["prepare 0 of 1", "prepare 0 of 1", "cleanup", "cleanup"]
