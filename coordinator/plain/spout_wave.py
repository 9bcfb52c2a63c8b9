"""A wave of a plain topology while spouts fill it: one outbox for each spout task, and the trees that begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coordinated_bolt.transport.frames import SealedFrame, WaveId, seal_frame
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.plain_engine import PlainWave
from coordinator.plain.tasks.message_packer import MessagePacker


class SpoutPacker(MessagePacker):
    """The outbox of a spout task, which outlives the waves that it fills (driver).

    Trees that begin are not sent to an acker: the driver keeps their edges, and compares them with the bolts' reports.
    """

    def __init__(self, wiring: TaskWiring) -> None:
        super().__init__(WaveId(0, 0), wiring.task_id, lambda frame: None, wiring.frame_tuples)

    def fill(self, wave_id: WaveId, keep: Callable[[SealedFrame], None], begun: dict[int, int]) -> None:
        """Begins to fill another wave, after the one before was closed.

        `keep` takes the wave's frames, and `begun` root -> edges of every tree that begins.
        """
        self._wave_id, self._send_frame, self._begun, self._boxes, self.byte_count = wave_id, keep, begun, {}, 0

    def init(self, root: int, edges: int) -> None:
        """Records a tree that begins."""
        self._begun[root] = edges

    def begin(self, begun: dict[int, int]) -> None:
        """Records many trees that begin."""
        self._begun.update(begun)


class SpoutWave:
    """A wave, from its first tuple to the last `ack` or `fail` of its messages (driver).

    Args:
        packers: spout task id -> its outbox, which now begins to fill this wave.

    Attributes:
        begun: spout task -> root -> edges of every message that has to be acked or failed, in the order of emission.
        tuple_count, began_s, ended_s: set when the wave begins and ends; times are seconds on the run's clock.
    """

    def __init__(self, wave_id: WaveId, packers: Mapping[int, SpoutPacker]) -> None:
        self.wave_id = wave_id
        self.tuple_count, self.began_s, self.ended_s = 0, 0.0, 0.0
        self._frames: list[bytes] = []
        self.begun: dict[int, dict[int, int]] = {task: {} for task in packers}
        self._packers = packers.values()
        for task, packer in packers.items():
            packer.fill(wave_id, self._keep, self.begun[task])

    @property
    def byte_count(self) -> int:
        """The size of the packed tuples in it, in bytes, while it is filled."""
        return sum(packer.byte_count for packer in self._packers)

    def close(self) -> PlainWave:
        """Returns the wave for an engine; the outboxes must not be used before another wave is made."""
        for packer in self._packers:
            packer.close()
        return PlainWave(self.wave_id, tuple(self._frames), tuple(self.begun.values()))

    def _keep(self, frame: SealedFrame) -> None:
        self._frames.append(seal_frame(frame))
