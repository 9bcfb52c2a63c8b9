"""Ten thousand random runs of the machine, each against a world that keeps books of its own.

`TXBATCH_RANDOM_RUNS` says how many; those of the default are always the same. A run that goes wrong names its seed:
`RandomRun(seed).play()` plays it again. What the books are good for is shown by planted bugs, which they have to find
without the machine's own `validate`.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import NamedTuple
from unittest import mock

import pytest

from committers import group_size
from coordinator.transactional.machine import failures
from coordinator.transactional.machine.commits import Commits
from coordinator.transactional.machine.cutting import Cutting
from coordinator.transactional.machine.failures import Failures
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.poison import batch_input_of
from coordinator.transactional.machine.releases import Releases
from coordinator.transactional.machine.run_events import Done, Halt, NotifySpout, StartWave
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.transaction_record import AttemptState
from coordinator.transactional.machine.transaction_records import TransactionRecords
from coordinator.transactional.machine.wave_records import WaveRecords
from coordinator.transactional.machine.wave_size import WaveSize
from coordinator.watching.failure_cause import CrashKind, Phase
from coordinator.watching.statistics.run_counter import RunCounter
from state.commits.quarantine import BatchInput
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.patch import planted as planted_in_source
from tests.support.machine.random_runs import RandomRun
from tests.support.scenarios.planted import is_found

RUNS = int(os.environ.get("TXBATCH_RANDOM_RUNS", "10000"))


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """To write down every crash that was drawn would take longer than the machine does."""
    caplog.set_level(logging.CRITICAL, logger="txbatch")


@pytest.fixture(autouse=True)
def _every_call_counts(monkeypatch):
    """Groups are cut by the time of any call, however few changes it made."""
    monkeypatch.setattr(group_size, "FEW_OPERATIONS", 1)


class Played(NamedTuple):
    """What is worth knowing of a run that went well."""

    kinds: Counter[str]
    plan: RunPlan
    events: int
    end: str


@cache
def played(seed: int) -> Played:
    run = RandomRun(seed)
    try:
        run.play()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return Played(run.kinds, run.plan, run.events, type(run.ended).__name__)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
def test_whatever_happens_every_decision_is_right_and_the_run_ends(part):
    for seed in range(part, RUNS, 4):
        played(seed)


@pytest.mark.skipif(RUNS < 1_000, reason="fewer runs need not meet everything")
def test_everything_happens():
    """A world that has lost a kind of thing would go unnoticed: everything passes."""
    runs = [played(seed) for seed in range(1_000)]  # mostly known already
    kinds: Counter[str] = sum((run.kinds for run in runs), Counter())
    assert {kind for kind, count in kinds.items() if count >= 3} >= {
        *("wave", "wave processed", "wave lost", "wave overdue", "wave certain", "group overdue", "group certain"),
        *("failed by hand", "group failed by hand", "failed outcome", "missing outcome"),
        *("stale outcome", "cancelled", "drained", "spout raised"),
        *("group executed", "group lost", "group failed", "group reads", "again", "early", "late", "restart"),
        *("set aside", "not set aside", "poison without end"),
        *("published", "refused", "not told", "nothing to cut", "done", "halt"),
        *("resumed", "barrier", "confirmed", "not durable", "queued"),
    }
    plans = {(run.plan.is_opaque, run.plan.may_commit_early, run.plan.engine_overlaps) for run in runs}
    assert len(plans) == 8
    assert sum(run.events >= 20 for run in runs) > 850
    assert {run.end for run in runs} == {"Done", "Halt"}


# Planted bugs


def drop_nothing(self, txid, reason):
    yield from ()


def cut_the_next(self, nothing):
    """A no is taken for this txid only."""
    if nothing.txid + 1 < self._window_end():
        self._transactions.take_in(nothing.txid + 1, None, 0, {})
    yield from self._end()


def blame_the_first(self, attempts, phase, *crash):
    live = [attempt for attempt in attempts if self._books.transactions.is_current(attempt)]
    if live:
        yield from self._lose(live[0], phase, crash[1], is_to_blame=True)


def replay_always(self, *crash, crashed=Failures.crashed):
    yield from crashed(self, *crash[:-1], CrashKind.LOST)


def end_before_the_halt(self, state):
    if state.error is not None:
        yield Halt(state.error)
    elif state.is_exhausted or state.is_draining:
        yield Done()


def count_those_that_waited(self, failed, *, count=RunCounter._failed):
    self._outcomes |= dict.fromkeys(failed.attempts)
    count(self, failed)


def fail_it_alone(self, event, executed):
    """A group goes on without the attempt that was failed in it."""
    yield from self._failures.failed(event.attempt, Phase.COMMIT, event.failure)


def notes_of_all(self, committed_txid, notes, *, fresh_notes=MetadataLog._fresh_notes):
    return fresh_notes(self, max(notes, default=committed_txid), notes)


def refuse_for_ever(self, refused):
    _, step = self._answered()
    self._books.transactions.move(step.attempts, AttemptState.PROCESSED)
    yield from ()


def cut_from_memory(self, *, continue_cutting=Cutting._continue):
    """An opaque spout is not asked for replays."""
    for txid in range(self._transactions.currtx, self._window_end()):
        if self._transactions.current_of(txid) is None:
            if txid not in self._transactions:
                yield from continue_cutting(self)
                return
            self._issued.append(self._transactions.issue(txid))
    yield from self._end()


def overlap_always(self, *, after_cutting=RunMachine._after_cutting):
    plan, self._plan = self._plan, replace(self._plan, engine_overlaps=True)
    decisions = list(after_cutting(self))
    self._plan = plan
    return iter(decisions)


def issue_the_same(self, txid, *, issue=TransactionRecords.issue):
    draw, self._new_attempt_id = self._new_attempt_id, lambda: txid
    attempt = issue(self, txid)
    self._new_attempt_id = draw
    return attempt


def ask_never(self, *, after_cutting=RunMachine._after_cutting):
    """No further turn is asked for, and none for the end."""
    return (decision for decision in after_cutting(self) if isinstance(decision, StartWave))


def tell_all(self, event, *, confirmed=Releases.confirmed):
    """A barrier is taken to speak for what was committed after it."""
    if self._asked == event.up_to_txid:
        self._asked = self._committed
        event = replace(event, up_to_txid=self._committed)
    yield from confirmed(self, event)


def any_barrier(self, event, *, confirmed=Releases.confirmed):
    self._asked = min(event.up_to_txid, self._committed)
    yield from confirmed(self, replace(event, up_to_txid=self._asked))


def tell_all_but_the_last(self, attempts):
    self._notifying = attempts[:-1] or attempts
    return NotifySpout(self._notifying)


def ask_again(self, *, due=Releases.due):
    self._asked = None
    yield from due(self)


def forget_untold(self, unnotified):
    yield from ()


def set_aside_early(self):
    """Poison is committed empty before what lies below it."""
    return self.poison


def keep_poison(self, txid, phase, reason, *, drop_from=Failures._drop_from):
    """Poison stays poison, wherever its batch begins by now."""
    poison = self.poison
    yield from drop_from(self, txid, phase, reason)
    self.poison = poison


def forget_where_it_ends(record, plan, positions, *, number, batch_input_of=batch_input_of):
    batch = batch_input_of(record, plan, positions, number=number)
    return None if batch is None else replace(batch, positions={})


def end_anywhere(record, plan, positions, *, number):
    """Whatever an attempt has told is believed, wherever it began."""
    found = {} if record.cut is None else record.cut.positions
    return BatchInput(number, record.metadata, found)


def planted(target, name, bug):
    return mock.patch.object(target, name, bug)


IN_THE_CATALOGUE = (
    *("failure-drops-itself-only", "stale-acks-accepted", "group-over-two-waves", "told-before-durable"),
    *("cut-stored-after-wave", "cuts-not-stored", "missing-outcome-is-processed", "early-commit-of-readers-believed"),
)
PLANTED = {
    **{name: planted_in_source(MUTANTS[name].patches) for name in IN_THE_CATALOGUE},
    "a failure drops nothing": planted(Failures, "_drop_from", drop_nothing),
    "an attempt is issued twice": planted(TransactionRecords, "issue", issue_the_same),
    "a hole in cutting": planted(Cutting, "end", cut_the_next),
    "an opaque spout is not asked for replays": planted(Cutting, "_continue", cut_from_memory),
    "a crash blames the first": planted(Failures, "crashed", blame_the_first),
    "attempts beyond the halt": planted(Failures, "window_end", lambda self, end: end),
    "a refused group for ever": planted(Commits, "refused", refuse_for_ever),
    "waves overlap with groups": planted(RunMachine, "_after_cutting", overlap_always),
    "waves that run for nothing": planted(WaveRecords, "running_for_nothing", lambda self, wave_ids: []),
    "waves that are never released": planted(WaveRecords, "take_finished", lambda self: []),
    "waves of the whole window": planted(WaveRecords, "room", lambda self, byte_counts: len(byte_counts)),
    "waves that took too long as large again": planted(WaveSize, "keep_below", lambda self, size: None),
    "a crash that is certain to repeat is replayed": planted(Failures, "crashed", replay_always),
    "a drain hides the error of a halt": planted(RunMachine, "_judge_input", end_before_the_halt),
    "attempts that only waited have failed": planted(RunCounter, "_failed", count_those_that_waited),
    "a group goes on without the attempt that was failed in it": planted(Commits, "failed_by_hand", fail_it_alone),
    "notes of what is not committed": planted(MetadataLog, "_fresh_notes", notes_of_all),
    "notes are forgotten": planted(TransactionRecords, "notes", lambda self: {}),
    "a barrier speaks for what was committed after it": planted(Releases, "confirmed", tell_all),
    "any barrier is taken for the one that is out": planted(Releases, "confirmed", any_barrier),
    "a barrier every turn": planted(Releases, "due", ask_again),
    "the last transaction of a notification is left out": planted(Releases, "_notify", tell_all_but_the_last),
    "done before everything is confirmed": planted(Releases, "is_pending", lambda self: False),
    "what earlier runs did not tell is forgotten": planted(Releases, "resumed", forget_untold),
    "a commit does not say how far the spout was told": planted(Releases, "notified_txid", None),
    "no bound on what is not released": planted(Releases, "has_room", lambda self, count: True),
    "poison set aside before its turn": planted(Failures, "due_poison", set_aside_early),
    "poison that a lower failure leaves standing": planted(Failures, "_drop_from", keep_poison),
    "poison without the positions it ends at": planted(failures, "batch_input_of", forget_where_it_ends),
    "poison that ends where nobody has told": planted(failures, "batch_input_of", end_anywhere),
    "attempts beyond poison": planted(Failures, "set_aside", lambda self: None),
    "an end that never comes": planted(RunMachine, "_after_cutting", ask_never),
}


START = {
    "a drain hides the error of a halt": 1_400,
    "stale-acks-accepted": 200,
    "poison that a lower failure leaves standing": 21_900,
}
"""From which seed on to look, where fewer than one run in a hundred meets the bug."""


@pytest.mark.parametrize("bug", PLANTED)
def test_the_books_find_a_planted_bug(bug):
    first = START.get(bug, 0)
    with PLANTED[bug], planted(RunMachine, "validate", lambda self: None):
        assert is_found(lambda seed: RandomRun(seed).play(), range(first, first + 2_000))
