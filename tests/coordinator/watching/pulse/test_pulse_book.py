"""The figures of a run, from what is observed of it: a scripted run, watched by a book."""

from __future__ import annotations

from typing import Any

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinator.watching.failure_cause import CrashKind, FailureCause
from coordinator.watching.pulse.pulse_observer import PulseBook, sample_of, spread_of
from coordinator.watching.pulse.stories import FAILED_STORIES_MAX, Story
from coordinator.watching.run_observer import Observation, RunCondition, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import ReplayLimitError, UserCodeError
from state.records.run_pulse import RunFigures, RunState, Spread
from state.records.transaction_story import STORY_ATTEMPTS_MAX, ComponentStory, TransactionStory, story_of
from tests.support.runs.answers import LATER, USER, committing_fails_at, failing_at, once
from tests.support.runs.scripted import Run

EPOCH_S = 1000.0


def told_by(closed: Story) -> TransactionStory:
    """The story as a reader will have it."""
    story = story_of(closed.to_json())
    assert story is not None
    return story


class Watched:
    """Lets the books observe a scripted run, and looks at it every turn."""

    def __init__(self, transactions: int, **options: Any) -> None:
        self.book = PulseBook(EPOCH_S)
        self.seen: list[RunFigures] = []
        self.now_s = lambda: 0.0  # what is told while the run is made
        self.run = Run(transactions, observers=[self], **options)
        self.now_s = lambda: self.run.engine.now_s

    def __call__(self, observation: Observation) -> None:
        self.book.note(observation, self.now_s())
        if isinstance(observation, TurnEnded):
            self.seen.append(self.figures())

    def failing(self, txid: int, **how: Any) -> Watched:
        self.run.engine.on_wave = failing_at(self.run, txid, **how)
        return self

    def figures(self) -> RunFigures:
        coordinator = self.run.coordinator
        return self.book.figures(coordinator.statistics, coordinator.condition(), self.now_s())


def test_a_run_is_counted_from_its_start_to_its_end() -> None:
    watch = Watched(5, max_spout_pending=4)
    watch.run()
    figures = watch.figures()
    assert watch.seen[0].state is RunState.RUNNING
    assert {"waiting": 2, "processing": 0, "processed": 2, "committing": 0} in [seen.window for seen in watch.seen]
    assert (figures.committed, figures.last_txid, figures.commit_groups, figures.waves) == (5, 5, 3, 3)
    assert (figures.latency_s.count, figures.commit_s.count) == (5, 3)
    assert (figures.failures, figures.last_failure, figures.error) == ({}, None, "")
    assert (figures.components["lines"].tuples_out, figures.components["count"].tuples_in) == (50, 50)
    assert sample_of(figures).last_txid == 5


def test_an_attempt_that_fails_is_counted_by_its_kind_and_the_later_ones_as_void() -> None:
    watch = Watched(4, max_spout_pending=8).failing(2)
    watch.run()
    figures = watch.figures()
    assert figures.failures == {"asked for": 1, "lower failed": figures.failed_attempts - 1}
    assert figures.last_failure is not None
    assert (figures.last_failure.txid, figures.last_failure.kind) == (2, "asked for")


def test_every_kind_of_failure_has_a_cause() -> None:
    causes = {*map(FailureCause.of, (*FailureKind, *CrashKind))}
    assert causes == {*FailureCause} - {FailureCause.LOWER_FAILED}


def test_a_run_that_fails_tells_the_first_line_of_its_error() -> None:
    book = PulseBook(EPOCH_S)
    book.ended(RunState.FAILED, str(ReplayLimitError(7, 3, "lost\nand more")))
    figures = book.figures(RunStatistics(), RunCondition(), 1.0)
    assert figures.state is RunState.FAILED
    assert "7" in figures.error
    assert "\n" not in figures.error


