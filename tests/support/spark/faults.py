"""Frame faults: what `SparkEngine.frame_fault` is set to. They run in Python workers, so a marker file says "done"."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coordinated_bolt.transport.frames import Frame, FrameKind, pack_frame, unpack_frame
from coordinator.building.topology import Topology
from coordinator.planning.plan import make_plan
from coordinator.spark.shipping import pickle_spec
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from tests.support.spark.bolts import once
from tests.support.spark.guards import disable

OFFSET = 1_000_000


@dataclass(frozen=True)
class OneFrame:
    """Does something to the first frame of a kind that a task reads for a txid, once in all.

    Attributes:
        marker: made when it is done; holds the attempt that was hit.
        tasks: the tasks that may be hit.
        txid: whose frame.
        change: ``drop``, ``double``, ``swap`` (filed under another attempt of the txid), ``swap_txid`` (under
            the next txid's attempt), or ``alter`` (other content, correct checksum).
        kind: which frames.
        disabled: guards that are taken out of every process that reads frames.
    """

    marker: Path
    tasks: tuple[int, ...]
    txid: int
    change: str
    kind: FrameKind = FrameKind.REGULAR
    disabled: tuple[str, ...] = ()

    def __call__(self, task_id: int, frames: list[bytes]) -> list[bytes]:
        disable(self.disabled)
        if task_id not in self.tasks or self.marker.exists():
            return frames
        unpacked = [unpack_frame(packed) for packed in sorted(frames)]
        chosen = next((f for f in unpacked if f.attempt.txid == self.txid and f.kind is self.kind), None)
        if chosen is None or not once(self.marker):
            return frames
        self.marker.write_text(str(chosen.attempt), encoding="utf-8")
        others = [pack_frame(frame) for frame in unpacked if frame is not chosen]
        later = [frame.attempt for frame in unpacked if frame.attempt.txid > self.txid]
        return others + [pack_frame(frame) for frame in self._changed(chosen, later)]

    def _changed(self, frame: Frame, later: list[TransactionAttempt]) -> list[Frame]:
        if self.change == "drop":
            return []
        if self.change == "double":
            return [frame, frame]
        if self.change == "swap":
            return [frame._replace(attempt=TransactionAttempt(self.txid, frame.attempt.attempt_id ^ 1))]
        if self.change == "swap_txid":
            return [frame._replace(attempt=min(later))]
        assert self.change == "alter"
        return [frame._replace(payload=_altered(frame))]


def _altered(frame: Frame) -> bytes:
    content = unpack(frame.payload)
    if frame.kind is FrameKind.COORD:
        return pack(content + 1)
    if frame.kind is FrameKind.ACK:
        failure, edges, residue, *rest = content
        return pack([failure, edges, residue ^ OFFSET, *rest])
    if frame.kind is FrameKind.META:
        return pack({**content, "partition.0": OFFSET})
    rows = content[0][1]
    rows[0][0] += OFFSET
    return pack(content)


def tasks_of(topology: Topology, component_id: str) -> tuple[int, ...]:
    """Task ids of a component, ``__acker`` too."""
    plan = make_plan(topology, pickle_spec)
    return next(iter(plan.wirings.values())).tasks_of[component_id]
