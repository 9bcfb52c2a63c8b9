"""Poison in the run machine: how often a batch is attempted, when it is set aside, and what its empty commit holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.engine import GroupCrashed, WaveCrashed, WaveProcessed
from coordinator.transactional.machine.run_events import (
    AskForEnd,
    BatchCut,
    Cut,
    Done,
    InputState,
    NothingToCut,
    NotifySpout,
    Quarantine,
    Refused,
    SpoutNotified,
    StartWave,
    TimePassed,
)
from coordinator.watching.failure_cause import CrashKind
from state import EngineError, QuarantineFullError, ReplayLimitError, SourceError, StateRefusedError, UserCodeError
from state.commits.quarantine import BatchInput, PoisonCause
from state.metadata import MetadataChanges
from tests.support.machine.by_hand import Driven, attempts_in, emitted, halted, ready

TRACEBACK = "Traceback (most recent call last):\n  File 'parse.py', line 3\nValueError: no number\n"
BUG = Failure(FailureKind.USER, "parse", 1, TRACEBACK, "('x',)")
LATER = Failure(FailureKind.FAILED, "parse", 0, "later")
RECORD = replace(BUG, kind=FailureKind.RECORD)
OF_LINES = {"plan": {"spout_id": "lines"}}
QUARANTINE: dict[str, Any] = {"on_poison": "quarantine", "max_attempts": 3}


def two_partitions(cut):
    """Cuts up to txid 2."""
    return BatchCut(cut.txid, 2, 0.0) if cut.txid <= 2 else NothingToCut(cut.txid, 0.0)


def driven(source=None, *, window=2, **given):
    return Driven(source, max_spout_pending=window, **({**QUARANTINE} | given))


def fails(run, failure=BUG, *, attempt=None, now_s=0.0, **more):
    """The attempt, by default the lowest of the next wave, fails in a wave in which all others succeed."""
    start = next(decision for decision in run.turn(now_s) if isinstance(decision, StartWave))
    attempts = tuple(batch.attempt for batch in start.batches)
    failing = attempts[0] if attempt is None else attempt
    outcomes = [AttemptResult(one, failure if one == failing else None, **more) for one in attempts]
    return run.handle(WaveProcessed(start.wave_id, tuple(outcomes)))


def becomes_poison(run, times=3, **said):
    """The lowest txid fails so often; the next turn's decisions."""
    for _ in range(times):
        fails(run, **said)
    return run.turn()


def published_poison(decisions):
    (publish,) = (decision for decision in decisions if isinstance(decision, Quarantine))
    return publish


def attempts_of(run, txid):
    return [record.attempt for record in run.machine._transactions.active() if record.attempt.txid == txid]


