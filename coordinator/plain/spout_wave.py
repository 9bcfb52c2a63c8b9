"""Gathers what spouts emit until it is enough for a wave."""

from __future__ import annotations

from collections.abc import Mapping

from coordinated_bolt.transport.message_outbox import MessageOutbox
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
        roots: (spout task, root) of every message whose end a spout waits for, in the order of their emission.
        tuple_count: tuples emitted, one however many tasks receive it; counted by whoever is told of emissions.
    """

    def __init__(self, wave_id: WaveId, wirings: Mapping[int, TaskWiring]) -> None:
        self._wave_id = wave_id
        self._wirings = wirings
        self._outboxes: dict[int, MessageOutbox] = {}
        self._frames: list[bytes] = []
        self.roots: list[tuple[int, int]] = []
        self.tuple_count = 0

    @property
    def byte_count(self) -> int:
        """Size of all messages."""
        return sum(outbox.byte_count for outbox in self._outboxes.values())

    def send(self, message: Message) -> None:
        """Takes a message of a spout task.

        Raises:
            CodecError: a value cannot travel.
        """
        outbox = self._outboxes.get(message.source)
        if outbox is None:
            frame_messages = self._wirings[message.source].frame_tuples
            outbox = MessageOutbox(self._wave_id, message.source, self._keep, frame_messages)
            self._outboxes[message.source] = outbox
        outbox.add(message)
        if message.kind is MessageKind.INIT:
            self.roots.append((message.source, message.root))

    def close(self) -> PlainWave:
        """The wave as an engine takes it; nothing may be sent after."""
        for outbox in self._outboxes.values():
            outbox.close()
        return PlainWave(self._wave_id, tuple(self._frames))

    def _keep(self, frame: WaveFrame) -> None:
        self._frames.append(pack_wave_frame(frame))
