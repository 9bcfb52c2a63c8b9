"""Random reports, late ones too, and restarts with what was stored, told of attempt by attempt.

The model is what a patient observer would write down: per txid the current attempt and where it stands. Every turn
is asserted as a whole, decision by decision.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.transactional.engine import GroupCrashed
from coordinator.transactional.machine.run_events import (
    AskForEnd,
    Decision,
    NotifySpout,
    Publish,
    SpoutNotified,
    StartCommit,
)
from coordinator.transactional.machine.transaction_record import AttemptState
from state.attempt import TransactionAttempt
from tests.support.machine.by_hand import ByHand, ScriptedSource, snapshot, store, wave
from tests.support.property_lengths import examples


class ScriptedSize:
    """The bound on the next group, from the test."""

    bound = 1
    operations_limit = 10

    def limit(self) -> int:
        return self.bound

    def published(self, **_: int) -> None:
        """Nothing is learnt."""

    one_by_one = published


class ObservedMachine(RuleBasedStateMachine):
    WINDOW, GROUP, OPERATIONS = 4, 3, ScriptedSize.operations_limit

    def __init__(self):
        super().__init__()
        self.source = ScriptedSource()
        self.ids = count(1)
        self.stored: dict[int, str] = {}
        self.committed = 0
        self.issued: list[TransactionAttempt] = []
        self.restart()

    def restart(self):
        self.by_hand = ByHand(
            self.source,
            committed_txid=self.committed,
            metadata=self.stored,
            max_spout_pending=self.WINDOW,
            commit_group_max=self.GROUP,
            commit_operations_max=self.OPERATIONS,
            max_attempts=1_000_000,
        )
        self.by_hand.machine._transactions._new_attempt_id = self.ids.__next__
        self.size = ScriptedSize()
        self.by_hand.machine._commits._size = self.size  # type: ignore[assignment] # the part that is asked
        self.model: dict[int, list[Any]] = {}
        self.composed = True

    def having(self, state):
        return tuple(entry[0] for _, entry in sorted(self.model.items()) if entry[1] is state)

    def is_current(self, attempt):
        return attempt.txid in self.model and self.model[attempt.txid][0] == attempt

    def drop_from(self, attempt):
        self.model = {txid: entry for txid, entry in self.model.items() if txid < attempt.txid}

    @rule(answers=st.lists(st.sampled_from(["yes", "yes", "yes", "no"]), max_size=6), bound=st.integers(1, 3))
    def turn(self, answers, bound):
        self.source.answers, self.source.asked, self.size.bound = list(answers), [], bound
        decisions = self.by_hand.turn()
        expected: list[Decision] = []
        group = self.expected_group(bound)
        if group:
            expected.append(StartCommit(1, group, self.composed))
        for attempt in group:
            self.model[attempt.txid][1] = AttemptState.COMMITTING

        cut: dict[str, str] = {}
        batches = []
        asked = []
        for txid in range(self.committed + 1, self.committed + 1 + self.WINDOW):
            if txid in self.model:
                continue
            if txid not in self.stored:
                asked.append((txid, self.stored.get(txid - 1)))
                if len(asked) > len(answers) or answers[len(asked) - 1] == "no":
                    break
                self.stored[txid] = cut[f"t{txid}"] = self.by_hand.machine._transactions[txid].metadata
            current = self.by_hand.machine._transactions.current_of(txid)
            assert current is not None
            assert current.attempt not in self.issued
            self.issued.append(current.attempt)
            batches.append((txid, current.attempt.attempt_id, self.stored[txid]))
            self.model[txid] = [current.attempt, AttemptState.PROCESSING]
        assert [(question.txid, question.previous) for question in self.source.asked] == asked
        if cut:
            expected.append(store(**cut))
        if batches:
            expected.append(wave(1, *batches))
        if not self.model:
            expected.append(AskForEnd())
        assert decisions == expected

    def expected_group(self, limit):
        if self.having(AttemptState.COMMITTING):
            return ()
        group = []
        for txid in range(self.committed + 1, self.committed + 1 + limit):
            if txid not in self.model or self.model[txid][1] is not AttemptState.PROCESSED:
                break
            group.append(self.model[txid][0])
        return tuple(group)

    @precondition(lambda self: self.having(AttemptState.PROCESSING))
    @rule(data=st.data(), is_good=st.sampled_from([True, True, True, False]))
    def process(self, data, is_good):
        attempt = data.draw(st.sampled_from(self.having(AttemptState.PROCESSING)))
        if is_good:
            assert self.by_hand.ack(attempt) == []
            self.model[attempt.txid][1] = AttemptState.PROCESSED
        elif not self.having(AttemptState.COMMITTING) or attempt.txid > self.having(AttemptState.COMMITTING)[-1].txid:
            assert self.by_hand.fail(attempt) == []
            self.drop_from(attempt)

    @precondition(lambda self: self.issued)
    @rule(data=st.data(), is_good=st.booleans())
    def late_report(self, data, is_good):
        attempt = data.draw(st.sampled_from(self.issued[-12:]))
        if not self.is_current(attempt):
            before = snapshot(self.by_hand)
            assert (self.by_hand.ack if is_good else self.by_hand.fail)(attempt) == []
            assert self.by_hand.handle(GroupCrashed(1, (attempt,), "late")) == []
            assert snapshot(self.by_hand) == before

    @precondition(lambda self: self.having(AttemptState.COMMITTING))
    @rule()
    def crash_group(self):
        group = self.having(AttemptState.COMMITTING)
        assert self.by_hand.handle(GroupCrashed(1, group, "gone")) == []
        self.drop_from(group[0])

    @precondition(lambda self: self.having(AttemptState.COMMITTING))
    @rule(data=st.data(), end=st.sampled_from(["fails", "is cut", "is good"]), answer=st.integers(0, 5))
    def execute(self, data, end, answer):
        """The good prefix is sent, and the store answers; or nobody is there to hear it."""
        group = self.having(AttemptState.COMMITTING)
        place = data.draw(st.integers(0, len(group) - 1))
        if end == "fails":
            decisions = self.by_hand.executed(failing=group[place])
            self.drop_from(group[place])
            prefix = group[:place]
        elif end == "is cut" and place:
            prefix = group[:place]
            if self.composed:
                again = StartCommit(1, group, composed=False)
                assert self.by_hand.executed(reads=True) == [again]
                self.composed = False
            decisions = self.by_hand.executed(reads=True, operations={group[place].txid: self.OPERATIONS})
            for attempt in group[place:]:
                self.model[attempt.txid][1] = AttemptState.PROCESSED
        else:
            prefix = group
            decisions = self.by_hand.executed()
        if not prefix:
            assert decisions == []
            return
        (publish,) = decisions
        assert isinstance(publish, Publish)
        assert publish.attempts == prefix
        self.answer(prefix, answer)

    def answer(self, prefix, answer):
        if answer == 0 and len(prefix) > 1:  # one alone would halt the run
            assert self.by_hand.refused() == []
            for attempt in prefix:
                self.model[attempt.txid][1] = AttemptState.PROCESSED
        elif answer == 1:
            self.restart()
        elif answer == 2:
            self.commit(prefix)
            self.restart()
        else:
            assert self.by_hand.published() == [NotifySpout(prefix)]
            assert self.by_hand.handle(SpoutNotified()) == []
            self.commit(prefix)

    def commit(self, prefix):
        assert [attempt.txid for attempt in prefix] == list(range(self.committed + 1, self.committed + 1 + len(prefix)))
        for attempt in prefix:
            del self.model[attempt.txid]
        self.committed = prefix[-1].txid
        self.stored = {txid: value for txid, value in self.stored.items() if txid >= self.committed}

    @rule(is_due=st.sampled_from([True, False, False, False]))
    def crash(self, is_due):
        if is_due:
            self.restart()

    @invariant()
    def machine_and_observer_agree(self):
        transactions = self.by_hand.machine._transactions
        found = {record.attempt.txid: [record.attempt, record.state] for record in transactions.active()}
        assert found == self.model
        assert transactions.currtx == self.committed + 1
        assert self.by_hand.machine.is_idle() == (not self.model)
        assert {txid: transactions[txid].metadata for txid in transactions.known()} == self.stored

    @invariant()
    def window_and_group_are_bounded(self):
        assert all(self.committed < txid <= self.committed + self.WINDOW for txid in self.model)
        together = self.having(AttemptState.COMMITTING)
        assert len(together) <= self.GROUP
        assert [a.txid for a in together] == list(range(self.committed + 1, self.committed + 1 + len(together)))


ObservedMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestAnythingThatMayHappen = ObservedMachine.TestCase
