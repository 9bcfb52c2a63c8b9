"""The coordinator's state machine: its named rules, and its invariants under anything that may happen."""

from __future__ import annotations

import copy
from itertools import count
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.transactions import (
    AttemptStatus,
    EmitBatch,
    Phase,
    StartCommit,
    StoreMetadata,
    TransactionCoordinator,
)
from state import FailedException, ProtocolError, TransactionAttempt

PROCESSING, COMMIT = Phase.PROCESSING, Phase.COMMIT


class ScriptedSource:
    """Answers `is_ready` from a list, then no; every cut is another value. "raise" and "cut fails" fail."""

    def __init__(self):
        self.answers = []
        self.asked = []
        self.cut = []
        self._serial = count(1)

    def is_ready(self):
        answer = self.answers.pop(0) if self.answers else "no"
        self.asked.append(answer)
        if answer == "raise":
            raise FailedException("not now")
        return answer != "no"

    def initialize_transaction(self, txid, previous):
        if self.asked[-1] == "cut fails":
            raise FailedException("cannot cut now")
        self.cut.append((txid, previous))
        return f"cut {next(self._serial)} of {txid}"


def ready(times=1000):
    source = ScriptedSource()
    source.answers = ["yes"] * times
    return source


def make(**changes):
    given: dict[str, Any] = {"currtx": 1, "metadata": {}, "max_spout_pending": 3, "commit_group_max": 3} | changes
    return TransactionCoordinator(new_attempt_id=count(1).__next__, **given)


def started(source=None, **changes):
    """A machine whose window is under way, and its attempts by txid."""
    machine = make(**changes)
    decisions = machine.sync(source or ready())
    return machine, {d.attempt.txid: d.attempt for d in decisions if isinstance(d, EmitBatch)}


def txids(decisions, kind):
    if kind is StartCommit:
        return [[a.txid for a in d.attempts] for d in decisions if isinstance(d, StartCommit)]
    return [d.attempt.txid for d in decisions if isinstance(d, kind)]


def snapshot(machine):
    return copy.deepcopy((machine.currtx, machine._metadata, machine._active))


def test_p01_a_late_fail_of_a_cancelled_attempt_does_not_remove_the_current_one():
    machine, old = started()
    machine.fail(old[2], PROCESSING)
    machine.sync(ready())
    before = snapshot(machine)
    assert machine.fail(old[2], PROCESSING) == []
    assert machine.fail(old[2], COMMIT) == []
    assert snapshot(machine) == before
    assert machine.sync(ready()) == []


def test_p01_a_late_ack_of_a_cancelled_attempt_does_not_complete_the_current_one():
    machine, old = started()
    machine.fail(old[1], PROCESSING)
    machine.sync(ready())
    before = snapshot(machine)
    assert not machine.ack(old[1], PROCESSING)
    assert not machine.ack(old[1], COMMIT)
    assert snapshot(machine) == before
    assert machine.sync(ready()) == []


def test_a_report_on_a_txid_never_issued_touches_nothing():
    machine, _ = started()
    before = snapshot(machine)
    stranger = TransactionAttempt(77, 1)
    assert not machine.ack(stranger, PROCESSING)
    assert machine.fail(stranger, PROCESSING) == []
    assert snapshot(machine) == before


def test_an_ack_of_the_other_phase_is_ignored():
    machine, attempts = started()
    assert not machine.ack(attempts[1], COMMIT)
    machine.ack(attempts[1], PROCESSING)
    machine.sync(ready())
    before = snapshot(machine)
    assert not machine.ack(attempts[1], PROCESSING)
    assert machine.fail(attempts[1], PROCESSING) == []
    assert snapshot(machine) == before


def test_p05_a_no_then_yes_within_one_sync_leaves_no_gap():
    source = ScriptedSource()
    source.answers = ["yes", "no", "yes"]
    machine = make()
    decisions = machine.sync(source)
    assert decisions == [StoreMetadata({1: "cut 1 of 1"}), EmitBatch(TransactionAttempt(1, 1), "cut 1 of 1")]
    assert source.asked == ["yes", "no"]
    assert txids(machine.sync(source), EmitBatch) == [2]


def test_the_source_is_not_asked_for_a_txid_that_was_cut_before():
    source = ready()
    machine, attempts = started(source)
    asked = list(source.asked)
    machine.fail(attempts[1], PROCESSING)
    assert [d for d in machine.sync(source) if not isinstance(d, EmitBatch)] == []
    assert source.asked == asked
    assert [txid for txid, _ in source.cut] == [1, 2, 3]


