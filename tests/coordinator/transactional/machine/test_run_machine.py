"""The run machine's named rules, each as an exact list of decisions."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.spouts.batch import Batch
from coordinator.transactional.engine import (
    EarlyCommit,
    GroupCrashed,
    GroupExecuted,
    PhaseWaits,
    WaveCrashed,
    WaveProcessed,
)
from coordinator.transactional.machine import wave_records
from coordinator.transactional.machine.run_events import (
    AskForEnd,
    BatchCut,
    CancelWave,
    Cut,
    Done,
    Halt,
    InputState,
    NotifySpout,
    Publish,
    Published,
    ReleaseWave,
    SpoutNotified,
    StartCommit,
    StartWave,
    StoreMetadata,
    TimePassed,
    Turn,
)
from coordinator.watching.failure_cause import CrashKind
from state.codec import pack
from state.errors import ProtocolError, ReplayLimitError, SourceError, StateRefusedError, UserCodeError
from state.metadata import MetadataChanges
from tests.support.case_names import shown
from tests.support.machine.by_hand import (
    LATER,
    ByHand,
    Driven,
    ScriptedSource,
    acked,
    att,
    attempts_in,
    counted,
    emitted,
    halted,
    ready,
    snapshot,
    started,
    store,
    two_processed,
    wave,
)

USER = Failure(FailureKind.USER, "count", 0, "mine")
in_both_phases = pytest.mark.parametrize("phase", ["processing", "commit"])


def commits(*txids, wave_id=1, composed=True):
    """Attempts that were issued first, and in order."""
    return StartCommit(wave_id, tuple(att(txid, txid) for txid in txids), composed)


def failed_user(by_hand, attempt):
    by_hand.waves.speaking_of = (attempt,)
    return by_hand.handle(WaveProcessed(1, (AttemptResult(attempt, USER),)))


# P-01: whatever is not current is ignored before anything is touched


@pytest.mark.case(id="P-01")
def test_a_late_fail_of_a_cancelled_attempt_does_not_remove_the_current_one():
    by_hand, old = started()
    by_hand.fail(old[2])
    by_hand.turn()
    before = snapshot(by_hand)
    assert by_hand.fail(old[2]) == []
    assert snapshot(by_hand) == before
    assert by_hand.turn() == []


@pytest.mark.case(id="P-01")
def test_a_late_ack_of_a_cancelled_attempt_does_not_complete_the_current_one():
    by_hand, old = started()
    by_hand.fail(old[1])
    by_hand.turn()
    before = snapshot(by_hand)
    assert by_hand.ack(old[1]) == []
    assert snapshot(by_hand) == before
    assert by_hand.turn() == []


@pytest.mark.case(id="P-01")
def test_a_late_verdict_on_a_cancelled_group_touches_nothing():
    by_hand, old = started(max_spout_pending=1)
    by_hand.ack(old[1])
    by_hand.turn()
    crashed = GroupCrashed(1, (old[1],), "gone")
    late = by_hand.reported(), by_hand.reported(failing=old[1]), crashed
    assert by_hand.handle(crashed) == []
    by_hand.turn()
    by_hand.ack(att(1, 2))
    by_hand.turn()
    before = snapshot(by_hand)
    for event in late:
        assert by_hand.handle(event) == []
    assert snapshot(by_hand) == before
    assert by_hand.group == (att(1, 2),)


def test_a_verdict_of_the_commit_phase_on_an_attempt_that_is_processed_is_ignored():
    by_hand, attempts = started()
    before = snapshot(by_hand)
    by_hand.group = (attempts[1],)
    assert by_hand.executed() == []
    assert by_hand.executed(failing=attempts[1]) == []
    assert snapshot(by_hand) == before


def test_a_second_verdict_of_the_ackers_is_a_bug_of_ours():
    by_hand, attempts = started()
    by_hand.ack(attempts[1])
    with pytest.raises(ProtocolError, match="txid 1 cannot go from processed to processed"):
        by_hand.ack(attempts[1])


@pytest.mark.parametrize("report", [WaveProcessed(1, ()), WaveCrashed(1, "gone"), WaveProcessed(7, ())], ids=shown)
def test_a_report_on_a_wave_that_does_not_run_is_a_bug_of_ours_and_touches_nothing(report):
    driven, _ = two_processed()
    driven.turn()
    before = snapshot(driven)
    with pytest.raises(ProtocolError, match=f"wave {report.wave_id} was reported but is not running"):
        driven.handle(report)
    assert snapshot(driven) == before
    assert driven.handle(WaveCrashed(2, "gone")) == [ReleaseWave(2)]


# Cutting


@pytest.mark.case(id="P-05")
def test_a_no_then_yes_within_one_turn_leaves_no_gap():
    source = ScriptedSource(["yes", "no", "yes"])
    driven = Driven(source)
    assert driven.turn() == [store(t1="cut 1 of 1"), wave(1, (1, 1, "cut 1 of 1"))]
    assert [cut.txid for cut in source.asked] == [1, 2]
    driven.processed(1, (att(1, 1),))
    assert emitted(driven.turn()) == [2]


def test_the_source_is_not_asked_for_a_txid_that_was_cut_before():
    source = ready()
    by_hand, attempts = started(source)
    by_hand.fail(attempts[1])
    (again,) = by_hand.turn()
    assert emitted([again]) == [1, 2, 3]
    assert [(cut.txid, cut.is_new) for cut in source.asked] == [(1, True), (2, True), (3, True)]


def test_what_one_turn_cuts_is_stored_in_one_call_before_it_is_emitted():
    cut = {1: "cut 1 of 1", 2: "cut 2 of 2", 3: "cut 3 of 3"}
    assert ByHand().turn() == [
        store(t1=cut[1], t2=cut[2], t3=cut[3]),
        wave(1, *((txid, txid, metadata) for txid, metadata in cut.items())),
    ]


def test_a_cut_is_given_the_metadata_of_the_txid_before():
    source = ready()
    started(source, committed_txid=4, metadata={4: "stored 4", 5: "stored 5"})
    assert source.asked == [Cut(6, "stored 5", is_new=True), Cut(7, "cut 1 of 6", is_new=True)]


def test_a_transaction_is_not_cut_without_the_metadata_of_the_one_before():
    driven = Driven(committed_txid=4)
    with pytest.raises(ProtocolError, match="txid 5 cannot be cut: the metadata of txid 4 is unknown"):
        driven.turn()


def test_metadata_none_is_metadata_like_any_other():
    source = ScriptedSource()
    assert ByHand(source, metadata={1: None}).turn() == [wave(1, (1, 1, None))]
    assert source.asked == [Cut(2, None, is_new=True)]


def test_the_window_is_a_range_of_txids_so_a_slow_first_one_blocks():
    by_hand, attempts = started()
    for txid in (2, 3):
        by_hand.ack(attempts[txid])
    assert by_hand.turn() == []


def test_nothing_is_known_before_the_first_cut():
    machine = Driven().machine
    assert machine.is_idle()
    assert machine.last_txid() == 0
    assert machine.story(1) == []


# Waves


def test_two_waves_of_half_a_window_are_under_way_one_of_them_in_its_processing_phase():
    driven = Driven(max_spout_pending=4)
    decisions = driven.turn()
    assert [type(each) for each in decisions] == [StoreMetadata, StartWave]
    assert emitted(decisions) == [1, 2]
    assert driven.turn() == []
    assert driven.processed(1, (att(1, 1), att(2, 2))) == []
    assert [type(each) for each in driven.turn()] == [StartCommit, StartWave]
    assert driven.machine.active_count() == 4


def test_an_engine_that_does_not_overlap_gets_no_wave_while_a_group_commits():
    driven, _ = two_processed(plan={"engine_overlaps": False})
    assert driven.turn() == [commits(1, 2)]
    driven.commit()
    assert emitted(driven.turn()) == [3, 4]


def test_a_wave_takes_the_lowest_attempts_that_wait_and_no_more_input_than_allowed(monkeypatch):
    monkeypatch.setattr(wave_records, "WAVE_BYTES_MAX", 100)
    driven = Driven(max_spout_pending=8)
    driven.source = lambda cut: BatchCut(cut.txid, "cut", 0.0, byte_count=40)
    assert emitted(driven.turn()) == [1, 2]


def test_an_attempt_of_a_wave_without_a_verdict_has_failed():
    driven = Driven(max_spout_pending=4)
    driven.turn()
    assert driven.processed(1, (att(1, 1),)) == []
    assert driven.turn() == [commits(1), wave(2, (2, 5, "cut 2 of 2"), (3, 6, "cut 3 of 3"))]


def test_a_verdict_on_an_attempt_the_wave_does_not_have_is_not_counted():
    driven = Driven(max_spout_pending=2)
    driven.turn()
    assert driven.processed(1, (att(2, 2), att(1, 77))) == [ReleaseWave(1)]
    assert emitted(driven.turn()) == [1]


def test_a_failure_drops_later_waves_and_cancels_the_one_that_runs():
    driven, _ = two_processed()
    driven.turn()
    assert driven.executed(failing=att(1, 1)) == [CancelWave(2), ReleaseWave(1)]
    assert driven.turn() == [], "one wave at a time, even one that runs for nothing"
    assert driven.handle(WaveCrashed(2, "cancelled")) == [ReleaseWave(2)]
    assert driven.turn() == [wave(3, (1, 5, "cut 1 of 1"), (2, 6, "cut 2 of 2"))]


def test_a_wave_that_crashes_is_halved_until_one_is_to_blame():
    driven = Driven(max_spout_pending=4, max_attempts=2)
    driven.turn()
    assert driven.handle(WaveCrashed(1, "gone")) == [ReleaseWave(1)]
    assert emitted(driven.turn()) == [1]
    assert driven.handle(WaveCrashed(2, "gone")) == [ReleaseWave(2)]
    assert emitted(driven.turn()) == [1]
    assert driven.handle(WaveCrashed(3, "gone")) == [ReleaseWave(3)]
    error = halted(driven.turn(), ReplayLimitError)
    assert (error.txid, error.attempt_count, error.last_reason) == (1, 2, "gone")
    assert driven.machine.story(1)[-1] == "1:0000000000000009: dropped: gone"


def in_phase(phase, began_s, **given):
    """A machine whose only wave is in this phase since then."""
    driven = Driven(max_spout_pending=1, **given)
    driven.turn(began_s if phase == "processing" else 0.0)
    if phase == "commit":
        driven.processed(1, (att(1, 1),))
        driven.turn(began_s)
    return driven


def cancelled_at(driven, *times_s):
    """At which of these times the wave is cancelled."""
    asked = {now_s: driven.handle(TimePassed(now_s)) for now_s in times_s}
    assert all(decisions in ([], [CancelWave(1)]) for decisions in asked.values())
    return [now_s for now_s, decisions in asked.items() if decisions]


@in_both_phases
def test_an_overdue_phase_is_cancelled_once_a_timeout(phase):
    assert cancelled_at(in_phase(phase, 100.0), 160.0, 160.1, 161.0, 220.2) == [160.1, 220.2]


@in_both_phases
@pytest.mark.parametrize("timeout_s", [1.0, 3.0, 5.0, 30.0])
def test_what_hangs_is_cancelled_later_where_workers_name_it_themselves(phase, timeout_s):
    driven = in_phase(phase, 100.0, plan={"message_timeout_s": timeout_s, "cancel_later_s": 2.0})
    assert cancelled_at(driven, 102.0 + timeout_s, 102.1 + timeout_s) == [102.1 + timeout_s]


def test_the_timeout_of_a_wave_begins_when_it_does_however_long_cutting_took():
    driven = Driven(ScriptedSource(["yes", "no"], takes_s=50.0), max_spout_pending=2)
    driven.turn(now_s=100.0)
    assert cancelled_at(driven, 210.0, 210.1) == [210.1]


@pytest.mark.parametrize(("phase", "since_s"), [("processing", 159.9), ("commit", 150.0)])
def test_the_timeout_counts_from_when_a_phase_last_waited_for_its_first_task(phase, since_s):
    """A wave has waited until somebody looks at the clock."""
    driven = in_phase(phase, 50.0)
    for now_s in (100.0, 150.0):
        driven.turn(now_s)
        assert driven.handle(PhaseWaits((1,))) == []
        assert driven.handle(PhaseWaits((7,))) == [], "of a wave that has ended"
        assert cancelled_at(driven, now_s + 9.9) == []
    assert cancelled_at(driven, since_s + 60.0, since_s + 60.1) == [since_s + 60.1]


def waves_after_overdue(size, *, has_waited):
    """The first wave, and the next one after an engine found it overdue; the machine."""
    driven = Driven(max_spout_pending=2 * size, max_attempts=2, early_commit=True, plan={"may_commit_early": True})
    turns = [driven.turn(0.0)]
    driven.handle(PhaseWaits((1,) if has_waited else ()))
    driven.handle(WaveCrashed(1, "it had not returned", CrashKind.OVERDUE))
    turns.append(driven.turn(1.0))
    first, again = [next(each for each in turn if isinstance(each, StartWave)) for turn in turns]
    return first, again, driven.machine


@pytest.mark.parametrize("size", [1, 4])
def test_what_an_engine_finds_overdue_after_it_had_to_wait_counts_against_nobody(size):
    """Its tasks count from when the job was submitted; see `Deadline`."""
    first, again, machine = waves_after_overdue(size, has_waited=True)
    assert len(again.batches) == len(first.batches) == size
    assert again.early.groups != ()
    assert machine.handle(WaveCrashed(2, "it had not returned", CrashKind.OVERDUE))
    machine.handle(Turn(2.0, None))
    assert not machine.is_halted(), "that was the first failure of two"


def test_what_an_engine_finds_overdue_without_a_wait_halves_waves_and_ends_early_commits():
    first, again, _ = waves_after_overdue(4, has_waited=False)
    assert (len(first.batches), len(again.batches), again.early.groups) == (4, 2, ())


# Groups


def test_commit_waits_for_earlier_txid():
    by_hand, attempts = started()
    by_hand.ack(attempts[2])
    assert by_hand.turn() == []
    by_hand.ack(attempts[1])
    assert by_hand.turn() == [commits(1, 2)]


def test_a_group_stays_within_one_wave():
    driven, _ = two_processed(commit_group_max=4)
    assert driven.turn()[0] == commits(1, 2)
    driven.processed(2, (att(3, 3), att(4, 4)))
    driven.executed()
    assert driven.refused() == []
    assert driven.turn()[0] == commits(1)
    driven.commit()
    assert driven.turn()[0] == commits(2)
    driven.commit()
    assert driven.turn()[0] == commits(3, 4, wave_id=2)


@pytest.mark.parametrize(("group_max", "one_by_one", "size"), [(2, 0, 2), (3, 1, 1), (1, 0, 1), (3, 0, 3)])
def test_a_group_is_no_larger_than_either_limit(group_max, one_by_one, size):
    by_hand, _ = acked(commit_group_max=group_max)
    if one_by_one:
        by_hand.machine._commits._size.one_by_one()
    assert by_hand.turn() == [commits(*range(1, 1 + size))]


def test_the_commit_goes_out_before_new_batches():
    by_hand, _ = acked(commit_group_max=1)
    by_hand.turn()
    by_hand.commit()
    assert [type(decision) for decision in by_hand.turn()] == [StartCommit, StoreMetadata, StartWave]


def test_a_group_is_published_then_told_then_its_wave_released():
    driven, _ = two_processed()
    driven.turn()
    attempts = (att(1, 1), att(2, 2))
    write_set = counted(1)
    write_set.then(counted(2))
    assert driven.executed() == [Publish(attempts, write_set, MetadataChanges(forgets=("coordinator:1",)))]
    assert driven.handle(Published(9.0)) == [NotifySpout(attempts), ReleaseWave(1)]
    assert driven.handle(SpoutNotified()) == []


def test_an_attempt_whose_commit_was_sent_is_never_failed_or_issued_again():
    by_hand, attempts = acked(commit_group_max=2)
    by_hand.turn()
    by_hand.executed()
    before = snapshot(by_hand)
    for txid in (1, 2):
        with pytest.raises(ProtocolError, match=f"txid {txid} cannot go from publishing to dropped"):
            by_hand.fail(attempts[txid])
    assert snapshot(by_hand) == before
    assert by_hand.fail(attempts[3]) == []
    assert by_hand.turn()[0] == wave(1, (3, 4, "cut 3 of 3"))
    assert by_hand.published() == [NotifySpout((attempts[1], attempts[2]))]


def test_the_store_answers_only_what_was_sent():
    by_hand, attempts = started(max_spout_pending=2)
    with pytest.raises(ProtocolError, match="answered a commit that was not sent"):
        by_hand.published()
    by_hand.ack(attempts[1])
    by_hand.turn()
    with pytest.raises(ProtocolError, match="answered a commit that was not sent"):
        by_hand.refused()


def test_a_failure_in_the_commit_phase_publishes_what_is_below_it():
    by_hand, attempts = acked()
    by_hand.turn()
    (publish,) = by_hand.executed(failing=attempts[3])
    assert isinstance(publish, Publish)
    assert publish.attempts == (attempts[1], attempts[2])
    by_hand.published()
    assert emitted(by_hand.turn()) == [3, 4, 5]


def test_a_group_with_too_many_changes_is_cut_and_the_rest_goes_with_the_next():
    by_hand, _ = acked(commit_operations_max=4)
    by_hand.turn()
    much = {2: 4}
    assert by_hand.executed(operations=much) == [commits(1, 2)]
    assert by_hand.executed(operations=much) == [commits(1)]
    by_hand.commit()
    assert by_hand.turn()[0] == commits(2, 3)


def test_a_group_is_cut_by_how_long_the_calls_before_it_took():
    by_hand, attempts = acked(max_spout_pending=16)
    by_hand.turn(commit_limit=1)
    by_hand.executed(operations=dict.fromkeys(attempts, 1_000))
    by_hand.published(call_s=0.05)
    assert commits(2, 3) in by_hand.turn()


def test_a_group_that_became_too_large_is_cut_though_its_commit_phase_has_run():
    by_hand, attempts = acked(max_spout_pending=16)
    by_hand.turn(commit_limit=3)
    by_hand.executed(operations=dict.fromkeys(attempts, 1_000))
    by_hand.published(call_s=0.15)
    by_hand.turn()
    while len(by_hand.group) < 2:
        by_hand.commit()
        for attempt in attempts_in(by_hand.turn()).values():
            by_hand.ack(attempt)
    first, second = by_hand.group
    repeated = by_hand.executed(operations={first.txid: 4_001, second.txid: 4_001})
    assert [decision.attempts for decision in repeated if isinstance(decision, StartCommit)] == [(first,)]


def test_a_transaction_that_stalls_the_server_is_named_and_again_once_the_stall_has_doubled(caplog):
    by_hand, attempts = acked(max_spout_pending=8, commit_group_max=1)
    for call_s in (0.09, 0.11, 0.21, 0.3):
        by_hand.turn()
        by_hand.executed(operations=dict.fromkeys(attempts, 1_000))
        by_hand.published(call_s=call_s)
        by_hand.handle(SpoutNotified())
    assert [record.getMessage().split(" in one call")[0] for record in caplog.records] == [
        "transaction 2, with 1,000 changes, kept the server busy for 0.11 s",
        "transaction 4, with 1,000 changes, kept the server busy for 0.30 s",
    ]


def test_a_group_that_has_read_is_run_again_transaction_by_transaction_and_so_are_all_later_ones():
    by_hand, _ = acked(commit_group_max=2)
    by_hand.turn()
    assert by_hand.executed(reads=True) == [commits(1, 2, composed=False)]
    by_hand.commit(reads=True)
    assert by_hand.turn()[0] == commits(3, composed=False)


def test_a_commit_keeps_its_own_metadata_and_forgets_what_is_below():
    by_hand, attempts = started()
    by_hand.ack(attempts[1])
    by_hand.ack(attempts[2])
    by_hand.turn()
    by_hand.commit()
    assert by_hand.machine._transactions.known() == [2, 3]
    assert by_hand.machine.last_txid() == 3
    assert by_hand.machine.currtx == 3


def test_a_crashed_commit_phase_is_replayed_in_halves_until_one_is_to_blame():
    driven, _ = two_processed(max_attempts=2)
    driven.turn()
    assert driven.handle(GroupCrashed(1, driven.group, "gone")) == [CancelWave(2), ReleaseWave(1)]
    driven.handle(WaveCrashed(2, "cancelled"))
    for wave_id in (3, 5):
        decisions = driven.turn()
        assert emitted(decisions) == [1], "alone"
        driven.processed(wave_id, tuple(attempts_in(decisions).values()))
        assert emitted(driven.turn()) == [2, 3]
        crashed = driven.handle(GroupCrashed(wave_id, driven.group, "gone"))
        assert crashed == [CancelWave(wave_id + 1), ReleaseWave(wave_id)]
        driven.handle(WaveProcessed(wave_id + 1, ()))
    error = halted(driven.turn(), ReplayLimitError)
    assert (error.txid, error.attempt_count, error.last_reason) == (1, 2, "gone")


# Refusals and halts


def test_a_refused_group_is_tried_one_by_one_and_the_culprit_ends_the_run():
    by_hand, _ = acked()
    by_hand.turn()
    by_hand.executed()
    assert by_hand.refused() == []
    assert by_hand.turn() == [commits(1)]
    by_hand.commit()
    assert by_hand.turn()[0] == commits(2, 3)
    by_hand.executed()
    by_hand.refused()
    assert by_hand.turn() == [commits(2)]
    by_hand.executed()
    assert by_hand.refused("what it is") == []
    halted(by_hand.turn(), StateRefusedError)
    assert by_hand.machine.currtx == 2


def test_after_a_halt_lower_txids_commit_and_higher_ones_are_not_tried():
    by_hand, attempts = started()
    failed_user(by_hand, attempts[2])
    assert by_hand.turn() == []
    by_hand.ack(attempts[1])
    assert by_hand.turn() == [commits(1)]
    by_hand.commit()
    halted(by_hand.turn(), UserCodeError)


def test_of_two_halts_the_lower_counts():
    by_hand, attempts = started()
    failed_user(by_hand, attempts[3])
    by_hand.waves.speaking_of = (attempts[2],)
    by_hand.handle(WaveProcessed(1, (AttemptResult(attempts[2], Failure(FailureKind.SOURCE, "lines", 0, "gone")),)))
    by_hand.ack(attempts[1])
    by_hand.turn()
    by_hand.commit()
    halted(by_hand.turn(), SourceError)


def test_only_the_txid_that_failed_is_counted_not_the_ones_dropped_with_it():
    by_hand, attempts = started(max_attempts=2)
    by_hand.fail(attempts[1])
    again = attempts_in(by_hand.turn())
    by_hand.ack(again[1])
    by_hand.fail(again[2])
    assert by_hand.machine._failures.halt_before is None
    by_hand.turn()
    assert [by_hand.machine._transactions[txid].failure_count for txid in (1, 2, 3)] == [1, 1, 0]


def test_a_spout_that_cannot_be_told_what_earlier_runs_committed_is_asked_nothing():
    source = ready()
    by_hand = ByHand(source)
    error = UserCodeError(component_id="lines", attempt="committed", traceback_text="mine")
    assert by_hand.handle(SpoutNotified(error)) == []
    assert by_hand.turn() == [Halt(error)]
    assert source.asked == []


# The end


def test_how_the_input_stands_is_asked_only_while_nothing_is_under_way():
    source = ScriptedSource(["yes", "no"])
    by_hand = ByHand(source)
    assert AskForEnd not in map(type, by_hand.turn())
    by_hand.ack(att(1, 1))
    by_hand.turn()
    by_hand.commit()
    assert by_hand.turn() == [AskForEnd()]
    assert ByHand(ScriptedSource()).turn() == [AskForEnd()]


@pytest.mark.parametrize(
    ("state", "decisions"),
    [
        (InputState(), []),
        (InputState(is_exhausted=True), [Done()]),
        (InputState(is_draining=True), [Done()]),
        (InputState(is_draining=True, is_finite=True), [Done(is_interrupted=True)]),
        (InputState(is_draining=True, is_finite=True, is_exhausted=True), [Done()]),
    ],
)
def test_a_run_ends_once_the_input_has_ended_or_nothing_more_is_wanted(state, decisions):
    driven = Driven(ScriptedSource())
    driven.turn()
    assert driven.handle(state) == decisions


def test_a_run_with_a_last_txid_cuts_nothing_beyond_it_and_ends_when_it_is_committed():
    source = ready()
    by_hand = ByHand(source, last_txid=2)
    attempts = attempts_in(by_hand.turn())
    assert list(attempts) == [1, 2]
    for attempt in attempts.values():
        by_hand.ack(attempt)
    by_hand.turn()
    by_hand.commit()
    assert by_hand.turn() == [Done()]
    assert [cut.txid for cut in source.asked] == [1, 2]


def test_a_run_whose_last_txid_was_committed_before_does_nothing():
    source = ready()
    driven = Driven(source, metadata={2: "two", 3: "three"}, committed_txid=2, last_txid=2)
    assert driven.turn() == [Done()]
    assert source.asked == []


def test_a_last_txid_does_not_hide_the_error_that_ends_the_run():
    by_hand = ByHand(ready(), last_txid=2)
    attempts = attempts_in(by_hand.turn())
    failed_user(by_hand, attempts[2])
    by_hand.ack(attempts[1])
    by_hand.turn()
    by_hand.commit()
    halted(by_hand.turn(), UserCodeError)


def test_a_spout_that_has_raised_ends_the_run_once_nothing_is_under_way():
    driven = Driven(ScriptedSource())
    driven.turn()
    error = UserCodeError(component_id="lines", attempt="is_ready", traceback_text="mine")
    assert driven.handle(InputState(is_exhausted=True, error=error)) == [Halt(error)]


def test_a_drain_does_not_hide_the_error_of_a_halt():
    """Two opaque transactions are void; the second was the user's error, the first cannot be cut again."""
    by_hand = ByHand(ScriptedSource(["yes", "yes"]), plan={"is_opaque": True})
    attempts = attempts_in(by_hand.turn())
    assert list(attempts) == [1, 2]
    assert failed_user(by_hand, attempts[2]) == []
    by_hand.fail(attempts[1])
    assert isinstance(by_hand.turn()[-1], AskForEnd)
    halted(by_hand.handle(InputState(is_draining=True)), UserCodeError)


