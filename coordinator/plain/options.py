"""The options of a plain topology's run on Spark, checked."""

from __future__ import annotations

from dataclasses import dataclass

from state.errors import TopologyError


@dataclass(frozen=True, slots=True)
class PlainRunOptions:
    """How large a wave may be, and when a run ends by itself.

    In addition, a spout task has at most `max_spout_pending` messages in flight, see `TopologyBuilder`. All messages of
    a wave are in flight until it ends, so this also limits what the task emits for one wave.

    Attributes:
        wave_tuples_max: a wave is full once it has this many tuples.
        wave_bytes_max: a wave is full once its packed tuples take this many bytes; the driver holds them in memory.
        wave_fill_s: a wave is full once it has been filled for this many seconds.
        max_crashes: this many crashes in a row of waves of a single tuple stop the run.
        stop_when_idle: end the run once the spouts have had nothing for a while. Otherwise only `drain` ends it,
            because a spout cannot report the end of its input.
        idle_rounds: how long "a while" is: each spout task was asked this many times in a row and had nothing. The
            pauses in between grow from 1 to 100 ms, so ten rounds last about 0.4 s. Raise it for a spout that may pause
            for longer.
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