class TestAttempts:
    def test_every_batch_gets_its_attempts_and_is_then_committed_empty(self):
        run = driven(ready(1))
        publish = published_poison(becomes_poison(run))
        (attempt,) = publish.attempts
        assert attempt.txid == 1
        assert publish.metadata == MetadataChanges()
        assert publish.poison.batch == BatchInput(1, "cut 1 of 1")
        assert publish.poison.cause == PoisonCause("ValueError: no number", 3, "parse", 1, TRACEBACK, "('x',)")

    @pytest.mark.parametrize("more", ["in map(spelled) at words.py:7, given 'x'", "and more of it", "remedy: none"])
    def test_the_reason_is_what_was_raised_even_if_the_traceback_says_more(self, more):
        publish = published_poison(becomes_poison(driven(ready(1)), failure=replace(BUG, text=f"{TRACEBACK}{more}\n")))
        assert publish.poison.cause.reason == "ValueError: no number"

    @pytest.mark.parametrize(
        ("given", "failure", "times", "error"),
        [
            ({"on_poison": "halt"}, BUG, 1, UserCodeError),
            ({"on_poison": "halt"}, RECORD, 1, type(RECORD.to_error())),
            ({"on_poison": "halt", "max_attempts": 2}, LATER, 2, ReplayLimitError),
            ({}, Failure(FailureKind.INCOMPLETE, "parse", 0, "no answer"), 3, ReplayLimitError),
            ({}, Failure(FailureKind.UNANSWERED, "parse", 0, "no answer"), 3, ReplayLimitError),
            (OF_LINES, Failure(FailureKind.FAILED, "lines", 0, "brokers are away"), 3, ReplayLimitError),
            ({}, Failure(FailureKind.SOURCE, "lines", 0, "gone"), 1, SourceError),
            ({}, Failure(FailureKind.STATE, "lines", 0, "gone"), 1, StateRefusedError),
        ],
        ids=[
            *(
                "user code",
                "a record",
                "a failed exception has its attempts",
                "not the fault of the batch",
                "unanswered",
            ),
            *("a spout that cannot read", "a missing input", "a server that refuses"),
        ],
    )
    def test_what_is_no_poison_or_is_not_to_be_set_aside_halts_after_as_many_attempts(
        self, given, failure, times, error
    ):
        run = driven(ready(1), **given)
        for attempt in range(times):
            fails(run, failure)
            assert run.machine.is_halted() is (attempt == times - 1)
        halted(run.turn(), error)

    def test_faults_of_the_batch_and_of_others_are_counted_apart(self):
        run = driven(ready(1))
        for kind in (FailureKind.UNANSWERED, FailureKind.USER, FailureKind.UNANSWERED, FailureKind.USER):
            fails(run, replace(BUG, kind=kind))
        publish = published_poison(becomes_poison(run, times=1))
        assert publish.poison.cause.attempt_count == 3

    def test_a_batch_that_hangs_or_loses_its_worker_alone_is_quarantined(self):
        run = driven(ready(1))
        for wave_id, kind in enumerate((CrashKind.LOST, CrashKind.OVERDUE, CrashKind.LOST), 1):
            run.turn()
            run.handle(WaveCrashed(wave_id, "worker died", kind))
        publish = published_poison(run.turn())
        assert publish.poison.cause == PoisonCause("worker died", 3)

    @pytest.mark.parametrize("window", [1, 4])
    def test_no_batch_is_quarantined_for_what_the_engine_could_not_do_with_any(self, window):
        run = driven(ready(8), window=window)
        for wave_id in range(1, 9):
            run.turn()
            if run.machine.is_halted():
                break
            run.handle(WaveCrashed(wave_id, "no worker starts", CrashKind.ENGINE))
        error = halted(run.turn(), EngineError)
        assert "Spark failed 3 times at txid 1, where no batch is to blame: no worker starts; lower" in str(error)
        assert run.machine.quarantined_txids() == set()

    def test_a_batch_whose_commit_phase_loses_its_worker_alone_is_quarantined(self):
        run = driven(ready(1))
        for wave_id in range(1, 4):
            attempts = tuple(attempts_in(run.turn()).values())
            run.processed(wave_id, attempts)
            run.turn()
            run.handle(GroupCrashed(wave_id, attempts, "an executor is gone"))
        assert published_poison(run.turn()).poison.cause.reason == "an executor is gone"

    def test_a_crash_that_is_certain_to_repeat_is_the_engines_and_halts(self):
        run = driven(ready(1))
        run.turn()
        run.handle(WaveCrashed(1, "no Python on the executors", CrashKind.CERTAIN))
        halted(run.turn(), EngineError)


