"""Collects what spouts emit for one wave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinated_bolt.plain.message_packer import MessagePacker
from coordinated_bolt.plain.wave_frames import WaveFrame, WaveId, pack_wave_frame
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.plain_engine import PlainWave


class SpoutWave:
    """A wave while it is filled (driver).

    Args:
        wave_id: its identity.
        outboxes: spout task id -> its outbox, which from now on puts everything into this wave.

    Attributes:
        roots: (spout task, root) of every message that is to be acked or failed, in the order of their emission.
    """

    def __init__(self, wave_id: WaveId, outboxes: Mapping[int, SpoutOutbox]) -> None:
        self._wave_id = wave_id
        self._frames: list[bytes] = []
        self.roots: list[tuple[int, int]] = []
        self._packers = [outbox.begin(wave_id, self._keep, self.roots) for outbox in outboxes.values()]

    @property
    def byte_count(self) -> int:
        """The size of everything in it, in bytes."""
        count = 0
        for packer in self._packers:
            count += packer.byte_count
        return count

    def close(self) -> PlainWave:
        """Returns the wave as an engine takes it; the outboxes need another one before they are used."""
        for packer in self._packers:
            packer.close()
        return PlainWave(self._wave_id, tuple(self._frames))

    def _keep(self, frame: WaveFrame) -> None:
        self._frames.append(pack_wave_frame(frame))


class SpoutOutbox:
    """The `RootOutbox` of a spout task, which outlives the waves that it fills (driver).

    Args:
        wiring: the task.
    """

    add: Callable[[int, int, list[Any], dict[int, int]], None]

    def __init__(self, wiring: TaskWiring) -> None:
        self._wiring = wiring
        self._packer: MessagePacker
        self._roots: list[tuple[int, int]]

    def begin(self, wave_id: WaveId, keep: Callable[[WaveFrame], None], roots: list[tuple[int, int]]) -> MessagePacker:
        """Puts everything into another wave from now on; returns what packs it.

        Args:
            wave_id: the wave.
            keep: takes its frames.
            roots: takes (task, root) of every tree that begins.
        """
        wiring = self._wiring
        self._roots = roots
        self._packer = MessagePacker(wave_id, wiring.task_id, keep, wiring.frame_tuples, wiring.acker_tasks)
        self.add = self._packer.add  # not a method of ours that calls it, since every tuple passes here
        return self._packer

    def init(self, root: int, edges: int) -> None:
        """Begins a tree, whose end the spout is to hear of."""
        self._packer.init(root, edges)
        self._roots.append((self._wiring.task_id, root))
