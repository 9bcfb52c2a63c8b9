"""The options of a plain topology's run on Spark, checked."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.option_checks import checked, count, refuse_wrong_options, seconds
from coordinator.transactional.options import EXECUTORS_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class PlainRunOptions:
    """How large a wave may be, and when a run ends by itself.

    In addition, a spout task has at most `max_spout_pending` messages in flight, see `TopologyBuilder`: those in the
    running wave and those in the wave that is filled meanwhile.

    Attributes:
        wave_tuples_max: a wave is full once it has this many tuples.
        wave_bytes_max: a wave is full once its packed tuples take this many bytes; the driver holds them in memory.
        wave_fill_s: a wave is full once it has been filled for this many seconds.
        max_crashes: the run stops after this many crashes in a row of waves with a single tuple.
        stop_when_idle: end the run once the spouts are idle. Otherwise only `drain` ends it, because a spout cannot
            report the end of its input.
        idle_rounds: the spouts are idle once every spout task was asked this many times in a row and had no tuple. The
            pauses in between grow from 1 to 100 ms, so ten rounds last about 0.4 s. Raise it for a spout that may pause
            for longer.
        executors_timeout_s: how long the run waits if the cluster gives it no executor, so that Spark runs none of its
            tasks; then it ends with an `EngineError`.
    """

    wave_tuples_max: int = checked(50_000, count())
    wave_bytes_max: int = checked(32 * 1024 * 1024, count())
    wave_fill_s: float = checked(0.2, seconds(above_zero=True))
    max_crashes: int = checked(5, count())
    stop_when_idle: bool = False
    idle_rounds: int = checked(10, count())
    executors_timeout_s: float = checked(EXECUTORS_TIMEOUT_S, seconds(above_zero=True))

    def __post_init__(self) -> None:
        refuse_wrong_options(self)