@pytest.mark.parametrize(
    ("is_waiting", "is_draining", "state"),
    [(False, False, RunState.STARTING), (False, True, RunState.DRAINING), (True, True, RunState.WAITING)],
)
def test_what_a_run_is_doing(is_waiting: bool, is_draining: bool, state: RunState) -> None:
    condition = RunCondition(is_waiting=is_waiting, is_draining=is_draining)
    figures = PulseBook(EPOCH_S).figures(RunStatistics(), condition, 2.5)
    assert (figures.state, figures.at) == (state, 1002.5)


def test_a_run_without_executors_says_so_even_before_its_first_wave() -> None:
    statistics = RunStatistics(cluster="waiting for executors: 0 registered", lacks_executors=True)
    figures = PulseBook(EPOCH_S).figures(statistics, RunCondition(is_draining=True), 2.5)
    assert (figures.state, figures.cluster) == (RunState.WITHOUT_EXECUTORS, statistics.cluster)


def test_rates_are_those_of_the_last_ten_seconds() -> None:
    book, statistics = PulseBook(EPOCH_S), RunStatistics(first_wave_s=0.0)
    for second in range(1, 41):
        statistics.committed += 100 if second <= 20 else 1
        statistics.tuples = 10 * statistics.committed
        figures = book.figures(statistics, RunCondition(), float(second))
        if second == 15:
            assert (figures.transactions_per_s, figures.tuples_per_s) == (100.0, 1000.0)
    assert (figures.transactions_per_s, figures.tuples_per_s) == (1.0, 10.0)


def test_the_lag_is_the_time_since_the_last_commit_while_something_is_in_flight() -> None:
    book, statistics = PulseBook(EPOCH_S), RunStatistics(first_wave_s=1.0, last_result_s=4.0)
    assert book.figures(statistics, RunCondition({"processing": 1}), 6.0).lag_s == 2.0
    assert book.figures(statistics, RunCondition({"processing": 0}), 6.0).lag_s == 0.0


def test_a_spread_of_durations() -> None:
    assert spread_of([]) == Spread()
    assert spread_of(reversed([n / 100 for n in range(101)])) == Spread(101, 0.5, 0.95, 0.99, 1.0)


def test_what_is_kept_of_attempts_is_bounded_by_those_in_flight() -> None:
    watch = Watched(50, max_spout_pending=4)
    watch.run.engine.on_group = committing_fails_at(watch.run, 9)
    watch.run()
    assert watch.book.stories._open == {}
    assert watch.run.coordinator._waves == {}


def test_the_failure_that_ends_a_run_is_counted_and_told_last() -> None:
    watch = Watched(3, max_spout_pending=6).failing(2, kind=USER)
    with pytest.raises(UserCodeError):
        watch.run()
    figures = watch.figures()
    assert figures.failures["user code"] == 1
    assert figures.last_failure is not None
    assert (figures.last_failure.txid, figures.last_failure.kind) == (2, "user code")