class TestOrder:
    def test_lower_transactions_commit_first_and_higher_ones_wait(self):
        run = driven(ready(3), window=4, max_attempts=1)
        one, two = attempts_in(run.turn()).values()
        run.handle(WaveProcessed(1, (AttemptResult(one), AttemptResult(two, BUG))))
        assert emitted(run.turn()) == [], "3 is not attempted, 1 commits"
        run.commit()
        publish = published_poison(run.turn())
        assert [attempt.txid for attempt in publish.attempts] == [2]
        assert run.published() == [NotifySpout(publish.attempts)]
        assert run.handle(SpoutNotified()) == []
        assert emitted(run.turn()) == [3]

    def test_the_next_one_is_cut_from_the_metadata_of_the_one_set_aside(self):
        source = ready(2)
        run = driven(source, window=1, max_attempts=1)
        becomes_poison(run, times=1)
        run.published()
        run.turn()
        assert source.asked[-1] == Cut(2, "cut 1 of 1", is_new=True)

    def test_the_run_does_not_end_while_a_batch_is_to_be_set_aside(self):
        run = driven(ready(1))
        assert not [decision for decision in becomes_poison(run) if isinstance(decision, AskForEnd)]
        run.published()
        assert [decision for decision in run.turn() if isinstance(decision, AskForEnd)]
        assert run.handle(InputState(is_exhausted=True)) == [Done()]
        assert run.machine.quarantined_txids() == {1}
        assert run.machine.currtx == 2

    def test_poison_is_attempted_once_more_if_a_lower_one_fails_meanwhile(self):
        """Its batch may begin elsewhere then; its own failures are not forgotten."""
        run = driven(ready(2), window=4, max_attempts=2)
        one, two = attempts_in(run.turn()).values()
        run.handle(WaveProcessed(1, (AttemptResult(one), AttemptResult(two, BUG))))
        run.turn()  # the commit phase of 1 begins, and 2 is attempted again
        (two,) = attempts_of(run, 2)
        run.handle(WaveProcessed(2, (AttemptResult(two, BUG),)))
        assert run.machine._failures.poison is not None
        run.executed(failing=one, failure=Failure(FailureKind.FAILED, "count", 0, "later"))
        assert run.machine._failures.poison is None
        assert emitted(run.turn()) == [1, 2]
        (one,), (two,) = attempts_of(run, 1), attempts_of(run, 2)
        run.handle(WaveProcessed(3, (AttemptResult(one), AttemptResult(two, BUG))))
        run.turn()
        run.commit()
        assert published_poison(run.turn()).poison.cause.attempt_count == 3


class TestRefusals:
    def test_a_commit_refused_for_its_content_is_set_aside_at_once(self):
        run = driven(ready(1))
        run.processed(1, tuple(attempts_in(run.turn()).values()))
        run.turn()
        run.executed()
        run.refused("counts is a list")
        publish = published_poison(run.turn())
        assert publish.poison.cause == PoisonCause("counts is a list", 1)
        assert isinstance(publish.poison.error, StateRefusedError)

    def test_a_full_quarantine_halts_the_run(self):
        run = driven(ready(1))
        becomes_poison(run)
        run.handle(Refused(QuarantineFullError("words", 1, 10, "ValueError: no number")))
        halted(run.turn(), QuarantineFullError)
        assert run.machine.quarantined_txids() == set()


class TestPartitions:
    PLAN = {"has_partitions": True, "spout_id": "lines"}

    def poisoned(self, failure=BUG, *, stored=None, **more):
        run = driven(two_partitions, metadata={1: 2}, stored=stored, committed_txid=1, plan=self.PLAN, max_attempts=1)
        fails(run, failure, **more)
        return run

    STORED = {"partition.0:1": 10, "partition.1:1": 20}

    def test_the_commit_stores_where_its_parts_end(self):
        run = self.poisoned(stored=self.STORED, metadata={"partition.0": 11, "partition.1": 21})
        publish = published_poison(run.turn())
        assert publish.poison.batch == BatchInput(2, 2, {"partition.0": 11, "partition.1": 21})
        assert publish.metadata.puts == {"partition.0:2": 11, "partition.1:2": 21}
        assert set(publish.metadata.forgets) == {"coordinator:1", *self.STORED}
        run.published()
        assert run.machine.positions.last_positions() == {"partition.0": 11, "partition.1": 21}

    def test_what_an_earlier_attempt_has_stored_is_the_batch(self):
        stored = {**self.STORED, "partition.0:2": 12, "partition.1:2": 22, "coordinator:2": 2}
        run = self.poisoned(stored=stored)
        assert published_poison(run.turn()).poison.batch.positions == {"partition.0": 12, "partition.1": 22}

    def test_an_emitter_that_has_not_told_where_its_part_ends_halts_the_run(self):
        run = self.poisoned(stored=self.STORED, metadata={"partition.0": 11})
        halted(run.turn(), UserCodeError)

    def test_a_spout_that_fails_while_it_cuts_halts_the_run(self):
        run = self.poisoned(replace(BUG, component_id="lines"), stored=self.STORED, metadata={"partition.0": 11})
        halted(run.turn(), UserCodeError)


