"""Frame faults: what `SparkEngine.frame_fault` is set to. They run in Python workers, so a marker file says "done"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinator.engines.spark.shipping import pickle_spec
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import make_plan
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from tests.support.spark.bolts import once
from tests.support.tasks.wire import alone, frames_in, has_cuts, with_other_cuts

OFFSET = 1_000_000


@dataclass(frozen=True)
class OneFrame:
    """Does something to the first frame of a kind that a task reads for a txid, once in all.

    Attributes:
        marker: made when it is done; holds the attempt that was hit.
        tasks: the tasks that may be hit.
        txid: whose frame.
        change: ``drop``, ``double``, ``swap_txid`` (filed under the next txid's attempt), or ``alter`` (other content,
            correct checksum).
        kind: which frames; of reports to an acker, those with cuts if `of_cuts`.
    """

    marker: Path
    tasks: tuple[int, ...]
    txid: int
    change: str
    kind: FrameKind = FrameKind.REGULAR
    of_cuts: bool = False

    def __call__(self, task_id: int, blocks: list[bytes], wave: Sequence[TransactionAttempt]) -> list[bytes]:
        if task_id not in self.tasks or self.marker.exists():
            return blocks
        frames = [frame for packed in sorted(blocks) for frame in frames_in(packed, wave)]
        chosen = next(filter(self._is_meant, frames), None)
        if chosen is None or not once(self.marker):
            return blocks
        self.marker.write_text(str(chosen.attempt), encoding="utf-8")
        others = [alone(frame, wave) for frame in frames if frame is not chosen]
        later = [attempt for attempt in wave if attempt.txid > self.txid]
        return others + [alone(frame, wave) for frame in self._changed(chosen, later)]

    def _is_meant(self, frame: Frame) -> bool:
        return (frame.attempt.txid, frame.kind) == (self.txid, self.kind) and (not self.of_cuts or has_cuts(frame))

    def _changed(self, frame: Frame, later: list[TransactionAttempt]) -> list[Frame]:
        if self.change == "drop":
            return []
        if self.change == "double":
            return [frame, frame]
        if self.change == "swap_txid":
            return [frame._replace(attempt=min(later))]
        assert self.change == "alter"
        return [frame._replace(payload=_altered(frame))]


def _altered(frame: Frame) -> bytes:
    if frame.kind is FrameKind.ACK:
        return with_other_cuts(frame, OFFSET)
    content = unpack(frame.payload)
    if frame.kind is FrameKind.COORD:
        return pack(content + 1)
    rows = content[0][1]
    rows[0][0] += OFFSET
    return pack(content)


def tasks_of(topology: Topology, component_id: str) -> tuple[int, ...]:
    """Task ids of a component, ``__acker`` too."""
    plan = make_plan(topology, pickle_spec)
    return next(iter(plan.wirings.values())).tasks_of[component_id]
