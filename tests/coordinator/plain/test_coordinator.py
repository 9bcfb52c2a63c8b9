"""The driver's loop of a plain topology: whom it asks, when a wave is full, when it ends, what it tells."""

from __future__ import annotations

from typing import Any

import pytest

from coordinated_bolt.components.spouts import BaseSpout
from coordinated_bolt.transport.frames import open_frame
from coordinator.plain.plain_engine import WaveDrained
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.plain.tasks.messages import MessageKind
from coordinator.run import run
from coordinator.run_plain import run_plain
from coordinator.transactional.engine import WaveCrashed
from coordinator.watching.failure_cause import CrashKind
from state.errors import EngineError, TopologyError, UserCodeError, WaveCrashError
from tests.support.runs.waves_at_once import WavesAtOnce
from tests.support.tasks.wire import messages_of
from tests.support.topologies.components import Count, build
from tests.support.topologies.plain_components import Sink
from tests.support.topologies.plain_jobs import Clock, Diary, Told, coordinator_of, planned


class Answering(WavesAtOnce):
    """An engine that acks everything, unless it has another answer for the next waves.

    Args:
        answers: for the first waves; None acks everything.

    Attributes:
        waves: the numbers in each wave.
        wave_ids: of these waves.
    """

    def __init__(self, *answers, overlaps=False):
        self.answers, self.overlaps = list(answers), overlaps
        self.waves, self.wave_ids = [], []

    def run_wave(self, wave):
        self.wave_ids.append(wave.wave_id)
        frames = [open_frame(packed) for packed in wave.frames]
        messages = [message for frame in frames for message in messages_of(frame)]
        self.waves.append([m.payload[1][0] for m in messages if m.kind is MessageKind.TUPLE])
        Diary.note("wave", wave.wave_id.number)
        answer = self.answers.pop(0) if self.answers else None
        return answer or WaveDrained(frozenset().union(*wave.begun))


def plan_of(*spouts, pending=1000):
    builder = TopologyBuilder("test")
    sink = builder.set_bolt("sink", Sink())
    for number, spout in enumerate(spouts):
        builder.set_spout(f"spout{number}", spout)
        sink.shuffle_grouping(f"spout{number}")
    builder.set_max_spout_pending(pending)
    return planned(builder.build())


@pytest.fixture(autouse=True)
def _fresh_diary():
    Diary.take()


def test_the_calls_of_a_run_come_in_storms_order():
    coordinator_of(plan_of(Told([1, 2])), Answering()).run()
    assert Diary.take() == [
        ("open", 0),
        ("activate", 0),
        ("emit", 1),
        ("emit", 2),
        ("wave", 1),
        ("ack", 1),
        ("ack", 2),
        ("deactivate", 0),
        ("close", 0),
    ]


def test_spouts_take_turns_and_the_turn_goes_on_in_the_next_wave():
    engine = Answering()
    plan = plan_of(Told([1, 2, 3]), Told([11, 12]), Told([21]))
    coordinator_of(plan, engine, wave_tuples_max=2).run()
    emitted = [event[1] for event in Diary.take() if event[0] == "emit"]
    assert emitted == [1, 11, 21, 2, 12, 3]
    assert [sorted(wave) for wave in engine.waves] == [[1, 11], [2, 21], [3, 12]]
    assert [wave_id.number for wave_id in engine.wave_ids] == [1, 2, 3]
    assert len({wave_id.draw_id for wave_id in engine.wave_ids}) == 3


def test_a_spout_with_enough_under_way_waits_for_the_wave_to_end_and_the_others_do_not():
    engine = Answering()
    coordinator_of(plan_of(Told(range(5)), Told(range(10, 12)), pending=2), engine).run()
    assert [sorted(wave) for wave in engine.waves] == [[0, 1, 10, 11], [2, 3], [4]]


def test_a_wave_is_full_when_its_bytes_are_enough():
    engine = Answering()
    coordinator_of(plan_of(Told(["x" * 2000, "y" * 2000, "z" * 5000])), engine, wave_bytes_max=3000).run()
    assert [len(wave) for wave in engine.waves] == [2, 1]


class Slow(Told):
    """Takes a tenth of a second for each tuple."""

    clock = Clock()

    def next_tuple(self):
        Slow.clock.sleep(0.1)
        super().next_tuple()


def test_a_wave_is_full_when_it_was_filled_for_long_enough():
    engine = Answering()
    coordinator_of(plan_of(Slow(range(5))), engine, clock=Slow.clock, wave_fill_s=0.25).run()
    assert [len(wave) for wave in engine.waves] == [3, 2]


def test_the_pauses_grow_while_there_is_nothing_and_enough_rounds_of_nothing_end_the_run():
    clock = Clock()
    statistics = coordinator_of(plan_of(Told([1])), Answering(), clock=clock, idle_rounds=10).run()
    assert clock.slept == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.1, 0.1]
    assert (statistics.waves, statistics.acked) == (1, 1)