# Early commits


def early(**given):
    driven = Driven(plan={"may_commit_early": True}, early_commit=True, max_spout_pending=4, **given)
    return driven, driven.turn()


def early_report(driven, *attempts, **said):
    driven.group, driven.composed = attempts, True
    return driven.reported(**said)


def processed_early(driven, wave_id, *attempts, **said):
    executed = (early_report(driven, *attempts, **said),)
    outcomes = tuple(AttemptResult(attempt) for attempt in attempts)
    return driven.handle(WaveProcessed(wave_id, outcomes, executed))


def test_a_wave_names_the_groups_that_are_to_run_early():
    _, decisions = early()
    batches = (Batch(att(1, 1), pack("cut 1 of 1")), Batch(att(2, 2), pack("cut 2 of 2")))
    assert decisions[-1] == StartWave(1, batches, EarlyCommit(((att(1, 1), att(2, 2)),), composed=True))


def test_a_group_that_has_run_early_is_published_after_the_next_wave_is_started():
    driven, _ = early()
    assert processed_early(driven, 1, att(1, 1), att(2, 2)) == []
    decisions = driven.turn()
    assert [type(each) for each in decisions] == [StartWave, Publish]
    assert driven.published() == [NotifySpout((att(1, 1), att(2, 2))), ReleaseWave(1)]


