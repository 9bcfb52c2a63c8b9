"""Plays a scenario on the local cluster and checks, at every commit, what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.testing.cluster.mailroom import Mailroom
from coordinator.testing.cluster.transactional_run import TransactionalRun
from coordinator.transactional.options import RunOptions
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario
from tests.support.scenarios.reference_fold import fold

MAX_TICKS = 20_000
SHARD_COUNTS = (1, 1, 2, 1, 3, 1, 16)
"""Of a scenario, by its seed."""
FAULTS = ("drop", "double", "alter", "misfile", "resequence", "late", "misdirect")


@dataclass
class RandomFrameFaults:
    """Disturbs some frames, so many and no more.

    Attributes:
        budget: how many are left.
        done: what was done to frames of which kind.
    """

    random: Random
    budget: int
    done: list[tuple[str, FrameKind]] = field(default_factory=list)
    _late: list[Frame] = field(default_factory=list)
    _seen: list[TransactionAttempt] = field(default_factory=list)

    def __call__(self, frame: Frame) -> list[Frame]:
        late, self._late = self._late, []
        if frame.attempt not in self._seen:
            self._seen.append(frame.attempt)
        if not self.budget or self.random.random() > 0.02:
            return [frame, *late]
        self.budget -= 1
        fault = self.random.choice(FAULTS)
        self.done.append((fault, frame.kind))
        return [*self._disturbed(fault, frame), *late]

    def _disturbed(self, fault: str, frame: Frame) -> list[Frame]:
        match fault:
            case "double":
                return [frame, frame]
            case "alter":
                return [frame._replace(payload=altered(frame))]
            case "misfile":
                invented = TransactionAttempt(frame.attempt.txid, frame.attempt.attempt_id ^ 1)
                return [frame._replace(attempt=self.random.choice([*self._seen, invented]))]
            case "resequence":
                return [frame._replace(sequence=frame.sequence + 1)]
            case "late":
                self._late.append(frame)
            case "misdirect":
                return [frame._replace(target=frame.target + self.random.choice([-1, 1]))]
        return []


def altered(frame: Frame) -> bytes:
    """Other content of the same form."""
    content = unpack(frame.payload)
    match frame.kind:
        case FrameKind.COORD:
            return pack(content + 1)
        case FrameKind.ACK:
            skipped, (txids, attempt_ids, (edges, *numbers), *rest) = content
            if not edges:  # the attempt was skipped
                skipped = bytes(byte ^ 1 for byte in skipped)
            return pack([skipped, [txids, attempt_ids, [[edge ^ 1 for edge in edges], *numbers], *rest]])
    rows = content[0][1]
    last_column = rows["columns"][-1] if isinstance(rows, dict) else rows[0]
    last_column[-1] += 1_000
    return pack(content)


def play(
    scenario: Scenario,
    *,
    topology_id: str = "random",
    watch: Callable[[TransactionalRun], object] = id,
    fault: RandomFrameFaults | None = None,
) -> int:
    """Plays a scenario to its end; returns how many ticks that took.

    Raises:
        AssertionError: what is committed is not what the fold says, something was left behind, or it never ends.
    """
    tally = LocalTally(topology_id)
    topology, states = topology_of(scenario, tally, topology_id), fold(scenario).states
    topology = replace(topology, shard_count=SHARD_COUNTS[scenario.seed % len(SHARD_COUNTS)])
    options = RunOptions(
        max_spout_pending=scenario.window,
        commit_group_max=scenario.group,
        commit_operations_max=scenario.operations_max,
        max_attempts=40,
    )
    fault = fault or RandomFrameFaults(Random(scenario.seed), scenario.fault_budget)
    interruptions = list(scenario.interruptions)
    with LocalCluster(seed=scenario.seed, receive_capacity=scenario.capacity) as cluster:
        run = cluster.submit(topology, options=options, frame_fault=fault)
        ticks = committed = 0
        while run.tick():
            ticks += 1
            assert ticks < MAX_TICKS, "it never ends"
            if run.statistics.last_txid != committed:
                committed = run.statistics.last_txid
                check_state(run, states)
            if interruptions and ticks > interruptions[0][0]:
                _, what = interruptions.pop(0)
                if what == "timeout":
                    run.advance_time(topology.message_timeout_s + 1)
                else:
                    run.close()
                    check_nothing_is_left(run, tally)
                    run = cluster.submit(topology, options=options, frame_fault=fault)
        assert run.is_done
        assert run.statistics.last_txid == len(scenario.batches)
        check_state(run, states)
        watch(run)
        run.close()
        check_nothing_is_left(run, tally)
    return ticks


def check_state(run: TransactionalRun, states: list[dict[str, object]]) -> None:
    """The committed state is the fold of exactly the committed transactions."""
    snapshot = run.snapshot()
    assert snapshot.txid == run.statistics.last_txid
    assert snapshot.states == states[snapshot.txid], f"state as of txid {snapshot.txid}"


def check_nothing_is_left(run: TransactionalRun, tally: LocalTally) -> None:
    """No message, no bolt, no emitter, no entry of any attempt outlives a run."""
    assert leftovers(run) == []
    assert tally.counts["prepared"] == tally.counts["cleaned up"]
    assert tally.counts["opened"] == tally.counts["closed"]


def in_flight(mailroom: Mailroom[Any]) -> int:
    """How many messages are under way."""
    return sum(len(channel.accepted) + len(channel.overflow) for channel in mailroom._channels.values())


def leftovers(run: TransactionalRun) -> list[str]:
    """What an engine still holds."""
    engine = run._engine
    messages = in_flight(engine._mailroom)
    found = [f"{messages} messages"] if messages else []
    found += [f"wave {wave_id}" for wave_id in engine._waves]
    found += [f"{attempt} of a wave" for attempt in engine._wave_of]
    for task_id, processing in engine._processing.items():
        found += [f"report of {attempt} by task {task_id}" for attempt in processing._reported]
        found += task_leftovers(task_id, processing._task)
    for task_id, committing in engine._committing.items():
        found += [f"frames of {attempt} in task {task_id}" for attempt in {*committing._kept, *committing._spent}]
        found += task_leftovers(task_id, committing._commit.task)
    return found


def task_leftovers(task_id, task):
    bolt = task._bolt
    held = {
        "edges": task._edges,
        "finished": bolt._finished,
        "bolts": bolt.executor._attempts,
        "counts": bolt._tracking._attempts,
    }
    return [f"{what} of {attempt} in task {task_id}" for what, attempts in held.items() for attempt in attempts]