class Late(Told):
    """Has its next number only after it was asked three times in vain."""

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.asked = 0

    def next_tuple(self):
        self.asked += 1
        if self.asked % 4 == 0:
            super().next_tuple()


def test_a_spout_that_has_something_again_begins_the_count_of_rounds_anew():
    clock = Clock()
    statistics = coordinator_of(plan_of(Late([1, 2])), Answering(), clock=clock, idle_rounds=5).run()
    assert statistics.acked == 2
    assert clock.slept == [*[0.001, 0.002, 0.004], *[0.001, 0.002], *[0.001, 0.002, 0.004, 0.008]]


@pytest.mark.parametrize(("overlaps", "waves"), [(False, [[0, 1]]), (True, [[0, 1], [2, 3]])])
def test_a_run_that_is_drained_ends_with_the_wave_under_way_and_the_one_filled_meanwhile(overlaps, waves):
    engine = Answering(overlaps=overlaps)
    plan = plan_of(Told(range(9)), pending=4)
    coordinator = coordinator_of(
        plan, engine, wave_tuples_max=2, stop_when_idle=False, on_progress=lambda _: coordinator.drain()
    )
    statistics = coordinator.run()
    assert engine.waves == waves
    assert statistics.emitted == statistics.acked == 2 * len(waves)
    assert Diary.take()[-2:] == [("deactivate", 0), ("close", 0)]


def test_a_run_that_is_drained_while_a_wave_is_filled_runs_what_there_is():
    class Draining(Clock):
        def __call__(self):
            self.now_s += 1.0
            if self.now_s == 4.0:
                coordinator.drain()
            return self.now_s

    coordinator = coordinator_of(
        plan_of(Told(range(9))), Answering(), clock=Draining(), stop_when_idle=False, wave_fill_s=100.0
    )
    statistics = coordinator.run()
    assert statistics.waves == 1
    assert 0 < statistics.acked == statistics.emitted < 9


def test_a_drain_before_the_run_opens_and_closes_the_spouts_and_asks_nothing():
    coordinator = coordinator_of(plan_of(Told([1])), Answering(), stop_when_idle=False)
    coordinator.drain()
    coordinator.run()
    assert Diary.take() == [("open", 0), ("activate", 0), ("deactivate", 0), ("close", 0)]


def test_only_a_run_that_was_to_end_by_itself_and_was_drained_before_is_interrupted():
    def is_interrupted(*, drained, stop_when_idle):
        def on_progress(_statistics):
            if drained:
                coordinator.drain()

        plan = plan_of(Told(range(3)))
        coordinator = coordinator_of(plan, Answering(), stop_when_idle=stop_when_idle, on_progress=on_progress)
        return coordinator.run().is_interrupted

    assert not is_interrupted(drained=False, stop_when_idle=True)
    assert is_interrupted(drained=True, stop_when_idle=True)
    assert not is_interrupted(drained=True, stop_when_idle=False)


def test_a_crash_fails_the_wave_and_halves_the_next_ones_until_as_many_tuples_got_through():
    engine = Answering(WaveCrashed(1, "a worker died"), WaveCrashed(2, "a worker died"))
    statistics = coordinator_of(plan_of(Told(range(8))), engine).run()
    assert [len(wave) for wave in engine.waves] == [8, 4, 2, 2, 2, 2]
    assert (statistics.crashed_waves, statistics.failed, statistics.acked) == (2, 12, 8)


def test_a_crash_that_is_certain_to_repeat_stops_the_run_at_once():
    engine = Answering(WaveCrashed(1, "no module", CrashKind.CERTAIN))
    with pytest.raises(EngineError, match="Spark cannot run the topology: no module"):
        coordinator_of(plan_of(Told([1, 2])), engine).run()
    assert [len(wave) for wave in engine.waves] == [2]
    assert Diary.take()[-1] == ("close", 0)


def test_single_tuples_that_crash_again_and_again_stop_the_run_and_nobody_hears_of_the_last():
    engine = Answering(*[WaveCrashed(number, f"reason {number}") for number in range(9)])
    with pytest.raises(WaveCrashError) as caught:
        coordinator_of(plan_of(Told([1, 2])), engine, max_crashes=3).run()
    assert (caught.value.crash_count, caught.value.last_reason) == (3, "reason 3")
    assert [len(wave) for wave in engine.waves] == [2, 1, 1, 1]
    told = [event for event in Diary.take() if event[0] in ("fail", "close")]
    assert told == [("fail", 1), ("fail", 2), ("fail", 1), ("fail", 2), ("close", 0)]


