"""What is sent is what is read: counts and edges over real frames, and every fault of a single frame.

Two tasks send tuples of several streams to two tasks, for two live attempts; frames arrive in any order.
An attempt passes when no task fails it and what the senders put into the tree is what the readers took out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.completeness.tracking import Tracking
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import AllGrouping, FieldsGrouping, ShuffleGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber
from coordinated_bolt.transport.blocks import Inbox
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import Frame, FrameKind, frame_target
from coordinated_bolt.transport.outbox import SingleFrames
from coordinated_bolt.transport.wave_attempts import WaveAttempts
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from tests.support.case_names import shown
from tests.support.property_lengths import examples
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wire import alone, frames_in
from tests.support.tasks.wirings import Calls, RecordingBolt, attempt, wire

STREAMS = (
    StreamSpec("default", ("value",)),
    StreamSpec("keyed", ("key", "value")),
    StreamSpec("everywhere", ("value",)),
)
GROUPINGS = (ShuffleGrouping(), FieldsGrouping(("key",)), AllGrouping())
SOURCES, TARGETS = (1, 2), (21, 22)
OLD, A, B = attempt(7, 1), attempt(7, 2), attempt(8, 3)


class Recorder(RecordingBolt):
    """Records every tuple with all that is known of it."""

    def execute(self, tup):
        Calls.log.append((self.context.task_id, tup.attempt, tup.source_task, tup.stream_id, *tup.values))


@dataclass
class Flow:
    """What was sent for the live attempts, and what is on the wire: a block for each frame and each report."""

    wave: tuple[TransactionAttempt, ...] = ()
    wire: list[bytes] = field(default_factory=list)
    emitted: list[tuple[Any, ...]] = field(default_factory=list)
    sent_edges: dict[TransactionAttempt, int] = field(default_factory=dict)

    def frames(self, of: TransactionAttempt | None = None, kind: FrameKind | None = None) -> list[Frame]:
        frames = [frame for packed in self.wire for frame in frames_in(packed, self.wave)]
        return [f for f in frames if of in (None, f.attempt) and kind in (None, f.kind)]

    def packed(self, frame: Frame) -> bytes:
        return alone(frame, self.wave)


Emission = tuple[TransactionAttempt, int, int, list[Any]]


def send(emissions: list[Emission], *, live=(A, B), frame_tuples=3) -> Flow:
    flow = Flow(live)
    streams = {
        spec.stream_id: OutputStream(index, spec, (Subscriber("sink", TARGETS, grouping),))
        for index, (spec, grouping) in enumerate(zip(STREAMS, GROUPINGS, strict=True))
    }
    for of in live:
        flow.sent_edges[of] = 0
        for source in SOURCES:
            sending = {"targets": TARGETS, "streams": streams, "frame_tuples": frame_tuples}
            wiring = wire(Recorder(), task_id=source, upstream=(), **sending)
            box = attempt_outbox(wiring, of, SingleFrames(lambda frame: flow.wire.append(flow.packed(frame))))
            collector = AttemptCollector(wiring, of, box)
            for emitted_of, emitting, stream_index, values in emissions:
                if (emitted_of, emitting) == (of, source):
                    spec = STREAMS[stream_index]
                    row = values[: len(spec.fields)]
                    for task in collector.emit(row, spec.stream_id):
                        flow.emitted.append((task, of, source, spec.stream_id, *row))
            for edge in box.close().values():
                flow.sent_edges[of] ^= edge
    return flow


@dataclass
class Reading:
    """What the two readers made of it."""

    executed: list[tuple[Any, ...]]
    results: dict[TransactionAttempt, list[AttemptResult]]
    open_edges: dict[TransactionAttempt, int]

    def passed(self) -> list[TransactionAttempt]:
        return [
            of
            for of, results in self.results.items()
            if not self.open_edges[of] and all(result.failure is None for result in results)
        ]

    def stories(self, of: TransactionAttempt) -> list[str]:
        return [result.failure.text for result in self.results[of] if result.failure is not None]


def read(flow: Flow, *, live=(A, B)) -> Reading:
    Calls.take()
    results: dict[TransactionAttempt, list[AttemptResult]] = {of: [] for of in live}
    open_edges = dict(flow.sent_edges)
    for target in TARGETS:
        wiring = wire(Recorder(), task_id=target, upstream=SOURCES, upstream_streams=STREAMS)
        task = BatchTask(wiring, CoordinatedBolt(wiring, wiring.outboxes(SingleFrames(lambda frame: None))))
        wave = WaveAttempts(flow.wave)
        inbox = Inbox([packed for packed in flow.wire if frame_target(packed) == target], wave)
        for of in live:
            result = task.run(of, inbox.take(of))
            assert result is not None
            results[of].append(result)
            open_edges[of] ^= result.edges
    executed = [call for call in Calls.take() if isinstance(call[0], int)]
    return Reading(executed, results, open_edges)


values = st.lists(
    st.one_of(st.integers(-3, 300), st.text(max_size=3), st.binary(max_size=3), st.none(), st.tuples(st.booleans())),
    min_size=2,
    max_size=2,
)
emissions = st.lists(
    st.tuples(st.sampled_from([A, B]), st.sampled_from(SOURCES), st.integers(0, 2), values), max_size=24
)
SOME: list[Emission] = [
    (of, source, number % 3, [f"{source}.{number}", number])
    for of in (A, B)
    for source in SOURCES
    for number in range(9 if of is A else 5)
]


@given(emissions, st.randoms(use_true_random=False), st.integers(1, 4))
def test_what_is_sent_is_what_is_read_in_any_order_of_delivery(rows, random, frame_tuples):
    flow = send(rows, frame_tuples=frame_tuples)
    random.shuffle(flow.wire)
    reading = read(flow)
    assert reading.passed() == [A, B]
    assert reading.executed == sorted(flow.emitted, key=lambda e: (e[0], e[1], e[2]))
    for of, results in reading.results.items():
        executed = [sum(result.metrics["bolt"].executed.values()) for result in results]
        assert executed == [sum(e[:2] == (task, of) for e in flow.emitted) for task in TARGETS]


@given(emissions, st.randoms(use_true_random=False))
def test_a_stage_that_is_computed_again_does_the_same_again(rows, random):
    flow = send(rows)
    first = read(flow)
    random.shuffle(flow.wire)
    assert read(flow) == first


def test_rows_are_cut_into_frames_and_each_run_of_a_stream_is_kept_apart():
    flow = send([(A, 1, 2, [n, 0]) for n in range(4)] + [(A, 1, 1, ["k", 1])], live=(A,))
    contents = [(f.sequence, f.kind.name, unpack(f.payload)) for f in flow.frames() if (f.sender, f.target) == (1, 21)]
    (keyed_target,) = {e[0] for e in flow.emitted if e[3] == "keyed"}
    tail = [[2, [[3]]], [1, [["k", 1]]]] if keyed_target == 21 else [[2, [[3]]]]
    assert contents == [
        (0, "REGULAR", [[2, [[0], [1], [2]]]]),
        (1, "REGULAR", tail),
        (2, "COORD", 4 + (keyed_target == 21)),
    ]


def relabelled(flow: Flow, frame: Frame, **changes: Any) -> None:
    """Replaces a frame by one with other contents and a correct checksum."""
    flow.wire[flow.wire.index(flow.packed(frame))] = flow.packed(frame._replace(**changes))


def drop(flow: Flow, frame: Frame, data: Any) -> None:
    flow.wire.remove(flow.packed(frame))


def double(flow: Flow, frame: Frame, data: Any) -> None:
    assume(frame.kind is FrameKind.REGULAR)  # a report is compared on repeat
    flow.wire.append(flow.packed(frame))


def flip_a_bit(flow: Flow, frame: Frame, data: Any) -> None:
    packed = bytearray(flow.packed(frame))
    position = flow.wire.index(bytes(packed))
    bit = data.draw(st.integers(0, len(packed) * 8 - 1))
    packed[bit // 8] ^= 1 << bit % 8
    flow.wire[position] = bytes(packed)


def tear(flow: Flow, frame: Frame, data: Any) -> None:
    packed = flow.packed(frame)
    flow.wire[flow.wire.index(packed)] = packed[: data.draw(st.integers(29, len(packed) - 1))]


def alter_a_value(flow: Flow, frame: Frame, data: Any) -> None:
    content = unpack(frame.payload)
    if isinstance(content, int):
        content += data.draw(st.sampled_from([-1, 1, 2**40]))
    else:
        _, rows = data.draw(st.sampled_from(content))
        row = data.draw(st.sampled_from(rows))
        row[data.draw(st.integers(0, len(row) - 1))] = "altered"
    relabelled(flow, frame, payload=pack(content))


def alter_the_payload(flow: Flow, frame: Frame, data: Any) -> None:
    plain = st.recursive(
        st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
        max_leaves=6,
    )
    runs = st.lists(st.tuples(st.integers(-1, 4), plain).map(list), max_size=2)
    payload = data.draw(st.binary(max_size=9) | plain.map(pack) | runs.map(pack))
    assume(payload != frame.payload)
    relabelled(flow, frame, payload=payload)


def claim_another_kind(flow: Flow, frame: Frame, data: Any) -> None:
    kind = data.draw(st.sampled_from([kind for kind in FrameKind if kind is not frame.kind]))
    relabelled(flow, frame, kind=kind)


def claim_an_old_attempt(flow: Flow, frame: Frame, data: Any) -> None:
    relabelled(flow, frame, attempt=OLD)


def claim_another_sender(flow: Flow, frame: Frame, data: Any) -> None:
    relabelled(flow, frame, sender=data.draw(st.sampled_from([3 - frame.sender, 99, 21])))


def claim_another_sequence(flow: Flow, frame: Frame, data: Any) -> None:
    assume(frame.kind is FrameKind.REGULAR)  # where a report stands among the frames means nothing
    relabelled(flow, frame, sequence=frame.sequence + data.draw(st.integers(1, 3)))


def swap_sequences(flow: Flow, frame: Frame, data: Any) -> None:
    edge = [f for f in flow.frames(frame.attempt) if (f.sender, f.target) == (frame.sender, frame.target)]
    others = [f for f in edge if f.sequence != frame.sequence and f.payload != frame.payload]
    assume(others)
    other = data.draw(st.sampled_from(others))
    relabelled(flow, frame, sequence=other.sequence)
    relabelled(flow, other, sequence=frame.sequence)


Fault = Callable[[Flow, Frame, Any], None]
ONE_ATTEMPT: list[Fault] = [
    drop,
    double,
    flip_a_bit,
    tear,
    alter_a_value,
    alter_the_payload,
    claim_another_kind,
    claim_an_old_attempt,
    claim_another_sender,
    claim_another_sequence,
    swap_sequences,
]


@pytest.mark.parametrize("fault", ONE_ATTEMPT, ids=lambda fault: fault.__name__)
def test_a_fault_of_one_frame_fails_exactly_its_attempt(fault):
    @settings(max_examples=examples(40))
    @given(st.data(), st.randoms(use_true_random=False))
    def check(data, random):
        flow = send(SOME)
        fault(flow, data.draw(st.sampled_from(flow.frames(A))), data)
        random.shuffle(flow.wire)
        reading = read(flow)
        assert reading.passed() == [B]
        assert [e for e in reading.executed if e[1] == B] == [e for e in read(send(SOME)).executed if e[1] == B]

    check()


@settings(max_examples=examples(40))
@given(st.data())
def test_a_frame_filed_under_another_live_attempt_fails_both(data):
    flow = send(SOME)
    relabelled(flow, data.draw(st.sampled_from(flow.frames(A, FrameKind.REGULAR))), attempt=B)
    assert read(flow).passed() == []


@settings(max_examples=examples(40))
@given(st.data())
def test_two_frames_that_swap_their_attempts_fail_both_though_the_counts_match(data):
    flow = send(SOME)
    first = data.draw(st.sampled_from(flow.frames(A, FrameKind.REGULAR)))
    second = data.draw(
        st.sampled_from(
            [f for f in flow.frames(B, FrameKind.REGULAR) if (f.sender, f.target) == (first.sender, first.target)]
        )
    )
    assume(first.payload != second.payload)
    relabelled(flow, first, attempt=B)
    relabelled(flow, second, attempt=A)
    assert read(flow).passed() == []


def test_a_frame_of_an_old_attempt_in_place_of_the_new_one_fails_it_though_the_counts_match():
    """The source has other data on replay: the same numbers of tuples, but not the same tuples."""
    old = send([(OLD, source, index, [f"old {v[0]}", v[1]]) for of, source, index, v in SOME if of is A], live=(OLD,))
    flow = send(SOME)
    place = {(f.sender, f.target, f.sequence): f for f in flow.frames(A)}
    for frame in old.frames(OLD, FrameKind.REGULAR):
        twin = place[frame.sender, frame.target, frame.sequence]
        changed = replace(flow, wire=list(flow.wire))
        relabelled(changed, twin, payload=frame.payload)
        assert read(changed).passed() == [B]


@settings(max_examples=examples(40))
@given(st.data())
def test_a_repeated_report_is_no_fault(data):
    flow = send(SOME)
    flow.wire.append(flow.packed(data.draw(st.sampled_from(flow.frames(A, FrameKind.COORD)))))
    assert read(flow).passed() == [A, B]


@pytest.mark.parametrize("claim", [float("inf"), float("nan"), 6.0, "6", True, None, [6], {}], ids=shown)
def test_a_report_that_is_no_whole_number_fails_the_attempt(claim):
    flow = send(EVEN)
    report = flow.frames(A, FrameKind.COORD)[0]
    relabelled(flow, report, payload=pack(claim))
    assert read(flow).passed() == [B]


@pytest.mark.parametrize(
    "content", [5, {}, [[0]], [[0, 7]], [["default", []]], [[3, [["x"]]]], [[-1, [["x"]]]]], ids=shown
)
def test_tuples_of_no_known_form_fail_the_attempt(content):
    flow = send(EVEN)
    relabelled(flow, first_regular(flow), payload=pack(content))
    assert read(flow).passed() == [B]


def test_the_story_names_the_frame_that_cannot_be_read():
    flow = send(SOME, live=(A,))
    relabelled(flow, flow.frames(A, FrameKind.REGULAR)[0], payload=b"\xc1")
    (story,) = read(flow, live=(A,)).stories(A)
    assert story.startswith("frame 0 from task 1 cannot be read: CodecError(")


def test_the_story_names_who_sent_more_than_came():
    flow = send(SOME, live=(A,))
    frame = flow.frames(A, FrameKind.REGULAR)[0]
    sent = next(
        unpack(f.payload)
        for f in flow.frames(A, FrameKind.COORD)
        if (f.sender, f.target) == (frame.sender, frame.target)
    )
    drop(flow, frame, None)
    assert read(flow, live=(A,)).stories(A) == [f"task 1 sent {sent} tuples, {sent - 3} arrived"]


# Each guard alone, the other one taken out: whoever removes a mechanism makes one of these red.


def without_counting():
    """Reports still have to come, but what they say is not compared with what came."""
    return mock.patch.object(Tracking, "_is_matched", return_value=True)


def without_digest():
    return mock.patch.object(EdgeDigest, "edge_id", return_value=0)


def lose_one_and_double_another(flow: Flow) -> None:
    """Two frames of equal length from one task to one task: one is lost, the other arrives twice."""
    first, second = [f for f in flow.frames(A, FrameKind.REGULAR) if (f.sender, f.target) == (1, 21)][:2]
    assert first.payload != second.payload
    drop(flow, first, None)
    flow.wire.append(flow.packed(second))


EVEN: list[Emission] = [(of, source, 2, [f"{source}.{n}", n]) for of in (A, B) for source in SOURCES for n in range(6)]


def first_regular(flow: Flow) -> Frame:
    return flow.frames(A, FrameKind.REGULAR)[0]


def altered(flow: Flow) -> None:
    frame = first_regular(flow)
    content = unpack(frame.payload)
    content[0][1][0][0] = "altered"
    relabelled(flow, frame, payload=pack(content))


FAULTS_OF_CONTENT: dict[str, Callable[[Flow], None]] = {
    "lost": lambda flow: drop(flow, first_regular(flow), None),
    "doubled": lambda flow: flow.wire.append(flow.packed(first_regular(flow))),
    "altered": altered,
    "lost and doubled": lose_one_and_double_another,
}


@pytest.mark.parametrize("name", FAULTS_OF_CONTENT)
def test_each_guard_catches_its_faults_alone_and_without_both_nobody_would_notice_any(name):
    def passed(*missing) -> list[TransactionAttempt]:
        with ExitStack() as stack:
            for each in missing:
                stack.enter_context(each())
            flow = send(EVEN)
            FAULTS_OF_CONTENT[name](flow)
            return read(flow).passed()

    assert passed(without_counting) == [B]
    assert passed(without_digest) == ([B] if name in ("lost", "doubled") else [A, B])
    assert passed(without_counting, without_digest) == [A, B]