def test_a_failed_exception_of_the_source_is_asked_again_at_the_next_sync():
    source = ScriptedSource()
    machine = make()
    for failing in ("raise", "cut fails"):
        source.answers = ["yes", failing, "yes"]
        before = machine.last_txid()
        machine.sync(source)
        assert machine.last_txid() == before + 1
    assert [txid for txid, _ in source.cut] == [1, 2]


def test_what_one_sync_cuts_is_stored_in_one_call_before_it_is_emitted():
    decisions = make().sync(ready())
    assert [type(decision) for decision in decisions] == [StoreMetadata, EmitBatch, EmitBatch, EmitBatch]
    assert decisions[0] == StoreMetadata({1: "cut 1 of 1", 2: "cut 2 of 2", 3: "cut 3 of 3"})


def test_a_cut_is_given_the_metadata_of_the_txid_before():
    source = ready()
    started(source, currtx=5, metadata={4: "stored 4", 5: "stored 5"})
    assert source.cut == [(6, "stored 5"), (7, "cut 1 of 6")]


def test_metadata_none_is_metadata_like_any_other():
    machine = make(metadata={1: None})
    source = ScriptedSource()
    assert machine.sync(source) == [EmitBatch(TransactionAttempt(1, 1), None)]
    assert source.asked == ["no"]


def test_the_window_is_a_range_of_txids_so_a_slow_first_one_blocks():
    machine, attempts = started()
    for txid in (2, 3):
        machine.ack(attempts[txid], PROCESSING)
    assert machine.sync(ready()) == []


def test_commit_waits_for_earlier_txid():
    machine, attempts = started()
    machine.ack(attempts[2], PROCESSING)
    assert machine.sync(ready()) == []
    machine.ack(attempts[1], PROCESSING)
    assert machine.sync(ready()) == [StartCommit((attempts[1], attempts[2]))]


def test_a_group_stays_within_one_wave():
    machine, attempts = started()
    machine.ack(attempts[1], PROCESSING, wave=1)
    machine.ack(attempts[2], PROCESSING, wave=2)
    machine.ack(attempts[3], PROCESSING, wave=2)
    assert machine.sync(ready()) == [StartCommit((attempts[1],))]
    machine.ack(attempts[1], COMMIT)
    assert txids(machine.sync(ready()), StartCommit) == [[2, 3]]


@pytest.mark.parametrize(("group_max", "limit", "size"), [(2, None, 2), (3, 1, 1), (1, 3, 1), (3, None, 3)])
def test_a_group_is_no_larger_than_either_limit(group_max, limit, size):
    machine, attempts = started(commit_group_max=group_max)
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    assert machine.sync(ready(), commit_limit=limit) == [StartCommit(tuple(attempts[n + 1] for n in range(size)))]


def test_one_group_at_a_time():
    machine, attempts = started(commit_group_max=1)
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    assert txids(machine.sync(ready()), StartCommit) == [[1]]
    assert machine.sync(ready()) == []
    machine.publish((attempts[1],))
    assert machine.sync(ready()) == []


def test_the_commit_goes_out_before_new_batches():
    machine, attempts = started(commit_group_max=1)
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    machine.sync(ready())
    machine.ack(attempts[1], COMMIT)
    assert [type(d) for d in machine.sync(ready())] == [StartCommit, StoreMetadata, EmitBatch]


def test_an_attempt_whose_commit_was_sent_is_never_failed_or_issued_again():
    machine, attempts = started()
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    machine.sync(ready())
    machine.publish((attempts[1], attempts[2]))
    before = snapshot(machine)
    for phase in Phase:
        assert machine.fail(attempts[1], phase) == []
        assert machine.fail(attempts[2], phase) == []
    assert snapshot(machine) == before
    assert machine.fail(attempts[3], COMMIT) == [attempts[3]]
    assert txids(machine.sync(ready()), EmitBatch) == [3]


def test_only_the_committing_prefix_may_be_published():
    machine, attempts = started(max_spout_pending=2)
    with pytest.raises(ProtocolError, match="is to be published but is not committing"):
        machine.publish((attempts[1],))
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    machine.sync(ready())
    with pytest.raises(ProtocolError, match="do not start at txid 1"):
        machine.publish((attempts[2],))
    with pytest.raises(ProtocolError, match="do not start at txid 1"):
        machine.publish((attempts[2], attempts[1]))


def test_commits_are_acknowledged_in_order():
    machine, attempts = started(max_spout_pending=2)
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    machine.sync(ready())
    machine.publish((attempts[1], attempts[2]))
    with pytest.raises(ProtocolError, match=r"2:0000000000000002 committed while txid 1 is next"):
        machine.ack(attempts[2], COMMIT)


