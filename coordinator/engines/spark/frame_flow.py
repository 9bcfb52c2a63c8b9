"""How frames go from one stage to the next, whatever kind of topology they belong to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from coordinated_bolt.plain.wave_frames import WaveFrame
from coordinated_bolt.transport.blocks import Block
from coordinated_bolt.transport.frames import frame_target
from state.attempt import TransactionAttempt
from state.fault_points import reached

Addressed = tuple[int, bytes]
FrameFault = Callable[[int, list[bytes], Sequence[TransactionAttempt]], list[bytes]]
"""Fault point ``frames.read``: (task id, what it read, attempts of the wave) -> what it is given instead."""
FrameT = TypeVar("FrameT", Block, WaveFrame)


class Post(Generic[FrameT]):
    """Outgoing frames of one task on their way to the next stage.

    Args:
        routes: target task -> partition of the next stage.
        pack: makes bytes of a frame.
    """

    def __init__(self, routes: Mapping[int, int], pack: Callable[[FrameT], bytes]) -> None:
        self._routes = routes
        self._pack: Callable[[FrameT], bytes] = pack
        self._held: list[Addressed] = []

    def send(self, frame: FrameT) -> None:
        """Takes one frame."""
        packed = self._pack(frame)
        reached("frame.packed")
        self._held.append((self._routes[frame.target], packed))

    def take(self) -> list[Addressed]:
        """Returns what was sent since the last call."""
        held, self._held = self._held, []
        return held


def sort_out(
    records: Iterable[Addressed], own_tasks: Sequence[int], routes: Mapping[int, int]
) -> Generator[Addressed, None, dict[int, list[bytes]]]:
    """Carries on the frames for other tasks, but for those without a route; returns those of each of our own."""
    own: dict[int, list[bytes]] = {task: [] for task in own_tasks}
    for _, packed in records:
        target = frame_target(packed)
        if target in own:
            own[target].append(packed)
        elif target in routes:
            yield routes[target], packed
    return own