def test_a_group_that_has_run_early_is_published_before_the_next_wave_if_the_engine_does_not_overlap():
    driven = Driven(plan={"may_commit_early": True, "engine_overlaps": False}, early_commit=True, max_spout_pending=4)
    driven.turn()
    processed_early(driven, 1, att(1, 1), att(2, 2))
    assert [type(each) for each in driven.turn()] == [Publish]
    driven.published()
    assert emitted(driven.turn()) == [3, 4]


def queueing(source=None, *, window=4, **options):
    """A machine whose engine queues, and the txids of the waves it starts at once."""
    plan = {"may_commit_early": True, "engine_queues": True}
    driven = Driven(source, plan=plan, max_spout_pending=window, **{"early_commit": True, **options})
    return driven, [emitted(driven.turn()), emitted(driven.turn())]


def test_a_full_wave_is_queued_behind_the_one_that_runs_and_no_third():
    driven, waves = queueing()
    assert waves == [[1, 2], [3, 4]]
    assert emitted(driven.turn()) == []
    processed_early(driven, 1, att(1, 1), att(2, 2))
    assert [type(each) for each in driven.turn()] == [Publish]
    driven.published()
    assert emitted(driven.turn()) == [5, 6]


def test_a_wave_that_is_not_full_waits_until_nothing_is_processed():
    driven, waves = queueing(ScriptedSource(["yes"] * 3 + ["no"] * 9))
    assert waves == [[1, 2], []]
    processed_early(driven, 1, att(1, 1), att(2, 2))
    assert emitted(driven.turn()) == [3]


