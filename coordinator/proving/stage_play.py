"""Plays a schedule stage by stage, as on Spark, in virtual time: tasks, frames, driver and server fail."""

from __future__ import annotations

from itertools import groupby
from random import Random

from coordinator.engines.waves.shares import ShareStage
from coordinator.engines.waves.stage import CommitStage, EmitterStage, MeetingStage, ProcessingStage
from coordinator.proving.quiet_run import Kept, letters_of
from coordinator.proving.schedule import OTHER_TASKS, Played, Schedule
from coordinator.proving.subject import described_tasks, with_other_tasks
from coordinator.testing.simulated.driver_process import DriverProcess
from coordinator.testing.simulated.executors import Stage
from coordinator.testing.simulated.fault_plan import TASK_POINTS
from coordinator.testing.simulated.process import Process
from coordinator.testing.simulated.sim_engine import Job
from coordinator.testing.simulated.timeline import Timeline
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.pickling import pickle_spec
from coordinator.transactional.coordinator import Coordinator
from state.errors import (
    FencedError,
    ReplayLimitError,
    StateRefusedError,
    StateUnreachableError,
    TransactionError,
    WaveCrashError,
)
from state.fault_points import installed
from state.redis_admin.snapshots import snapshot
from state.redis_owner.store import RedisStore
from state.redis_server.lossy_server import LossyServer

CALLS_WITH_FAULTS, CALLS_AT_MOST = 120, 600
"""After how many calls of the server faults end: random ones, and faults that were given exactly."""
HAPPENINGS_MAX = 50_000
CALM_ERRORS_MAX = 2
"""How many runs may still end with an error after the last fault: it may be the reason for the first of them."""
COMMITTED = " has committed up to "
"""Part of a progress line; a story keeps the last of several in a row."""
EXPLAINED = (FencedError, ReplayLimitError, StateRefusedError, StateUnreachableError, WaveCrashError)
"""Errors with which a fault may end a run; the next run continues."""
SAID = {
    "task.is_retried": "a task of {} is given up half-way and run again",
    "task.has_a_twin": "a task of {} is run twice, and each reader finds the output of one of both",
    "stage.is_recomputed": "what precedes the commit phase of a wave is run again",
    "wave.is_lost": "a worker is lost with all that a wave has done",
    "wave.hangs": "a wave hangs",
    "frame.is_lost": "a frame is lost",
    "frame.is_doubled": "a frame arrives twice",
    "frame.is_altered": "a frame is altered on its way",
    **{f"die@{point}": "the worker of a task of {} " + f"dies at {point}" for point in TASK_POINTS},
}
"""Fault -> its line in the story; the braces are for the task's components and transactions."""


