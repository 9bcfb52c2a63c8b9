"""What the driver of a plain topology asks of an engine: run one wave, say how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.transport.wave_frames import WaveId
from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.transactional.engine import WaveCrashed


@dataclass(frozen=True, slots=True)
class PlainWave:
    """What the spouts have emitted for one wave.

    Attributes:
        wave_id: tells its frames from those of another wave, and seeds what its bolts draw at random.
        frames: messages for bolts and ackers, packed.
    """

    wave_id: WaveId
    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class WaveDrained:
    """Every bolt has executed what there was; nothing of the wave is under way.

    Attributes:
        acked: roots whose trees are complete; every other one of the wave has failed.
        failures: what user code raised; the run ends then.
        metrics: component id -> what its tasks did.
    """

    acked: frozenset[int]
    failures: tuple[Failure, ...] = ()
    metrics: Mapping[str, ComponentMetrics] = field(default_factory=dict)


class PlainEngine(Protocol):
    """Runs waves, one at a time."""

    def run_wave(self, wave: PlainWave) -> WaveDrained | WaveCrashed:
        """Runs a wave to its end; waits for it.

        Raises:
            EngineError: nothing can be run any more.
        """

    def close(self) -> None:
        """Cancels what runs and lets go of everything."""