class Bad(BaseSpout):
    """Raises in one of its methods.

    Args:
        method: which.
    """

    output_fields = ("number",)

    def __init__(self, *methods):
        self.methods = methods

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.raise_in("open")

    def next_tuple(self):
        self.raise_in("next_tuple")

    def close(self):
        Diary.note("close", "bad")
        self.raise_in("close")

    def raise_in(self, method):
        if method in self.methods:
            raise ValueError(f"in {method}")


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        (("open",), "ValueError: in open"),
        (("next_tuple",), "ValueError: in next_tuple"),
        (("close",), "ValueError: in close"),
        (("next_tuple", "close"), "ValueError: in next_tuple"),
    ],
)
def test_what_a_spout_raises_ends_the_run_and_every_spout_that_was_opened_is_closed(methods, reason):
    with pytest.raises(UserCodeError, match="component 'spout1', task 0") as caught:
        coordinator_of(plan_of(Told([]), Bad(*methods)), Answering()).run()
    assert reason in str(caught.value)
    assert [event for event in Diary.take() if event[0] == "close"] == [("close", 0), ("close", "bad")]


def test_the_next_wave_is_filled_while_one_runs_and_begins_before_the_spouts_are_told_of_a_good_one():
    engine = Answering(None, WaveDrained(frozenset()), overlaps=True)
    coordinator_of(plan_of(Told(range(6), replays=False), pending=4), engine, wave_tuples_max=2).run()
    assert engine.waves == [[0, 1], [2, 3], [4, 5]]
    events = [event for event in Diary.take() if event[0] in ("emit", "wave", "ack", "fail")]
    assert events == [
        *[("emit", number) for number in range(4)],
        *[("wave", 1), ("ack", 0), ("ack", 1)],
        *[("emit", 4), ("emit", 5)],
        *[("wave", 2), ("fail", 2), ("fail", 3)],
        *[("wave", 3), ("ack", 4), ("ack", 5)],
    ]


def test_what_was_filled_while_a_wave_crashed_begins_after_the_spouts_were_told():
    engine = Answering(WaveCrashed(1, "a worker died"), overlaps=True)
    statistics = coordinator_of(plan_of(Told(range(4)), pending=4), engine, wave_tuples_max=2).run()
    assert engine.waves == [[0, 1], [2, 3], [0], [1]]
    assert (statistics.acked, statistics.failed, statistics.crashed_waves) == (4, 2, 1)


class Echoing(Told):
    """Emits another number whenever it is told of an end."""

    def ack(self, message_id):
        super().ack(message_id)
        self.collector.emit([message_id + 1], message_id + 1)


@pytest.mark.parametrize("overlaps", [False, True])
def test_a_spout_that_emits_whenever_it_is_told_does_not_keep_a_drained_run_alive(overlaps):
    engine = Answering(overlaps=overlaps)

    def on_progress(statistics):
        if statistics.waves > 2:
            coordinator.drain()

    coordinator = coordinator_of(plan_of(Echoing([0])), engine, stop_when_idle=False, on_progress=on_progress)
    statistics = coordinator.run()
    assert engine.waves == [[0], [1], [2]]
    assert (statistics.emitted, statistics.acked) == (4, 3)


def test_figures_are_those_of_the_run():
    clock = Clock()

    class Taking(Answering):
        def run_wave(self, wave):
            clock.now_s += 1.5
            return super().run_wave(wave)

    statistics = coordinator_of(plan_of(Told(range(3)), pending=2), Taking(), clock=clock).run()
    (spout,) = statistics.components.values()
    assert statistics.to_dict("t")["components"] == {"spout0": spout.to_dict()}
    assert (statistics.emitted, statistics.acked, statistics.waves, statistics.seconds) == (3, 3, 2, 3.0)
    assert spout.work.emitted == spout.acked == {"default": 3}
    assert spout.ack_ns == {"default": (2 * 1_500 + 1_500) * 1_000_000}  # two waves of 1.5 s, of two messages and one


@pytest.mark.parametrize(
    "options",
    [
        {"wave_tuples_max": 0},
        {"wave_bytes_max": True},
        {"max_crashes": 1.5},
        {"idle_rounds": -1},
        {"wave_fill_s": 0},
        {"wave_fill_s": float("inf")},
    ],
)
def test_options_out_of_bounds_are_refused(options):
    (name,) = options
    with pytest.raises(TopologyError, match=f"option {name} is "):
        PlainRunOptions(**options)


def test_a_topology_of_the_other_kind_is_refused_with_the_way_to_run_it():
    plain = TopologyBuilder("test")
    plain.set_spout("spout", Told([1]))
    plain.set_bolt("sink", Sink()).shuffle_grouping("spout")
    given: Any = plain.build()
    transactional: Any = build(("count", Count(), ["lines"]))
    with pytest.raises(TopologyError, match="is a PlainTopology, but this function runs a Topology; use run_plain for"):
        run(given)
    with pytest.raises(TopologyError, match="is a Topology, but this function runs a PlainTopology; use run for"):
        run_plain(transactional)