class TestStories:
    """What a run tells of each transaction."""

    def told(self, watch: Watched) -> dict[int, TransactionStory]:
        watch.run()
        stories = {closed.txid: told_by(closed) for closed in watch.book.stories.take()}
        assert watch.book.stories._open == {}
        return stories

    def test_every_committed_transaction_is_told_with_its_group_and_counts(self) -> None:
        told = self.told(Watched(5, max_spout_pending=4))
        assert list(told) == [1, 2, 3, 4, 5]
        story = told[2]
        assert (story.first_txid, story.last_txid, story.attempt_count, story.tuples) == (1, 2, 1, 10)
        assert [(each.wave, each.failed) for each in story.attempts] == [(1, "")]
        assert story.components == {
            "count": ComponentStory({"lines/default": 10}, {}, 0.0),
            "lines": ComponentStory({}, {"default": 10}, 0.0),
        }
        assert story.cut_at == EPOCH_S <= story.processed_at <= story.committed_at

    def test_attempts_that_failed_are_told_with_their_reason_and_later_ones_as_void(self) -> None:
        watch = Watched(3, max_spout_pending=6).failing(2, text="not yet")
        told = self.told(watch)
        assert told[1].attempt_count == 1
        assert [(each.failed, each.reason) for each in told[2].attempts] == [
            ("asked for", "count[0]: not yet"),
            ("", ""),
        ]
        above = [(each.failed, each.reason) for each in told[3].attempts]
        assert above == [("lower failed", "txid 2 failed"), ("", "")]
        assert told[2].attempts[0].ended_at > 0

    def test_a_wave_that_crashed_is_told_by_its_cause(self) -> None:
        watch = Watched(2, max_spout_pending=4)
        run = watch.run
        run.engine.on_wave = once(run.engine.crashed, run.engine.processed)
        told = self.told(watch)
        assert [each.failed for each in told[1].attempts] == ["worker lost", ""]
        assert told[1].attempts[0].reason == "wave 1 crashed; one of txids 1 to 2, not known which: a worker died"

    def test_of_a_crashed_wave_every_transaction_may_be_the_culprit_and_those_above_are_void(self) -> None:
        watch = Watched(6, max_spout_pending=6)
        run = watch.run
        run.engine.on_wave = once(run.engine.processed, once(run.engine.crashed, run.engine.processed))
        told = self.told(watch)
        (crash,) = {story.attempts[0].reason for story in told.values() if story.attempts[0].failed}
        first, last = watch.book._last_failure.txid, watch.book._last_failure.last_txid  # type: ignore[union-attr]
        assert 1 < first < last
        assert crash == f"wave 2 crashed; one of txids {first} to {last}, not known which: a worker died"
        assert [told[txid].attempts[0].failed for txid in range(first, last + 1)] == ["worker lost"] * (
            last + 1 - first
        )

    @pytest.mark.parametrize("kind", [LATER, USER], ids=["asked for", "user code"])
    def test_the_transaction_that_stops_a_run_is_told_with_its_attempts(self, kind: FailureKind) -> None:
        watch = Watched(4, max_spout_pending=8, max_attempts=3).failing(
            3, times=3, kind=kind, text="its lookup is away"
        )
        with pytest.raises((ReplayLimitError, UserCodeError)):
            watch.run()
        assert [closed.txid for closed in watch.book.stories.take()] == [1, 2]
        third, fourth = watch.book.stories.take_failed()
        story = told_by(third)
        attempts = 1 if kind is USER else 3
        assert (third.txid, story.attempt_count, story.committed_at, story.components) == (3, attempts, 0.0, {})
        assert {each.reason for each in story.attempts} == {"count[0]: its lookup is away"}
        assert len(story.attempts) == attempts
        assert {each.reason for each in told_by(fourth).attempts} == {"txid 3 failed"}

    def test_few_transactions_without_a_commit_are_told(self) -> None:
        watch = Watched(300, max_spout_pending=600).failing(2, kind=USER)
        with pytest.raises(UserCodeError):
            watch.run()
        assert [told.txid for told in watch.book.stories.take_failed()] == [*range(2, 2 + FAILED_STORIES_MAX)]
        assert [told.txid for told in watch.book.stories.take_failed(3)] == [2, 3, 4]

    def test_a_story_survives_its_text_and_what_is_none_is_not_read(self) -> None:
        story = self.told(Watched(1))[1]
        assert story_of(story.to_json()) == story
        assert [story_of(text) for text in ("", "nonsense", "3", '{"attempts": [{"x": 1}]}')] == [None] * 4

    def test_of_many_attempts_the_last_ones_are_told(self) -> None:
        watch = Watched(1, max_attempts=20).failing(1, times=14)
        story = self.told(watch)[1]
        assert (story.attempt_count, len(story.attempts)) == (15, STORY_ATTEMPTS_MAX)
        assert [each.failed for each in story.attempts[-2:]] == ["asked for", ""]
