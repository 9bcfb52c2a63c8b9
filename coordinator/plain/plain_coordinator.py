"""Runs a plain topology in waves: calls the spouts, lets an engine process their tuples, and acks or fails messages.

The spouts live here, in the driver, and are called as in Storm: `next_tuple` while they may emit, then `ack` or `fail`
once for each message, never two calls at a time. While an engine runs a wave, the next one is filled; it begins as soon
as the engine is free, before `ack` and `fail` are called for the previous one. Nothing here imports Spark.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence, Set
from random import Random

from coordinated_bolt.transport.frames import WaveId
from coordinated_bolt.watching.task_observer import Meter
from coordinator.plain.plain_engine import PlainEngine, WaveDrained
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_plan import PlainPlan
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_wave_size import PlainWaveSize
from coordinator.plain.spout_wave import SpoutPacker, SpoutWave
from coordinator.plain.tasks.spout_task import SpoutTask
from coordinator.plain.tasks.user_calls import close_all, end_on
from coordinator.transactional.engine import WaveCrashed
from coordinator.watching.failure_cause import CrashKind
from coordinator.watching.log_records import fields
from coordinator.watching.run_observer import Observer, Observers, RunBegan, RunEnded, TurnEnded, WaveEnded, WaveStarted
from state.errors import EngineError, WaveCrashError
from state.fault_points import reached
from state.printable import counted

_LOG = logging.getLogger("txbatch")
SHORTEST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.1
LOOK_EVERY_S = 0.001
"""How often the driver checks, while it fills a wave, whether the running one has ended."""


class PlainCoordinator:
    """One run of a plain topology: call `run` once, on one thread.

    Args:
        engine: runs its waves; closed by the caller.
        clock: monotonic seconds.
        clock_ns: the same in nanoseconds, read several times for every message; None derives it from `clock`.
        sleep: sleeps for a number of seconds (1 to 100 ms); called when no spout had a tuple.
        draw_bits: number of bits -> a random number, for wave ids and the spouts' random draws.
        on_progress: called with the statistics after every wave, on the calling thread.
        observers: notified of the events of the run; see `coordinator.watching.run_observer`.
    """

    def __init__(
        self,
        plan: PlainPlan,
        engine: PlainEngine,
        options: PlainRunOptions,
        *,
        clock: Callable[[], float],
        clock_ns: Callable[[], int] | None = None,
        sleep: Callable[[float], None],
        draw_bits: Callable[[int], int],
        on_progress: Callable[[PlainStatistics], None] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._engine, self._options = engine, options
        self._clock, self._sleep, self._draw_bits = clock, sleep, draw_bits
        self._on_progress = on_progress
        self._observers = Observers(observers)
        self._topology_id, self._message_timeout_s = plan.topology_id, plan.message_timeout_s
        self._size = PlainWaveSize(options.wave_tuples_max, options.max_crashes)
        self._is_draining, self._idle_rounds = False, 0
        self.statistics = PlainStatistics()
        self._outboxes = {task: SpoutPacker(plan.wirings[task]) for task in plan.spout_tasks}
        self._wave_count = 0
        self._wave = self._new_wave()
        self._sent_count = 0  # tuples of earlier waves
        self._meters = {
            plan.wirings[task].component_id: Meter(clock=clock_ns or self._now_ns) for task in plan.spout_tasks
        }
        for component_id, meter in self._meters.items():
            self.statistics.components[component_id] = meter.metrics
        self._spouts = {
            task: SpoutTask(
                plan.wirings[task],
                self._outboxes[task],
                Random(draw_bits(64)),
                max_spout_pending=plan.max_spout_pending,
                meter=self._meters[plan.wirings[task].component_id],
            )
            for task in plan.spout_tasks
        }
        self._turns = deque(self._spouts.values())

    def drain(self) -> None:
        """Ends the run after the current wave; may be called from a signal handler or any thread.

        The wave that is being filled is run, too, unless the one before it crashes; their messages are acked or failed
        as usual. Tuples that spouts emit in these last calls are not sent.
        """
        self._is_draining = True

    def run(self) -> PlainStatistics:
        """Runs until drained or, with `stop_when_idle`, until the spouts have nothing more to emit.

        However it ends, every spout is closed. If it ends with an error, the messages of the current wave are neither
        acked nor failed.

        Raises:
            UserCodeError: a spout or bolt raised, or emitted a value that cannot travel; a `FailedException` of a
                spout counts too.
            WaveCrashError: even waves of one tuple crash.
            EngineError: Spark is gone or cannot work.
        """
        opened: list[SpoutTask] = []
        self._observers.notify(RunBegan(self._topology_id, self.statistics, self._message_timeout_s))
        try:
            for spout in self._spouts.values():
                opened.append(spout)
                end_on(spout.start())
            for spout in self._spouts.values():
                end_on(spout.activate())
            self._run_waves()
            for spout in self._spouts.values():
                end_on(spout.deactivate())
        except BaseException as error:
            self._count()
            self._observers.notify(RunEnded(error))
            for spout in opened:
                failure = spout.close()
                if failure is not None:  # the first error is the one to report
                    _LOG.warning("closing a spout after another error, %s", failure.to_error())
            raise
        failure = close_all(spout.close for spout in opened)
        self._count()
        self._observers.notify(RunEnded(None if failure is None else failure.to_error()))
        end_on(failure)
        return self.statistics

    def _run_waves(self) -> None:
        under_way: SpoutWave | None = None
        self.statistics.is_interrupted = self._options.stop_when_idle
        while True:
            is_draining = self._is_draining  # then tuples emitted since the last turn are not sent
            self._fill(is_alone=under_way is None)
            self._count()
            if under_way is not None:
                under_way = self._turn(under_way, is_last=is_draining)
            elif is_draining:
                return
            elif self._waiting_count():
                under_way = self._begin()
            elif not self._may_go_on():
                self.statistics.is_interrupted = False
                return

    def _turn(self, wave: SpoutWave, *, is_last: bool) -> SpoutWave | None:
        """Ends a wave; if it was good, begins the next one before acking this one. Returns the wave that runs now."""
        self._idle_rounds = 0
        ended = self._end(wave)
        is_good = isinstance(ended, WaveDrained) and not ended.failures
        following = self._begin() if is_good and not is_last else None
        self._tell(wave, ended)
        self._observers.notify(TurnEnded(is_idle=False))
        return following

    def _may_go_on(self) -> bool:
        """Pauses after no spout had a tuple; returns whether to ask the spouts again."""
        self._observers.notify(TurnEnded(is_idle=True))
        self._idle_rounds += 1
        if self._options.stop_when_idle and self._idle_rounds >= self._options.idle_rounds:
            return False
        self._sleep(min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2 ** min(self._idle_rounds - 1, 10)))
        return True

    def _fill(self, *, is_alone: bool) -> None:
        """Calls the spouts in turn until the wave is full, none of them has a tuple, or the run is drained.

        If another wave is running, this wave is also full once that one has ended.
        """
        full_s = look_s = self._clock()
        full_s += self._options.wave_fill_s
        turns, spout_count, asked_in_vain = self._turns, len(self._turns), 0
        tuple_count = self._waiting_count()  # `ack` and `fail` may emit, too
        while asked_in_vain < spout_count and not self._is_draining:
            now_s = self._clock()
            if not is_alone and now_s >= look_s:
                look_s = now_s + LOOK_EVERY_S
                if self._engine.has_ended():
                    return
            if tuple_count and self._is_full(tuple_count, now_s >= full_s):
                return
            spout = turns[0]
            turns.rotate(-1)  # turns carry over to the next wave
            emitted_count = spout.ask()
            tuple_count += emitted_count
            asked_in_vain = 0 if emitted_count else asked_in_vain + 1

    def _is_full(self, tuple_count: int, is_time_up: bool) -> bool:
        return is_time_up or tuple_count >= self._size.limit or self._wave.byte_count >= self._options.wave_bytes_max

    def _waiting_count(self) -> int:
        """Returns the number of tuples that no wave has taken yet; a tuple for several tasks counts once."""
        return self._emitted_count() - self._sent_count

    def _emitted_count(self) -> int:
        return sum(spout.emitted_count for spout in self._turns)

    def _count(self) -> None:
        """Updates the statistics by the spouts' figures."""
        self.statistics.emitted = self._emitted_count()
        metrics = [meter.metrics for meter in self._meters.values()]
        self.statistics.acked = sum(sum(each.acked.values()) for each in metrics)
        self.statistics.failed = sum(sum(each.failed.values()) for each in metrics)

    def _begin(self) -> SpoutWave | None:
        """Begins the wave that was filled, unless it is empty."""
        tuple_count = self._waiting_count()
        if not tuple_count:
            return None
        wave, packed = self._wave, self._wave.close()
        self._wave = self._new_wave()
        self._sent_count += tuple_count
        wave.tuple_count, wave.began_s = tuple_count, self._clock()
        self.statistics.wave_started(wave.began_s)
        self._observers.notify(WaveStarted(wave.wave_id.number, tuple_count=tuple_count))
        reached("plain_wave.submitting")
        self._engine.begin(packed)
        return wave

    def _end(self, wave: SpoutWave) -> WaveDrained | WaveCrashed:
        ended = self._engine.end()
        reached("plain_wave.drained")
        wave.ended_s = self.statistics.last_result_s = self._clock()
        duration_s = wave.ended_s - wave.began_s
        self.statistics.wave_ended(wave.ended_s, duration_s, wave.tuple_count)
        crash = ended.reason if isinstance(ended, WaveCrashed) else None
        self._observers.notify(WaveEnded(wave.wave_id.number, (), duration_s, crash=crash))
        return ended

    def _tell(self, wave: SpoutWave, ended: WaveDrained | WaveCrashed) -> None:
        """Acks or fails the messages of a wave with their spouts."""
        acked: Set[int] = frozenset()
        if isinstance(ended, WaveDrained):
            end_on(next(iter(ended.failures), None))
            acked = ended.acked
            self.statistics.worked(ended.metrics)
            self._size.drained(wave.tuple_count)
        else:
            self._crashed(ended, wave.tuple_count)
        for task, roots in wave.begun.items():
            end_on(self._spouts[task].end(roots, acked=acked))
        self._count()
        self.statistics.moment(wave.ended_s, self.statistics.acked, self.statistics.failed)
        if self._on_progress is not None:
            self._on_progress(self.statistics)

    def _crashed(self, crashed: WaveCrashed, tuple_count: int) -> None:
        self.statistics.crashed_waves += 1
        _LOG.warning(
            "wave %d of %s crashed and its messages fail: %s",
            crashed.wave_id,
            counted(tuple_count, "tuple"),
            crashed.reason,
            extra=fields(wave=crashed.wave_id, reason=crashed.reason),
        )
        if crashed.kind is CrashKind.CERTAIN:
            raise EngineError(f"Spark cannot run the topology: {crashed.reason}")
        if self._size.crashed(tuple_count):
            raise WaveCrashError(self._size.crashes_alone, crashed.reason)

    def _now_ns(self) -> int:
        return int(self._clock() * 1e9)

    def _new_wave(self) -> SpoutWave:
        self._wave_count += 1
        return SpoutWave(WaveId(self._wave_count, self._draw_bits(64)), self._outboxes)
