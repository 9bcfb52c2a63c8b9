"""The bounds of a plain topology's run on Spark, checked."""

from __future__ import annotations

from dataclasses import dataclass

from state.errors import TopologyError


@dataclass(frozen=True, slots=True)
class PlainRunOptions:
    """How large a wave may be, and when a run ends by itself.

    Besides these, a spout task has at most `max_spout_pending` messages under way, see `TopologyBuilder`, and as
    all of a wave is under way until the wave ends, that bounds what the task emits for one wave.

    Attributes:
        wave_tuples_max: a wave is full once it has so many tuples.
        wave_bytes_max: a wave is full once its tuples take so many bytes, packed; they are held in the driver.
        wave_fill_s: a wave is full once it has been filled for so many seconds.
        max_crashes: so many crashes in a row of waves of a single tuple stop the run.
        stop_when_idle: end when the spouts have had nothing for a while; else only `drain` ends the run, for no
            spout can say that it has reached an end.
        idle_rounds: what "a while" is: each spout task was asked so many times in a row; the pauses in between grow
            from 1 to 100 ms, so that ten rounds last about 0.4 s. A spout that waits longer before it emits
            something again needs more.
    """

    wave_tuples_max: int = 50_000
    wave_bytes_max: int = 32 * 1024 * 1024
    wave_fill_s: float = 0.2
    max_crashes: int = 5
    stop_when_idle: bool = False
    idle_rounds: int = 10

    def __post_init__(self) -> None:
        for name in ("wave_tuples_max", "wave_bytes_max", "max_crashes", "idle_rounds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise TopologyError(f"option {name} is {value!r}; give an integer of at least 1")
        fill_s = self.wave_fill_s
        if isinstance(fill_s, bool) or not isinstance(fill_s, (int, float)) or not 0 < fill_s < float("inf"):
            raise TopologyError(f"option wave_fill_s is {fill_s!r}; give a number of seconds above 0")