@pytest.mark.parametrize("given", [{"window": 2}, {"early_commit": False}], ids=str)
def test_nothing_is_queued_that_runs_alone_or_commits_in_a_job_of_its_own(given):
    _, waves = queueing(**given)
    assert waves[1] == []


def test_nothing_is_queued_while_waves_are_small_after_a_crash():
    driven, _ = queueing(window=16)
    driven.handle(WaveCrashed(1, "gone"))
    driven.handle(WaveCrashed(2, "cancelled"))
    assert [len(emitted(driven.turn())) for _ in range(2)] == [4, 0]


def test_a_wave_that_ends_before_the_one_it_was_queued_behind_waits_for_it():
    driven, _ = queueing()
    processed_early(driven, 2, att(3, 3), att(4, 4))
    assert driven.turn() == []
    processed_early(driven, 1, att(1, 1), att(2, 2))
    assert [each.attempts for each in driven.turn() if isinstance(each, Publish)] == [(att(1, 1), att(2, 2))]


def test_a_failure_cancels_the_wave_that_is_queued():
    driven, _ = queueing()
    outcomes = (AttemptResult(att(1, 1)), AttemptResult(att(2, 2), LATER))
    assert CancelWave(2) in driven.handle(WaveProcessed(1, outcomes))


def test_a_group_run_early_in_vain_goes_the_general_way():
    driven, _ = early(commit_operations_max=4)
    processed_early(driven, 1, att(1, 1), att(2, 2), operations={1: 3, 2: 3})
    assert [type(each) for each in driven.turn()] == [StartWave, StartCommit]
    assert driven.group == (att(1, 1),)
    driven.commit()