def test_a_deferred_rest_goes_with_the_next_group():
    machine, attempts = started()
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    machine.sync(ready())
    machine.defer((attempts[2], attempts[3]))
    machine.publish((attempts[1],))
    machine.ack(attempts[1], COMMIT)
    assert txids(machine.sync(ready()), StartCommit) == [[2, 3]]


def test_deferring_what_is_not_committing_changes_nothing():
    machine, attempts = started()
    before = snapshot(machine)
    machine.defer((attempts[1], TransactionAttempt(2, 99)))
    assert snapshot(machine) == before


def test_a_commit_keeps_its_own_metadata_and_forgets_what_is_below():
    machine, attempts = started()
    for attempt in attempts.values():
        machine.ack(attempt, PROCESSING)
    machine.sync(ready())
    machine.ack(attempts[1], COMMIT)
    machine.ack(attempts[2], COMMIT)
    assert sorted(machine._metadata) == [2, 3]
    assert machine.last_metadata() == "cut 3 of 3"
    assert machine.last_txid() == 3


def test_nothing_is_known_before_the_first_cut():
    machine = make()
    assert machine.is_idle()
    assert machine.last_metadata() is None
    assert machine.last_txid() == 0


def test_after_a_halt_lower_txids_commit_and_higher_ones_are_not_tried():
    machine, attempts = started()
    machine.halt_before(2)
    machine.fail(attempts[2], PROCESSING)
    assert machine.sync(ready()) == []
    assert not machine.halted()
    machine.ack(attempts[1], PROCESSING)
    assert machine.sync(ready()) == [StartCommit((attempts[1],))]
    machine.ack(attempts[1], COMMIT)
    assert machine.halted()
    assert machine.sync(ready()) == []


def test_of_two_halts_the_lower_counts():
    machine = make()
    machine.halt_before(2)
    machine.halt_before(5)
    assert txids(machine.sync(ready()), EmitBatch) == [1]
    machine.halt_before(1)
    assert machine.halted()


