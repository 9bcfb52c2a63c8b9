"""Collects what spouts emit for one wave."""

from __future__ import annotations

from collections.abc import Mapping

from coordinated_bolt.transport.message_packer import MessagePacker
from coordinated_bolt.transport.messages import Message, MessageKind
from coordinated_bolt.transport.wave_frames import WaveFrame, WaveId, pack_wave_frame
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.engine import PlainWave


class SpoutWave:
    """A wave while it is filled (driver).

    Args:
        wave_id: its identity.
        wirings: task id -> wiring, the spouts' among them.

    Attributes:
        roots: (spout task, root) of every message that is to be acked or failed, in the order of their emission.
        tuple_count: tuples emitted, each counted once however many tasks receive it; kept up to date by the caller.
    """

    def __init__(self, wave_id: WaveId, wirings: Mapping[int, TaskWiring]) -> None:
        self._wave_id = wave_id
        self._wirings = wirings
        self._packers: dict[int, MessagePacker] = {}
        self._frames: list[bytes] = []
        self.roots: list[tuple[int, int]] = []
        self.tuple_count = 0

    @property
    def byte_count(self) -> int:
        """The size of all messages, in bytes."""
        return sum(packer.byte_count for packer in self._packers.values())

    def send(self, message: Message) -> None:
        """Takes a message of a spout task.

        Raises:
            CodecError: a value cannot travel.
        """
        packer = self._packers.get(message.sender)
        if packer is None:
            frame_messages = self._wirings[message.sender].frame_tuples
            packer = MessagePacker(self._wave_id, message.sender, self._keep, frame_messages)
            self._packers[message.sender] = packer
        packer.add(message)
        if message.kind is MessageKind.INIT:
            self.roots.append((message.sender, message.root))

    def close(self) -> PlainWave:
        """Returns the wave as an engine takes it; nothing may be sent afterwards."""
        for packer in self._packers.values():
            packer.close()
        return PlainWave(self._wave_id, tuple(self._frames))

    def _keep(self, frame: WaveFrame) -> None:
        self._frames.append(pack_wave_frame(frame))