class StagePlay:
    """Plays one schedule up to a transaction, or to the end of the input."""

    def __init__(self, topology: Topology, schedule: Schedule, last_txid: int | None) -> None:
        self._topology, self._schedule, self._last_txid = topology, schedule, last_txid
        self._timeline = Timeline(HAPPENINGS_MAX)
        self._faults = schedule.plan()
        self._faults.tell = self._note
        self._server = LossyServer(self._faults, self._timeline.note)
        self._drivers: list[DriverProcess] = []
        self._is_done = False
        self._error: TransactionError | None = None
        self._calm_errors = 0

    def play(self) -> Played:
        """Plays the schedule to its end."""
        with installed(self._reached):
            self._supervise()
            self._timeline.run(until=lambda: self._is_done)
        kept = self._kept() if self._error is None else None
        lines = (line.partition(" ")[2] for line in self._timeline.story)
        story = (
            "stage by stage, as on Spark",
            *(list(group)[-1] for _, group in groupby(lines, key=_progress_or_itself)),
        )
        return Played(kept, self._error, tuple(self._faults.struck), story)

    def _kept(self) -> Kept:
        topology, client = self._topology, self._server.inner
        letters = RedisStore("redis://sim", topology.topology_id, client=client).dead_letters.all()
        return Kept(snapshot(client, topology.topology_id, topology.states).states, letters_of(list(letters)))

    def _reached(self, point: str) -> None:
        actor = self._timeline.actor
        if isinstance(actor, (Process, Job)):
            actor.reach(point)

    def _note(self, fault: str) -> None:
        actor = self._timeline.actor
        if fault in SAID and isinstance(actor, Job):
            running = actor.executors.running
            self._timeline.note(SAID[fault].format("" if running is None else _task_of(*running)))

    def _supervise(self) -> None:
        """Starts a run if none is alive, and ends the faults after enough calls of the server."""
        if self._server.calls > (CALLS_WITH_FAULTS if self._schedule.exactly is None else CALLS_AT_MOST):
            self._faults.end()
        if not any(driver.is_alive for driver in self._drivers):
            self._start()
        if not self._is_done:
            self._timeline.after(0.1, object(), self._supervise)

    def _start(self) -> None:
        topology, faults, name = self._topology, self._faults, f"driver {len(self._drivers) + 1}"
        if faults.strikes(OTHER_TASKS):
            topology = with_other_tasks(topology, faults.drawn(OTHER_TASKS))
            self._timeline.note(described_tasks(topology))
        self._drivers.append(
            _Driver(
                name,
                topology,
                timeline=self._timeline,
                faults=faults,
                server=self._server,
                random=Random(f"{self._schedule.seed} {name}"),
                pickle_spec=pickle_spec,
                ended=self._ended,
                options={"last_txid": self._last_txid, "notifies_spout": False, "history": 0},
            )
        )

    def _ended(self, driver: Process, error: TransactionError | None) -> None:
        struck, exactly = len(self._faults.struck), self._schedule.exactly
        is_calm = self._faults.has_ended or (exactly is not None and struck >= len(exactly))
        self._calm_errors += error is not None and is_calm
        is_explained = isinstance(error, EXPLAINED) and struck > 0 and self._calm_errors <= CALM_ERRORS_MAX
        if error is not None and not is_explained:
            self._error = error
        self._is_done = error is None or not is_explained


class _Driver(DriverProcess):
    """A run that writes its progress into the story."""

    _committed = -1

    def _turning(self, coordinator: Coordinator) -> None:
        if self._committed < 0:
            self._committed = coordinator.statistics.last_txid
            if self._committed:
                self.timeline.note(f"{self.name} continues after {self._committed}")

    def _turned(self, coordinator: Coordinator) -> None:
        last = coordinator.statistics.last_txid
        if last > self._committed:
            self._committed = last
            self.timeline.note(f"{self.name}{COMMITTED}{last}")


def _progress_or_itself(line: str) -> object:
    """Returns a key that a driver's progress lines share, so that only the last is kept; a new key for other lines."""
    return line.rpartition(" ")[0] if COMMITTED in line else object()


def _task_of(stage: Stage, partition: int) -> str:
    """Returns the components and txids that a task of a stage runs, in words."""
    if isinstance(stage, ShareStage):
        return "all components"
    assert isinstance(stage, (EmitterStage, ProcessingStage, MeetingStage, CommitStage))
    plan = stage.entry.plan.value
    if isinstance(stage, EmitterStage):
        index, (partition, dealt) = 0, stage.part(partition)
        attempts = tuple(stage.wave.batches[place].attempt for place in dealt)
    elif isinstance(stage, CommitStage):
        index, attempts = stage.stage_index, stage.attempts
    else:
        index = stage.stage_index if isinstance(stage, ProcessingStage) else plan.meeting_stage
        attempts = stage.wave.attempts().attempts
    heads = {
        plan.wirings[task].component_id for task in plan.stages[index].partitions[partition] if task in plan.wirings
    }
    chain_of = {chain[0]: "+".join(chain) for chain in plan.chains}
    names = ", ".join(sorted(chain_of.get(head, head) for head in heads)) or "the acker"
    txids = [attempt.txid for attempt in attempts]
    return f"{names} (txid {txids[0]}" + (f" to {txids[-1]})" if len(txids) > 1 else ")")
