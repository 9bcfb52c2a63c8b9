"""Whole runs in this process, over the real stages: committers that count, frames disturbed, drivers that die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import strategies as st

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinator import RunOptions, Topology
from coordinator.engines.waves import stage
from coordinator.transactional.assembly import new_coordinator
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.publisher import Publisher, QuarantineOrigin
from coordinator.transactional.start.spout_start import SpoutStart
from coordinator.transactional.start.takeover import TakenOver
from coordinator.transactional.surroundings import RunEnvironment
from state import HashState, TransactionAttempt
from state.codec import pack, unpack
from tests.support.runs.in_process_engine import InProcessEngine
from tests.support.runs.scripted import validated
from tests.support.stores.memory_store import MemoryStore
from tests.support.tasks.wire import alone, frames_in, has_cuts, with_other_cuts
from tests.support.topologies.components import plan

SLOTS = (None, 1, 2)
"""Partitions of a stage; None: one for each task."""


class Counting(BaseBatchBolt, ICommitter):
    """Counts its tuples by line, and passes them on when it finishes."""

    output_fields = ("line", "number")
    counts: HashState

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.rows: list[list[Any]] = []

    def execute(self, tup):
        self.rows.append(list(tup))

    def finish_batch(self):
        for line, number in Counter(line for line, _ in self.rows).items():
            self.counts.increment(line, number)
            self.counts.increment("all", number)
        self.collector.emit_all(self.rows)


class Count0(Counting):
    counts = HashState("counts0")


def run(
    topology: Topology,
    store: MemoryStore,
    *,
    seed=0,
    fault=None,
    made=None,
    is_chained=True,
    engine=None,
    **options: Any,
) -> Coordinator:
    """Runs a topology to the end of its input, on what the store holds."""
    made = made or plan(topology, is_chained=is_chained)
    engine = engine or InProcessEngine(made, Random(seed), fault)
    context = made.wirings[1].context()
    resources = ExitStack()
    start = SpoutStart(topology, context, tries=1, pause=lambda seconds: None).make(resources, with_committer=True)
    metadata = MetadataLog(store.metadata, is_opaque=start.kind.is_opaque, committed_txid=store.committed_txid)
    given: dict[str, Any] = {"max_attempts": 1_000} | options
    run_options = RunOptions(**given)
    attempt_ids = count(1 + 1_000 * len(store.calls))
    coordinator = new_coordinator(
        topology,
        made,
        engine,
        run_options,
        around=RunEnvironment(nonce="", new_generation="", new_attempt_id=attempt_ids.__next__, clock=lambda: 0.0),
        start=start,
        publisher=Publisher(
            store, "test", clock=lambda: 0.0, origin=QuarantineOrigin(lambda: 0.0, "", "", run_options.max_quarantined)
        ),
        taken=TakenOver(store.committed_txid, metadata, {}, "", ""),
        unnotified=store.last_group,
    )
    validated(coordinator._machine)
    with resources, mock.patch.object(stage, "_LazyReader", return_value=store):
        coordinator.run()
    engine.close()
    return coordinator


bounds = st.fixed_dictionaries(
    {"max_spout_pending": st.integers(1, 8), "commit_group_max": st.integers(1, 8), "early_commit": st.booleans()}
)


in_both_modes = pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])


class RandomFaults:
    """Disturbs some of the frames that tasks read, so often and no more."""

    def __init__(self, random: Random, budget: int) -> None:
        self.random, self.budget = random, budget
        self.done: list[tuple[str, FrameKind]] = []

    def __call__(self, task_id: int, blocks: list[bytes], wave: Sequence[TransactionAttempt]) -> list[bytes]:
        frames = [frame for packed in blocks for frame in frames_in(packed, wave)]
        disturbed: list[bytes] = []
        while self.budget and frames and self.random.random() < 0.3:
            self.budget -= 1
            place = self.random.randrange(len(frames))
            kind = self.random.choice(["drop", "double", "flip", "misfile", "resequence", "alter"])
            frame = frames.pop(place)
            self.done.append((kind, frame.kind))
            disturbed += self._changed(kind, frame, wave)
        return [*(alone(frame, wave) for frame in frames), *disturbed] if disturbed or self.done else blocks

    def _changed(self, kind: str, frame: Frame, wave: Sequence[TransactionAttempt]) -> list[bytes]:
        packed = alone(frame, wave)
        match kind:
            case "double":
                return [packed, packed]
            case "flip":
                bit = self.random.randrange(len(packed) * 8)
                flipped = bytearray(packed)
                flipped[bit // 8] ^= 1 << bit % 8
                return [bytes(flipped)]
            case "misfile":
                other = self.random.choice([*wave, TransactionAttempt(1, 999_999)])
                return [alone(frame._replace(attempt=other), wave)]
            case "resequence":
                return [alone(frame._replace(sequence=frame.sequence + 1), wave)]
            case "alter":
                return [alone(frame._replace(payload=_altered(frame)), wave)]
        return []


def _altered(frame: Frame) -> bytes:
    if frame.kind is FrameKind.ACK:
        return with_other_cuts(frame, 99)
    content = unpack(frame.payload)
    if frame.kind is FrameKind.COORD:
        return pack(content + 1)
    content[0][1][0][0] = "lines of another batch"
    return pack(content)


class Crash(Exception):  # noqa: N818 - not an error of anything: the driver is killed
    """The driver dies here; what the store holds stays."""


class CrashingStore(MemoryStore):
    """Kills the driver before or after the effect of some of its calls."""

    def __init__(self, crashes: list[tuple[int, bool]]) -> None:
        super().__init__()
        self.crashes = dict(crashes)
        self.call_count = 0

    def store_metadata(self, entries, forget=()):
        self._at(is_done=False)
        super().store_metadata(entries, forget)
        self._at(is_done=True)

    def commit(self, commit):
        self._at(is_done=False)
        reply = super().commit(commit)
        self._at(is_done=True)
        return reply

    def _at(self, *, is_done: bool) -> None:
        self.call_count += not is_done
        if self.crashes.get(self.call_count) is is_done:
            del self.crashes[self.call_count]
            raise Crash


def run_until_it_ends(topology: Topology, store: MemoryStore, **options: Any) -> None:
    while True:
        try:
            run(topology, store, **options)
        except Crash:
            continue
        return


crash_points = st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=5, unique_by=lambda point: point[0])


class OneFault:
    """Changes the first frame of a kind that a task reads for a txid; of reports, the first with cuts."""

    def __init__(self, component_id: str, kind: str, frame_kind: FrameKind, txid: int = 2) -> None:
        self.tasks = {"pass": (3, 4), "count": (5, 6)}[component_id]
        self.kind, self.frame_kind, self.txid = kind, frame_kind, txid
        self.is_done = False

    def __call__(self, task_id: int, blocks: list[bytes], wave: Sequence[TransactionAttempt]) -> list[bytes]:
        if task_id not in self.tasks or self.is_done:
            return blocks
        frames = [frame for packed in sorted(blocks) for frame in frames_in(packed, wave)]
        for frame in frames:
            is_meant = (frame.attempt.txid, frame.kind) == (self.txid, self.frame_kind)
            if is_meant and (frame.kind is not FrameKind.ACK or has_cuts(frame)):
                self.is_done = True
                rest = [alone(other, wave) for other in frames if other is not frame]
                return rest + RandomFaults(Random(0), 0)._changed(self.kind, frame, wave)
        return blocks


def once_each(*partitions, values=7):
    counts = {f"{partition}/{number}": 1 for partition in partitions for number in range(values)}
    return {"counts0": {**counts, "all": len(counts)}}