def test_a_group_that_was_wanted_early_and_did_not_run_goes_the_general_way():
    driven, _ = early()
    driven.processed(1, (att(1, 1), att(2, 2)))
    assert driven.turn()[0] == commits(1, 2)


def test_a_group_with_a_void_attempt_is_not_taken():
    driven, _ = early()
    attempts = (att(1, 1), att(2, 2))
    executed = (early_report(driven, *attempts),)
    driven.handle(WaveProcessed(1, (AttemptResult(att(1, 1)), AttemptResult(att(2, 2), LATER)), executed))
    assert driven.turn()[0] == commits(1)


def test_a_group_that_ran_early_and_is_void_does_not_cut_a_later_one():
    driven = Driven(plan={"may_commit_early": True}, early_commit=True, max_spout_pending=8)
    attempts = tuple(attempts_in(driven.turn()).values())
    executed = tuple(early_report(driven, *group, failing=att(1, 1)) for group in (attempts[:2], attempts[2:]))
    driven.handle(WaveProcessed(1, tuple(map(AttemptResult, attempts)), executed))
    assert [type(each) for each in driven.turn()] == [StartWave, CancelWave, ReleaseWave]
    driven.handle(WaveCrashed(2, "cancelled"))
    again = tuple(attempts_in(driven.turn()).values())
    assert [attempt.txid for attempt in again] == [1, 2, 3, 4]
    driven.processed(3, again)
    assert driven.turn()[0] == StartCommit(3, again[:3], composed=True)


