"""What is known of jobs that Spark has accepted: from a status tracker that is scripted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.spark import running_jobs
from coordinator.spark.running_jobs import RunningJobs
from state.errors import EngineError


class Tracker:
    """Spark's status tracker over one job of group "g", of one stage.

    Attributes:
        is_submitted: whether Spark has the job.
        tasks: how many tasks of it are active.
    """

    def __init__(self) -> None:
        self.is_submitted, self.tasks = False, 0

    def getJobIdsForGroup(self, _: str) -> list[int]:  # noqa: N802 - Spark's names
        return [3, 7] if self.is_submitted else [3]

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return [7] if self.is_submitted else []

    def getJobInfo(self, _: int) -> Any:  # noqa: N802
        return SimpleNamespace(stageIds=[1])

    def getStageInfo(self, _: int) -> Any:  # noqa: N802
        return SimpleNamespace(numActiveTasks=self.tasks, numCompletedTasks=0, numFailedTasks=0)


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


@pytest.fixture
def jobs(tracker):
    context: Any = SimpleNamespace(statusTracker=lambda: tracker)
    watch: Any = SimpleNamespace(call=lambda function: function())
    return RunningJobs(context, watch)


def test_a_job_waits_whenever_spark_has_it_and_runs_none_of_its_tasks(jobs, tracker, clock):
    jobs.began("g")
    seen = []
    for now, is_submitted, tasks in [
        (20.0, False, 0),
        (40.0, True, 0),
        (41.0, True, 0),
        (42.0, True, 1),
        (50.0, True, 1),
        (60.0, True, 0),
    ]:
        clock.now, tracker.is_submitted, tracker.tasks = now, is_submitted, tasks
        seen.append(jobs.waits("g"))
    assert seen == [False, True, True, False, False, True]


def test_a_job_is_not_asked_about_before_it_has_had_time_to_end(jobs, tracker, clock):
    tracker.is_submitted = True
    jobs.began("g")
    clock.now = 0.9
    assert not jobs.waits("g")
    clock.now = 1.0
    assert jobs.waits("g")
    jobs.ended("g")
    assert (jobs.waits("g"), "g" in jobs) == (False, False)


def test_a_job_that_waits_for_five_minutes_ends_the_run(jobs, tracker, clock):
    tracker.is_submitted, tracker.tasks = True, 1
    jobs.began("g")
    clock.now = 1000.0
    assert not jobs.waits("g")
    tracker.tasks = 0
    clock.now = 1300.0
    assert jobs.waits("g")
    clock.now = 1300.1
    with pytest.raises(EngineError, match="has run no task of a job for 300 s: the cluster gives the run no executor"):
        jobs.waits("g")
