"""What is known of jobs that Spark has accepted: from a status tracker that is scripted."""

from __future__ import annotations

from functools import partial
from operator import ne
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.engines.spark.cluster import running_jobs
from coordinator.engines.spark.cluster.running_jobs import FIRST_WAVE, JobState, RunningJobs, overdue_story
from state.errors import EngineError


class Tracker:
    """Spark's status tracker over one job of group "g", of one stage.

    Attributes:
        is_submitted: whether Spark has the job.
        tasks: how many tasks of it are active, as Spark says.
        running: how many the scheduler knows of.
        done: how many have ended.
        said: what failed tasks said, None for one that has not failed.
    """

    def __init__(self) -> None:
        self.is_submitted, self.tasks, self.done, self.running = False, 0, 0, 0
        self.said: list[str | None] = []

    def getJobIdsForGroup(self, _: str) -> list[int]:  # noqa: N802 - Spark's names
        return [3, 7] if self.is_submitted else [3]

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return [7] if self.is_submitted else []

    def getJobInfo(self, _: int) -> Any:  # noqa: N802
        return SimpleNamespace(stageIds=[1])

    def getStageInfo(self, _: int) -> Any:  # noqa: N802
        counts = {"numActiveTasks": self.tasks, "numCompletedTasks": self.done, "numFailedTasks": 0}
        return SimpleNamespace(stageId=1, currentAttemptId=0, **counts)

    def taskSetManagerForAttempt(self, _: int, __: int) -> Any:  # noqa: N802
        tasks = SimpleNamespace(runningTasks=lambda: self.running)
        return SimpleNamespace(isDefined=lambda: self.is_submitted, get=lambda: tasks)

    def taskList(self, *stage: int) -> Any:  # noqa: N802
        assert stage == (1, 0, running_jobs.TASKS_MAX)
        options = [SimpleNamespace(isDefined=partial(ne, said, None), get=lambda said=said: said) for said in self.said]
        tasks = [SimpleNamespace(errorMessage=lambda option=option: option) for option in options]
        return SimpleNamespace(size=lambda: len(tasks), apply=tasks.__getitem__)


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(running_jobs, "time", clock)
    return clock


@pytest.fixture
def tracker():
    return Tracker()


def context_of(tracker: Tracker) -> Any:
    spark = SimpleNamespace(taskScheduler=lambda: tracker, statusStore=lambda: tracker)
    return SimpleNamespace(statusTracker=lambda: tracker, _jsc=SimpleNamespace(sc=lambda: spark))


@pytest.fixture
def jobs(tracker):
    context = context_of(tracker)
    watch: Any = SimpleNamespace(call=lambda function: function())
    return RunningJobs(context, watch, lambda: "0 registered, asked for 2 of 8 GiB")


def see(monkeypatch, looks):
    """Has Spark show the jobs of each group so."""
    monkeypatch.setattr(running_jobs, "_look_at", lambda _, group: looks[group])


def looked(jobs, clock, *times):
    """The waves that wait at the last of these times; the run looks at each."""
    for clock.now in times:
        waiting = jobs.waiting()
    return waiting


def test_a_wave_that_has_begun_waits_if_spark_twice_in_a_row_runs_none_of_its_tasks(jobs, tracker, clock):
    jobs.began("g", 5)
    tracker.done = 1
    seen = []
    for now, is_submitted, tasks in [
        (20.0, False, 0),
        (40.0, True, 0),
        (40.5, True, 0),
        (41.0, True, 0),
        (42.0, True, 1),
        (50.0, True, 0),
        (60.0, True, 1),
    ]:
        clock.now, tracker.is_submitted, tracker.tasks = now, is_submitted, tasks
        seen.append(jobs.waiting())
    assert seen == [(), (), (), (5,), (), (), ()]


HUNG = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/home/ada/jobs/count.py", line 31, in parse
coordinator.engines.waves.alarm.OverdueError: it had not returned
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([None, "ValueError: no", HUNG, None], "it had not returned, in parse (/home/ada/jobs/count.py, line 31)"),
        ([None, "ValueError: no"], None),
        ([], None),
    ],
)
def test_a_job_that_was_cancelled_while_spark_tried_a_task_again_tells_what_the_first_try_hung_at(tracker, said, told):
    tracker.is_submitted, tracker.said = True, said
    story = overdue_story(context_of(tracker), "g")
    assert (story and story.reason) == told


def test_a_spark_that_does_not_answer_after_a_crash_changes_nothing_of_its_story():
    context: Any = SimpleNamespace(_jsc=None)
    assert overdue_story(context, "g") is None