def test_a_committer_that_reads_ends_early_commits():
    driven, _ = early()
    processed_early(driven, 1, att(1, 1), att(2, 2), reads=True)
    commit, start = driven.turn()
    assert (commit, start.early) == (commits(1, 2), EarlyCommit())


def test_an_overdue_wave_ends_early_commits():
    driven, _ = early()
    assert driven.handle(TimePassed(61.0)) == [CancelWave(1)]
    driven.handle(WaveCrashed(1, "cancelled"))
    (start,) = driven.turn()
    assert start.early == EarlyCommit()


@pytest.mark.parametrize("wrong", ["tasks", "residue"])
def test_a_verdict_from_the_wrong_tasks_or_a_residue_that_was_not_read_fails_the_first_attempt(wrong):
    by_hand, attempts = started(max_spout_pending=1)
    by_hand.ack(attempts[1], residue=5 if wrong == "residue" else 0)
    by_hand.turn()
    assert (by_hand.executed() if wrong == "residue" else by_hand.handle(GroupExecuted(1, by_hand.group, ()))) == []
    assert emitted(by_hand.turn()) == [1]


def test_turns_need_no_answer_from_an_engine():
    driven = Driven(ScriptedSource())
    assert driven.handle(Turn(0.0)) == [Cut(1, None, is_new=True)]
