"""Spouts that are told what is durable: after it is, in order, and never so that a commit is undone or hidden."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.transport.frames import FrameKind
from coordinator import RunOptions, TransactionalTopologyBuilder
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.transactional.assembly import group_max
from coordinator.transactional.machine.run_events import Resumed
from coordinator.transactional.spout_calls import SpoutCalls
from coordinator.transactional.spout_notifier import SpoutNotifier
from state import FailedException, FencedError, SourceError, TransactionAttempt, UserCodeError
from state.commits.commit import CommitReply, CommitStatus
from state.records.transaction_history import RECEIPTS_KEPT
from tests.support.runs.scripted import Run
from tests.support.runs.whole_runs import (
    Count0,
    CrashingStore,
    RandomFaults,
    bounds,
    crash_points,
    run,
    run_until_it_ends,
)
from tests.support.stores.memory_store import MemoryStore
from tests.support.tasks.wire import frames_in
from tests.support.topologies.components import Lines, Pass


class Told:
    """What committers of this process were told, and how far the store was then."""

    log: ClassVar[list[tuple[str, int, int]]] = []
    raising: ClassVar[dict[tuple[str, int], list[Exception]]] = {}
    store: ClassVar[MemoryStore] = MemoryStore()


def begin(store):
    Told.log.clear()
    Told.raising.clear()
    Told.store = store
    return store


class Committer(SpoutCommitter):
    def commit(self, attempt):
        self.note("commit", attempt.txid)

    def cleanup_before(self, txid):
        self.note("cleanup_before", txid)

    def note(self, method, txid):
        Told.log.append((method, txid, Told.store.committed_txid))
        errors = Told.raising.get((method, txid))
        if errors:
            raise errors.pop()


class ToldLines(Lines, ICommitterTransactionalSpout):
    def get_committer(self, conf, context):
        return Committer()


def topology(spout: Any):
    builder = TransactionalTopologyBuilder("test", "lines", spout, parallelism=2)
    builder.set_bolt("pass", Pass(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", Count0(), 2).fields_grouping("pass", ["line"])
    return builder.build()


def notifier(committer: SpoutCommitter | None, **more: Any) -> SpoutNotifier:
    calls = SpoutCalls("lines", tries=1, pause=lambda seconds: None)
    return SpoutNotifier(committer, calls, inform=lambda: None, batch_number=lambda txid: txid, **more)


def told(method="commit"):
    return [txid for name, txid, _ in Told.log if name == method]


@pytest.mark.case(id="P-08")
def test_a_spout_is_told_of_each_txid_in_order_when_it_is_durable():
    store = begin(MemoryStore())
    run(topology(ToldLines(5)), store, max_spout_pending=4, commit_group_max=2)
    assert store.committed == [[1, 2], [3, 4], [5]]
    assert Told.log == [
        ("commit", 1, 2),
        ("commit", 2, 2),
        ("cleanup_before", 2, 2),
        ("commit", 3, 4),
        ("commit", 4, 4),
        ("cleanup_before", 4, 4),
        ("commit", 5, 5),
        ("cleanup_before", 5, 5),
    ]


@pytest.mark.case(id="P-08")
@settings(max_examples=50)
@given(bounds, st.integers(0, 2**32), crash_points)
def test_each_txid_is_told_after_it_is_durable_and_at_least_once_after_any_crash(options, seed, crashes):
    store = begin(CrashingStore(crashes))
    faults = RandomFaults(Random(seed), 2)
    run_until_it_ends(topology(ToldLines(6)), store, seed=seed, fault=faults, **options)
    assert all(txid <= durable for _, txid, durable in Told.log)
    assert set(told()) == {1, 2, 3, 4, 5, 6}
    assert store.states["counts0"]["all"] == 24
    for before, after in zip(told(), told()[1:], strict=False):
        assert after == before + 1 or after <= before, "in order, but for groups that are told again"


def test_a_run_begins_by_telling_the_last_group_again():
    store = begin(MemoryStore())
    run(topology(ToldLines(3)), store, max_spout_pending=8)
    assert store.committed == [[1, 2, 3]]
    Told.log.clear()
    run(topology(ToldLines(4)), store, max_spout_pending=8)
    assert [line[:2] for line in Told.log] == [
        ("commit", 1),
        ("commit", 2),
        ("commit", 3),
        ("cleanup_before", 3),
        ("commit", 4),
        ("cleanup_before", 4),
    ]


@pytest.mark.parametrize("method", ["commit", "cleanup_before"])
@pytest.mark.parametrize("error", [ValueError("mine"), FailedException("later")], ids=lambda e: type(e).__name__)
def test_what_it_raises_ends_the_run_at_once_and_undoes_no_commit(method, error, caplog):
    store = begin(MemoryStore())
    Told.raising[method, 4] = [error]
    with pytest.raises(UserCodeError, match=rf"component 'lines', task 0, attempt 4:\w+ raised(.|\n)*{error}"):
        run(topology(ToldLines(9)), store, max_spout_pending=4, commit_group_max=2)
    assert store.committed == [[1, 2], [3, 4]]
    assert store.states["counts0"]["all"] == 16
    assert told()[-1] == 4
    assert f"{method} of the spout's committer raised after attempt 4:" in caplog.text


def test_after_it_raised_nothing_more_is_published_so_that_the_next_run_tells_all_that_is_missing():
    store = begin(MemoryStore())
    Told.raising["commit", 3] = [ValueError("mine")]
    with pytest.raises(UserCodeError):
        run(topology(ToldLines(9)), store, max_spout_pending=8, commit_group_max=2)
    assert store.committed_txid == 4
    run(topology(ToldLines(9)), store, max_spout_pending=8, commit_group_max=2)
    assert told() == [1, 2, 3, 3, 4, 5, 6, 7, 8, 9]
    assert store.states["counts0"]["all"] == 36


def test_what_it_raises_when_it_is_told_again_ends_the_run_before_anything_is_tried():
    store = begin(MemoryStore())
    run(topology(ToldLines(2)), store)
    Told.raising["commit", 1] = [ValueError("still")]
    calls = len(store.calls)
    with pytest.raises(UserCodeError, match="still"):
        run(topology(ToldLines(4)), store)
    assert len(store.calls) == calls


def test_after_it_raised_no_further_commit_phase_is_begun():
    begin(MemoryStore())
    Told.raising["commit", 1] = [ValueError("mine")]
    scripted = Run(6, max_spout_pending=4, commit_group_max=1)
    scripted.coordinator._notifier = notifier(Committer())
    with pytest.raises(UserCodeError):
        scripted()
    assert scripted.lines("commit", "publish") == [("commit", 1, [1]), ("publish", [1])]


def test_a_fenced_run_tells_nothing():
    store = begin(MemoryStore())
    store.replies = [CommitReply(CommitStatus.FENCED)]
    with pytest.raises(FencedError):
        run(topology(ToldLines(3)), store)
    assert Told.log == []


def test_a_commit_that_had_been_applied_before_is_told():
    store = begin(MemoryStore())
    store.replies = [CommitReply(CommitStatus.ALREADY)]
    run(topology(ToldLines(2)), store)
    assert told() == [1, 2]


@pytest.mark.case(id="P-02")
def test_what_is_told_is_not_a_tuple_and_starts_no_second_round_of_coords():
    """Each task reports once an attempt to each task downstream, and emits its batch once, however often it commits."""
    store = begin(MemoryStore())
    frames: Counter[Any] = Counter()

    def count(task_id, given, wave):
        for frame in (frame for packed in given for frame in frames_in(packed, wave)):
            if frame.kind is not FrameKind.REGULAR:
                frames[frame.attempt, frame.sender, task_id, frame.kind] += 1
        return given

    coordinator = run(
        topology(ToldLines(6)), store, fault=count, is_chained=False, max_spout_pending=4, commit_group_max=2
    )
    assert told() == [1, 2, 3, 4, 5, 6]
    coords = [key for key in frames if key[3] is FrameKind.COORD]
    assert len(coords) == 6 * (2 * 2 + 2 * 2), "six attempts, two tasks to two, twice"
    assert set(frames.values()) == {1}
    assert coordinator.statistics.tuples == 24
    assert store.states["counts0"]["all"] == 24


def test_a_source_error_is_the_error_of_the_run_and_without_a_committer_there_is_none():
    begin(MemoryStore())
    error = SourceError("the broker forgot the topic")
    Told.raising["commit", 1] = [error]
    assert notifier(Committer()).notify((TransactionAttempt(1, 1),)).error is error
    assert notifier(Committer()).notify(()).error is None
    assert notifier(None).notify((TransactionAttempt(1, 1),)).error is None


class KeepsNothing(Committer):
    """Does not understand what it is given to keep."""

    def keep(self, batches):
        raise SourceError(f"what are {batches}?")


def test_what_is_to_be_kept_is_said_before_anything_is_told_and_an_error_of_that_ends_the_run():
    begin(MemoryStore())
    keeps = notifier(KeepsNothing(), quarantined_txids=lambda: {2}, quarantined_batches=lambda: ["batch 2"])
    error = keeps.notify((TransactionAttempt(1, 1),)).error
    assert isinstance(error, SourceError)
    assert "what are ['batch 2']?" in str(error)


@pytest.mark.parametrize(("spout", "expected"), [(Lines(1), 5_000), (ToldLines(1), RECEIPTS_KEPT)])
def test_a_group_that_is_told_again_has_to_be_on_record(spout, expected):
    assert group_max(topology(spout), RunOptions(commit_group_max=5_000)) == expected


def test_what_earlier_runs_may_not_have_told_is_asked_once_and_not_before_it_is_told():
    """The server may lose it between the start of a run and its first turn."""
    held = [(TransactionAttempt(3, 1),)]
    notices = notifier(Committer(), unnotified=held.pop)
    held[:] = [(TransactionAttempt(2, 1),)]
    assert notices.resume() == Resumed((TransactionAttempt(2, 1),))
    assert notices.resume() is None
