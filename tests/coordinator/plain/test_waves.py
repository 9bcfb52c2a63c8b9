"""Runs of plain topologies over the real stages: whatever is lost, doubled or crashes, the spouts hear the truth."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.transport.frames import FrameKind, WaveId, open_frame, seal_frame
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.plain.spark.plain_stage import BoltStage
from coordinator.plain.spark.spark_plain_engine import emitted_parts
from coordinator.plain.tasks.messages import MessageKind
from state.errors import UserCodeError
from tests.support.runs.in_process_plain_engine import InProcessPlainEngine
from tests.support.tasks.wire import messages_of
from tests.support.topologies.plain_components import Identity
from tests.support.topologies.plain_jobs import (
    Diary,
    Raising,
    Scripted,
    Summing,
    Told,
    coordinator_of,
    planned,
    with_small_frames,
)

BOLTS = ("spread", "left", "right", "end")


def scripted_builder(count, *, tasks=(1, 2, 2, 2), ackers=1, pending=1000, spout=None):
    """numbers -> spread -> left, right -> end, and numbers straight to end."""
    spouts, *bolts = tasks
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", spout or Told(range(count)), spouts)
    builder.set_bolt("spread", Scripted(), bolts[0]).shuffle_grouping("numbers")
    builder.set_bolt("left", Scripted(), bolts[1]).fields_grouping("spread", ["number"])
    builder.set_bolt("right", Scripted(), bolts[1]).all_grouping("spread")
    end = builder.set_bolt("end", Scripted(), bolts[2])
    end.shuffle_grouping("left").global_grouping("right").partial_key_grouping("numbers", ["number"])
    builder.set_acker_count(ackers)
    builder.set_max_spout_pending(pending)
    return builder


def executions(number, right_tasks):
    """How often a number is executed if nothing goes wrong."""
    return {
        ("spread", number): 1,
        ("left", number): 1,
        ("right", number): right_tasks,
        ("end", number): 1 + right_tasks + 1,
    }


class Meddler:
    """Loses or doubles frames, and makes waves crash, as long as there is some mischief left.

    Attributes:
        mischief: how many more faults there will be.
        has_lost: a frame of this wave was lost.
        has_crashed: this wave has crashed.
    """

    def __init__(self, random: Random, mischief: int) -> None:
        self.random, self.mischief = random, mischief
        self.has_lost = self.has_crashed = False

    def frames(self, task_id: int, frames: list[bytes], _wave: object) -> list[bytes]:
        given = []
        for frame in frames:
            if self.mischief and self.random.random() < 0.1:
                self.mischief -= 1
                if self.random.random() < 0.5:
                    self.has_lost = True
                    continue
                given.append(frame)
            given.append(frame)
        return given

    def crash(self, _wave: object) -> str | None:
        self.has_crashed = self.mischief > 0 and self.random.random() < 0.2
        self.mischief -= self.has_crashed
        return "as it happens" if self.has_crashed else None


SCRIPTS = st.dictionaries(
    st.tuples(st.sampled_from(BOLTS), st.integers(0, 11)),
    st.lists(st.sampled_from(["fail", "raise", "leave"]), min_size=1, max_size=3),
    max_size=6,
)


@settings(max_examples=150)
@given(
    script=SCRIPTS,
    tasks=st.tuples(*[st.integers(1, 3)] * 4),
    ackers=st.integers(1, 3),
    pending=st.integers(1, 12),
    mischief=st.integers(0, 4),
    seed=st.integers(0, 1 << 32),
)
def test_every_message_ends_once_per_emit_acked_only_if_all_was_acked_and_all_of_them_in_the_end(
    *, script, tasks, ackers, pending, mischief, seed
):
    Diary.take()
    Scripted.reset(script)
    plan = with_small_frames(planned(scripted_builder(12, tasks=tasks, ackers=ackers, pending=pending).build()))
    meddler = Meddler(Random(seed), mischief)
    engine = InProcessPlainEngine(plan, Random(seed), frame_fault=meddler.frames, crash_fault=meddler.crash)
    under_way: Counter[int] = Counter()
    acked: Counter[int] = Counter()

    def wave_ended(_statistics):
        for what, *who in Diary.take():
            if what == "emit":
                under_way[who[0]] += 1
            elif what in ("ack", "fail"):
                number = who[0]
                under_way[number] -= 1
                assert under_way[number] == 0
                executed = {key: count for key, count in Scripted.executed.items() if key[1] == number}
                if what == "ack":
                    acked[number] += 1
                    assert number not in Scripted.struck
                    assert not meddler.has_crashed
                    assert executed == executions(number, tasks[2])
                elif not meddler.has_lost:
                    assert number in Scripted.struck or meddler.has_crashed
        Scripted.executed, Scripted.struck, meddler.has_lost = Counter(), set(), False

    statistics = coordinator_of(plan, engine, seed=seed, on_progress=wave_ended).run()

    assert acked == Counter(range(12))
    assert statistics.emitted == statistics.acked + statistics.failed
    assert statistics.acked == 12


@pytest.mark.parametrize("ackers", [1, 3])
def test_what_fails_is_emitted_again_in_the_next_wave_and_acked_when_nothing_fails_any_more(ackers):
    Diary.take()
    Scripted.reset({("end", 1): ["fail"], ("left", 2): ["leave", "raise"]})
    plan = planned(scripted_builder(4, ackers=ackers).build())

    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()

    expected: list[tuple[object, ...]] = [("open", 0), ("activate", 0)]
    expected += [("emit", number) for number in range(4)]
    expected += [("ack", 0), ("fail", 1), ("fail", 2), ("ack", 3)]
    expected += [("emit", 1), ("emit", 2), ("ack", 1), ("fail", 2), ("emit", 2), ("ack", 2)]
    assert Diary.take() == [*expected, ("deactivate", 0), ("close", 0)]
    assert (statistics.emitted, statistics.acked, statistics.failed, statistics.waves) == (7, 4, 3, 3)


def test_without_ackers_messages_are_acked_at_once_and_bolts_run_all_the_same():
    Diary.take()
    Scripted.reset({("end", 1): ["fail"]})
    plan = planned(scripted_builder(3, ackers=0).build())

    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()

    told = [event for event in Diary.take() if event[0] in ("emit", "ack", "fail")]
    assert told == [(what, number) for number in range(3) for what in ("emit", "ack")]
    assert statistics.waves == 1
    assert Scripted.executed["spread", 1] == 1
    assert Scripted.executed["end", 0] == 4


def test_what_a_bolt_raises_ends_the_run_with_its_story_and_nobody_hears_of_the_wave():
    Diary.take()
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told(range(4)))
    builder.set_bolt("work", Raising()).shuffle_grouping("numbers")
    plan = planned(builder.build())

    with pytest.raises(UserCodeError) as caught:
        coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()

    error = caught.value
    assert (error.component_id, error.task_index, error.attempt) == ("work", 0, "")
    assert error.tuple_text == "Tuple(numbers/default: number=2)"
    assert error.traceback_text.rstrip().endswith("ValueError: cannot work with it")
    emits = [("emit", number) for number in range(4)]
    assert Diary.take() == [("open", 0), ("activate", 0), *emits, ("close", 0)]


def test_a_bolt_lives_for_one_wave_and_may_emit_and_ack_in_its_cleanup():
    Diary.take()
    Scripted.reset()
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told(range(5)))
    builder.set_bolt("sum", Summing()).shuffle_grouping("numbers")
    builder.set_bolt("end", Scripted()).shuffle_grouping("sum")
    builder.set_max_spout_pending(2)
    plan = planned(builder.build())

    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()

    assert (statistics.waves, statistics.acked, statistics.failed) == (3, 5, 0)
    assert Scripted.executed == {("end", 0 + 1): 1, ("end", 2 + 3): 1, ("end", 4): 1}


def test_a_stage_that_is_computed_again_sends_the_same_whatever_order_its_frames_come_in():
    Diary.take()
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told(range(40)), parallelism=3)
    builder.set_bolt("work", Identity()).shuffle_grouping("numbers")
    builder.set_bolt("end", Identity(), parallelism=2).shuffle_grouping("work")
    plan = with_small_frames(planned(builder.build()))
    engine = InProcessPlainEngine(plan, Random(1))
    coordinator_of(plan, engine).run()
    (wave,) = engine.waves
    (records,) = emitted_parts(plan, wave)

    def computed(seed, wave_id=wave.wave_id):
        shuffled = list(records)
        Random(seed).shuffle(shuffled)
        stage = BoltStage(engine.entry, wave_id, 0)
        sent = [packed for _, packed in stage(0, shuffled) if open_frame(packed).sender == 4]
        # how long it took is the one thing that may differ
        return sorted(packed for packed in sent if open_frame(packed).kind is not FrameKind.METRICS)

    first = computed(1)
    assert len(first) == 40 * 2  # a tuple and an ack for each
    assert computed(2) == first


def test_frames_of_another_wave_and_torn_ones_fail_what_they_belong_to_and_nothing_else():
    Diary.take()
    Scripted.reset()
    plan = with_small_frames(planned(scripted_builder(6, tasks=(1, 1, 1, 1)).build()))
    (spread,) = plan.stages[0].tasks
    done: list[int] = []

    def fault(task_id, frames, _wave):
        if task_id != spread or done:
            return frames
        done.append(task_id)
        frames = sorted(frames)
        strange = open_frame(frames[1])
        strange = strange._replace(wave_id=WaveId(strange.wave_id.number, 7))
        return [frames[0], seal_frame(strange), frames[2][:-1], *frames[3:]]

    engine = InProcessPlainEngine(plan, Random(1), frame_fault=fault)
    coordinator_of(plan, engine).run()

    told = [event for event in Diary.take() if event[0] in ("ack", "fail")]
    ends = [("fail", number) if number in (1, 2) else ("ack", number) for number in range(6)]
    assert told == [*ends, ("ack", 1), ("ack", 2)]


class Aside(Told):
    """Emits each number twice: without a message id, and with one where nobody listens."""

    def declare_output_fields(self, declarer):
        super().declare_output_fields(declarer)
        declarer.declare_stream("aside", ("number",))

    def next_tuple(self):
        if self.waiting:
            number = self.waiting.pop(0)
            self.collector.emit([number])
            self.collector.emit([number], number, "aside")


def test_what_no_bolt_subscribes_to_is_acked_at_the_end_of_its_wave_and_what_has_no_id_is_never_heard_of():
    Diary.take()
    Scripted.reset({("spread", 1): ["fail"]})
    plan = planned(scripted_builder(3, spout=Aside(range(3))).build())
    engine = InProcessPlainEngine(plan, Random(1))

    statistics = coordinator_of(plan, engine).run()

    assert [event for event in Diary.take() if event[0] in ("ack", "fail")] == [("ack", 0), ("ack", 1), ("ack", 2)]
    assert (statistics.emitted, statistics.acked, statistics.failed) == (6, 3, 0)
    frames = [open_frame(packed) for packed in engine.waves[0].frames]
    assert Counter(m.kind for frame in frames for m in messages_of(frame)) == {MessageKind.TUPLE: 6}
    assert [len(begun) for begun in engine.waves[0].begun] == [3]


class Watching(ITaskHook):
    """Notes what a task does."""

    def prepare(self, conf, context):
        self.component_id = context.component_id
        Diary.note("hook", self.component_id, "prepare")

    def emit(self, info):
        Diary.note("hook", self.component_id, "emit", *info.values, list(info.out_tasks))

    def execute(self, info):
        Diary.note("hook", self.component_id, "execute", info.tup["number"])

    def bolt_fail(self, info):
        Diary.note("hook", self.component_id, "bolt_fail", info.failed["number"])

    def bolt_ack(self, info):
        Diary.note("hook", self.component_id, "bolt_ack", info.acked["number"])

    def spout_ack(self, info):
        Diary.note("hook", self.component_id, "spout_ack", info.acked)

    def spout_fail(self, info):
        Diary.note("hook", self.component_id, "spout_fail", info.failed)

    def cleanup(self):
        Diary.note("hook", self.component_id, "cleanup")


def test_hooks_watch_a_spout_for_the_whole_run_and_a_bolt_for_a_wave():
    Diary.take()
    Scripted.reset({("work", 7): ["fail"]})
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told([7]))
    builder.set_bolt("work", Scripted()).shuffle_grouping("numbers")
    builder.add_task_hook(Watching())
    plan = planned(builder.build())

    coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()

    seen = [event[1:] for event in Diary.take() if event[0] == "hook"]
    assert seen == [
        ("numbers", "prepare"),
        ("numbers", "emit", 7, [2]),
        ("work", "prepare"),
        ("work", "bolt_fail", 7),
        ("work", "execute", 7),
        ("work", "cleanup"),
        ("numbers", "spout_fail", 7),
        ("numbers", "emit", 7, [2]),
        ("work", "prepare"),
        ("work", "emit", 7, []),
        ("work", "bolt_ack", 7),
        ("work", "execute", 7),
        ("work", "cleanup"),
        ("numbers", "spout_ack", 7),
        ("numbers", "cleanup"),
    ]
