"""How frames come into a stage and leave it; what stages of every kind of topology do alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from coordinated_bolt.transport.frames import Frame, frame_target, pack_frame

Addressed = tuple[int, bytes]
FrameFault = Callable[[int, list[bytes]], list[bytes]]
"""Fault point ``frames.read``: (task id, frames it read) -> the frames it is given instead."""


class Post:
    """Outgoing frames of one task on their way to the next stage.

    Args:
        routes: target task -> partition of the next stage.
    """

    def __init__(self, routes: dict[int, int]) -> None:
        self._routes = routes
        self._held: list[Addressed] = []

    def send(self, frame: Frame) -> None:
        """Takes one frame."""
        self._held.append((self._routes[frame.target], pack_frame(frame)))

    def take(self) -> list[Addressed]:
        """What was sent since the last call."""
        held, self._held = self._held, []
        return held


def sort_out(
    records: Iterable[Addressed], own_tasks: set[int], own: list[bytes], routes: dict[int, int]
) -> Iterator[Addressed]:
    """Keeps the frames for this task and carries the others on; those that go nowhere are dropped."""
    for _, packed in records:
        target = frame_target(packed)
        if target in own_tasks:
            own.append(packed)
        elif target in routes:
            yield routes[target], packed


def disturbed(fault: FrameFault | None, task_id: int, frames: list[bytes]) -> list[bytes]:
    """The frames as a task is given them."""
    return frames if fault is None else fault(task_id, frames)


def named_partition(partition: int) -> int:
    """The identity partitioner: frames name the partition they go to."""
    return partition
