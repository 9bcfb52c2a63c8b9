"""Messages of plain tasks, and an outbox that shows each, so that tests can say what is sent and received."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coordinated_bolt.transport.frames import SealedFrame, WaveId
from coordinator.plain.tasks.message_packer import MessagePacker, messages_in
from coordinator.plain.tasks.messages import Message, MessageKind


def tuple_message(
    sender: int, target: int, *, stream_index: int, values: Sequence[Any], roots: Mapping[int, int]
) -> Message:
    return Message(sender, target, MessageKind.TUPLE, (stream_index, list(values), dict(roots)))


def edges_message(kind: MessageKind, sender: int, target: int, *, root: int, edges: int) -> Message:
    """An INIT or ACK."""
    return Message(sender, target, kind, (root, edges))


def message_outbox(task_id: int, acker_tasks: Sequence[int], send: Callable[[Message], object]) -> MessagePacker:
    """The outbox of a task whose every message is sent at once."""

    def opened(frame: SealedFrame) -> None:
        for message in messages_in(frame):
            send(message)

    return MessagePacker(WaveId(1, 0), task_id, opened, frame_messages=1, acker_tasks=acker_tasks)
