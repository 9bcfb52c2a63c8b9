"""The interface between the driver of a plain topology and an engine: run one wave, report how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.transport.frames import WaveId
from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.transactional.engine import WaveCrashed


@dataclass(frozen=True, slots=True)
class PlainWave:
    """The tuples that the spouts have emitted for one wave.

    Attributes:
        wave_id: distinguishes its frames from those of other waves, and seeds the random draws of its bolts.
        frames: messages for bolts, packed.
        begun: for each spout task, root -> edges of every tree that has begun, in the order of emission.
    """

    wave_id: WaveId
    frames: tuple[bytes, ...]
    begun: tuple[Mapping[int, int], ...]


@dataclass(frozen=True, slots=True)
class WaveDrained:
    """Every bolt has executed its tuples; nothing of the wave is in flight.

    Attributes:
        acked: roots whose trees are complete; all other trees of the wave have failed.
        failures: exceptions of user code; any of them ends the run.
        metrics: component id -> metrics of its tasks.
    """

    acked: Set[int]
    failures: tuple[Failure, ...] = ()
    metrics: Mapping[str, ComponentMetrics] = field(default_factory=dict)


class PlainEngine(Protocol):
    """Runs waves, one at a time; the next one is filled meanwhile."""

    def begin(self, wave: PlainWave) -> None:
        """Begins a wave once the one before it has ended; an engine without threads may run it, too."""

    def has_ended(self) -> bool:
        """Returns whether the wave under way has ended, so that `end` need not wait."""

    def end(self) -> WaveDrained | WaveCrashed:
        """Waits for the end of the wave under way.

        Raises:
            EngineError: the engine can run no more waves.
        """

    def close(self) -> None:
        """Cancels the wave under way and frees everything."""