class TransactionCoordinatorMachine(RuleBasedStateMachine):
    """Random reports, late ones too, and restarts with what was stored.

    The model is what a patient observer would write down: per txid the current attempt and its status.
    """

    WINDOW, GROUP = 4, 3

    def __init__(self):
        super().__init__()
        self.source = ScriptedSource()
        self.ids = count(1)
        self.stored: dict[int, str] = {}
        self.ever_stored: dict[int, str] = {}
        self.committed = 0
        self.issued: list[TransactionAttempt] = []
        self.model: dict[int, list[Any]] = {}
        self.restart()

    def restart(self):
        self.machine = TransactionCoordinator(
            currtx=self.committed + 1,
            metadata=dict(self.stored),
            max_spout_pending=self.WINDOW,
            commit_group_max=self.GROUP,
            new_attempt_id=self.ids.__next__,
        )
        self.model = {}

    def having(self, *statuses):
        return [entry[0] for _, entry in sorted(self.model.items()) if entry[1] in statuses]

    def current(self, attempt):
        return attempt.txid in self.model and self.model[attempt.txid][0] == attempt

    @rule(
        answers=st.lists(st.sampled_from(["yes", "yes", "yes", "no", "raise", "cut fails"]), max_size=6),
        limit=st.none() | st.integers(1, 4),
    )
    def sync(self, answers, limit):
        self.source.answers, self.source.asked, self.source.cut = list(answers), [], []
        decisions = self.machine.sync(self.source, commit_limit=limit)
        currtx = self.committed + 1

        group = self.expected_group(min(limit or self.GROUP, self.GROUP))
        expected: list[object] = [StartCommit(group)] if group else []
        for attempt in group:
            self.model[attempt.txid][1] = "committing"

        fresh: dict[int, str] = {}
        emitted: list[int] = []
        asked: list[str] = []
        for txid in range(currtx, currtx + self.WINDOW):
            if txid in self.model:
                continue
            if txid not in self.stored:
                asked.append(answers[len(asked)] if len(asked) < len(answers) else "no")
                if asked[-1] != "yes":
                    break
                fresh[txid] = dict(self.machine._metadata)[txid]
                assert (txid, self.stored.get(txid - 1)) in self.source.cut
                assert txid not in self.ever_stored, "never cut again"
                self.stored[txid] = self.ever_stored[txid] = fresh[txid]
            emitted.append(txid)
        assert self.source.asked == asked
        assert [txid for txid, _ in self.source.cut] == list(fresh)
        if fresh:
            expected.append(StoreMetadata(fresh))

        assert decisions[: len(expected)] == expected
        batches = decisions[len(expected) :]
        emits = [batch for batch in batches if isinstance(batch, EmitBatch)]
        assert emits == batches
        assert [(batch.attempt.txid, batch.metadata) for batch in emits] == [(t, self.stored[t]) for t in emitted]
        for batch in emits:
            assert batch.attempt not in self.issued
            self.issued.append(batch.attempt)
            self.model[batch.attempt.txid] = [batch.attempt, "processing", None]

    def expected_group(self, limit):
        if self.having("committing", "publishing"):
            return ()
        group: list[list[Any]] = []
        for txid in range(self.committed + 1, self.committed + 1 + limit):
            entry = self.model.get(txid)
            if entry is None or entry[1] != "processed" or (group and entry[2] != group[0][2]):
                break
            group.append(entry)
        return tuple(entry[0] for entry in group)

    @precondition(lambda self: self.having("processing"))
    @rule(data=st.data(), wave=st.integers(1, 2))
    def process(self, data, wave):
        attempt = data.draw(st.sampled_from(self.having("processing")))
        assert self.machine.ack(attempt, PROCESSING, wave=wave)
        self.model[attempt.txid][1:] = ["processed", wave]

    @precondition(lambda self: self.issued)
    @rule(data=st.data(), phase=st.sampled_from(Phase))
    def fail_any(self, data, phase):
        attempt = data.draw(st.sampled_from(self.issued[-12:]))
        statuses = {PROCESSING: ("processing", "processed"), COMMIT: ("committing",)}[phase]
        if not self.current(attempt) or self.model[attempt.txid][1] not in statuses:
            before = snapshot(self.machine)
            assert self.machine.fail(attempt, phase) == []
            assert snapshot(self.machine) == before
            return
        dropped = [entry[0] for txid, entry in sorted(self.model.items()) if txid >= attempt.txid]
        assert self.machine.fail(attempt, phase) == dropped
        for one in dropped:
            del self.model[one.txid]

    @precondition(lambda self: self.issued)
    @rule(data=st.data(), phase=st.sampled_from(Phase))
    def late_ack(self, data, phase):
        attempt = data.draw(st.sampled_from(self.issued[-12:]))
        if self.current(attempt):
            statuses = {PROCESSING: ("processing", "processed"), COMMIT: ("committing", "publishing")}[phase]
            if self.model[attempt.txid][1] in statuses:
                return
        before = snapshot(self.machine)
        assert not self.machine.ack(attempt, phase)
        assert snapshot(self.machine) == before

    @precondition(lambda self: self.having("committing") and not self.having("publishing"))
    @rule(data=st.data())
    def publish(self, data):
        group = self.having("committing")
        prefix = tuple(group[: data.draw(st.integers(1, len(group)))])
        self.machine.defer(tuple(group[len(prefix) :]))
        self.machine.publish(prefix)
        for attempt in group:
            self.model[attempt.txid][1] = "publishing" if attempt in prefix else "processed"

    @precondition(lambda self: self.having("publishing"))
    @rule()
    def answer(self):
        prefix = self.having("publishing")
        for attempt in prefix:
            assert attempt.txid == self.committed + 1
            assert self.machine.ack(attempt, COMMIT)
            self.committed = attempt.txid
            del self.model[attempt.txid]
        self.forget()

    @precondition(lambda self: self.having("publishing"))
    @rule()
    def refuse(self):
        prefix = self.having("publishing")
        self.machine.defer(tuple(prefix))
        for attempt in prefix:
            self.model[attempt.txid][1] = "processed"

    @rule(applied=st.booleans())
    def crash(self, applied):
        """Whatever was sent has been applied, or not; only what is stored is known afterwards."""
        prefix = self.having("publishing")
        if applied and prefix:
            self.committed = prefix[-1].txid
            self.forget()
        self.restart()

    def forget(self):
        self.stored = {txid: value for txid, value in self.stored.items() if txid >= self.committed}

    @invariant()
    def machine_and_observer_agree(self):
        statuses = {txid: entry[:2] for txid, entry in self.model.items()}
        active = {txid: [one.attempt, one.status.value] for txid, one in self.machine._active.items()}
        assert active == statuses
        assert self.machine.currtx == self.committed + 1
        assert self.machine.is_idle() == (not self.model)
        assert self.machine._metadata == self.stored

    @invariant()
    def window_and_group_are_bounded(self):
        assert all(self.committed < txid <= self.committed + self.WINDOW for txid in self.model)
        together = self.having("committing", "publishing")
        assert len(together) <= self.GROUP
        assert [a.txid for a in together] == list(range(self.committed + 1, self.committed + 1 + len(together)))
        assert len({self.model[a.txid][2] for a in together}) <= 1


TransactionCoordinatorMachine.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
TestAnythingThatMayHappen = TransactionCoordinatorMachine.TestCase


def test_every_status_is_reached_by_name():
    assert {status.value for status in AttemptStatus} == {"processing", "processed", "committing", "publishing"}