def test_every_wave_that_waits_is_named(jobs, tracker, clock):
    tracker.is_submitted = True
    jobs.began("g", 1)
    jobs.began("h", 2)
    assert looked(jobs, clock, 1.0, 2.0) == (1, 2)
    jobs.ended("g")
    assert (jobs.waiting(), jobs.waves(), "g" in jobs, "h" in jobs) == ((2,), {2}, False, True)


def test_a_job_is_not_asked_about_before_it_has_had_time_to_end(jobs, tracker, clock):
    tracker.is_submitted = True
    jobs.began("g", 1)
    for clock.now in (0.5, 0.9):
        assert jobs.waiting() == ()
    assert looked(jobs, clock, 1.0, 2.0) == (1,)


def test_a_run_that_waits_for_five_minutes_ends(jobs, tracker, clock):
    tracker.is_submitted, tracker.tasks = True, 1
    jobs.began("g", 1)
    clock.now = 1000.0
    assert jobs.waiting() == ()
    tracker.tasks = 0
    assert looked(jobs, clock, 1400.0, 1700.0) == (1,), "a long time without a look is no wait"
    clock.now = 1701.0
    with pytest.raises(
        EngineError,
        match="no task of a job for 301 s, executors: 0 registered, asked for 2 of 8 GiB",
    ):
        jobs.waiting()


def test_a_job_that_waits_for_another_one_of_the_run_has_executors(jobs, tracker, clock, monkeypatch):
    tracker.is_submitted = True
    see(monkeypatch, {"waits": JobState.UNBEGUN, "works": JobState.BUSY})
    jobs.began("waits", 1)
    jobs.began("works", 2)
    assert (looked(jobs, clock, 1.0, 200.0, 400.0, 600.0), jobs.story) == ((1,), "")


def test_a_queued_wave_waits_for_executors_only_once_the_one_before_it_has_ended(jobs, tracker, clock, monkeypatch):
    tracker.is_submitted = True
    see(monkeypatch, {"first": JobState.BUSY, "queued": JobState.UNBEGUN})
    jobs.began("first", 1)
    jobs.began("queued", 2, behind="first")
    for clock.now in (1.0, 20.0, 40.0):
        assert jobs.waiting() == ()
    jobs.ended("first")
    assert jobs.waiting() == ()
    clock.now = 41.0
    assert jobs.waiting() == (2,)


def test_a_task_that_spark_has_not_told_of_yet_runs(jobs, tracker, clock):
    tracker.is_submitted, tracker.running = True, 1
    jobs.began("g", 1)
    for clock.now in (1.0, 2.0, 3.0):
        assert (jobs.waiting(), jobs.story) == ((), "")


def test_a_run_whose_jobs_end_says_of_no_other_that_it_waits(jobs, tracker, clock):
    tracker.is_submitted = True
    jobs.began("g", 1)
    looked(jobs, clock, 1.0, 2.0)
    assert jobs.story
    jobs.began("h", 2)
    jobs.ended("h")
    assert jobs.story == ""


def test_a_job_of_which_no_task_has_run_waits_at_the_first_look_and_says_for_what_at_the_second(jobs, tracker, clock):
    tracker.is_submitted = True
    jobs.began("g", 1)
    clock.now = 1.0
    assert (jobs.waiting(), jobs.story) == ((1,), "")
    clock.now = 2.0
    assert jobs.waiting() == (1,)
    assert jobs.story == "waiting for executors: 0 registered, asked for 2 of 8 GiB"
    tracker.tasks, clock.now = 1, 3.0
    assert (jobs.waiting(), jobs.story) == ((), "")


def test_a_short_message_timeout_is_looked_after_before_it_has_passed(tracker, clock):
    watch: Any = SimpleNamespace(call=lambda function: function())
    jobs = RunningJobs(context_of(tracker), watch, str, message_timeout_s=0.4)
    tracker.is_submitted = True
    jobs.began("g", 1)
    clock.now = 0.1
    assert jobs.waiting() == (1,)


def test_what_was_submitted_before_the_first_job_has_ended_waits_for_it(jobs, tracker, clock):
    jobs.began("first", FIRST_WAVE)
    jobs.began("g", 1)
    tracker.is_submitted, tracker.tasks = True, 1
    clock.now = 1.0
    assert (jobs.waiting(), jobs.story) == ((FIRST_WAVE, 1), "")
    jobs.ended("first")
    assert jobs.waiting() == ()


def test_a_wave_behind_the_first_job_does_not_hide_that_this_one_waits(jobs, clock, monkeypatch):
    see(monkeypatch, {"first": JobState.UNBEGUN, "g": JobState.ABSENT})
    jobs.began("first", FIRST_WAVE)
    jobs.began("g", 1)
    looked(jobs, clock, 1.0, 2.0)
    assert jobs.story.startswith("waiting for executors")