class TestOpaque:
    PLAN = {"has_partitions": True, "is_opaque": True, "spout_id": "lines"}

    def test_the_record_tells_where_parts_began_and_ended(self):
        run = driven(two_partitions, stored={"partition.0:1": 10}, committed_txid=1, plan=self.PLAN, max_attempts=1)
        fails(run, metadata={"partition.0": 11, "partition.1": 3})
        publish = published_poison(run.turn())
        assert publish.poison.batch == BatchInput(2, 2, {"partition.0": 11, "partition.1": 3}, {"partition.0": 10})
        assert publish.metadata == MetadataChanges({"partition.0:2": 11, "partition.1:2": 3}, ("partition.0:1",))
        run.published()
        assert run.machine.positions.last_positions() == {"partition.0": 11, "partition.1": 3}

    def test_a_batch_reaches_as_far_while_the_one_below_is_not_committed(self):
        run = driven(two_partitions, window=4, plan=self.PLAN, max_attempts=1)
        one, two = attempts_in(run.turn()).values()
        below, poison = (
            AttemptResult(one, metadata={"partition.0": 4}),
            AttemptResult(two, BUG, metadata={"partition.0": 8}),
        )
        run.handle(WaveProcessed(1, (below, poison)))
        run.turn()
        run.commit()
        batch = published_poison(run.turn()).poison.batch
        assert (batch.starts, batch.positions) == ({"partition.0": 4}, {"partition.0": 8})

    def test_a_wave_that_crashes_before_anything_was_told_halts_the_run(self):
        run = driven(two_partitions, plan=self.PLAN, max_attempts=1)
        run.turn()
        run.handle(WaveCrashed(1, "worker died"))
        halted(run.turn(), ReplayLimitError)

    def test_a_part_that_does_not_begin_where_the_one_below_ended_is_not_believed(self):
        run = driven(two_partitions, stored={"partition.0:1": 10}, committed_txid=1, plan=self.PLAN, max_attempts=1)
        fails(run, metadata={"partition.0": 11}, began_from={"partition.0": 999})
        halted(run.turn(), UserCodeError)


class TestBackoff:
    def run(self):
        return driven(ready(1), max_attempts=9, retry_backoff_s=1.0, retry_backoff_max_s=3.0)

    def test_the_second_attempt_is_made_at_once_and_later_ones_after_a_doubling_pause_with_a_cap(self):
        run, now_s, pauses = self.run(), 100.0, []
        (attempt,) = attempts_in(run.turn(now_s)).values()
        for wave_id in range(1, 7):
            run.handle(WaveProcessed(wave_id, (AttemptResult(attempt, BUG),)))
            failed_s = now_s
            while not (found := attempts_in(run.turn(now_s))):
                now_s += 0.5
            (attempt,) = found.values()
            pauses.append(now_s - failed_s)
        assert pauses == [0.0, 1.0, 2.0, 3.0, 3.0, 3.0]

    def test_a_run_does_not_end_while_a_transaction_rests(self):
        run = self.run()
        fails(run)
        fails(run)
        assert run.turn(0.5) == []
        run.handle(TimePassed(0.9))
        assert emitted(run.turn(1.0)) == [1]

    def test_a_failure_that_is_nobodys_fault_causes_no_pause(self):
        run = Driven(ready(2), max_spout_pending=4, retry_backoff_s=100.0)
        run.turn()
        run.handle(WaveCrashed(1, "a worker died"))
        assert emitted(run.turn()) == [1], "half as many, at once"
