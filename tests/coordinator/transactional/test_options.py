"""The bounds of a run are checked before anything starts; statistics add up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.transactional.options import RunOptions
from state import TopologyError, TransactionAttempt
from tests.support.case_names import shown
from tests.support.watching.counted import Counted

BOUNDS = ["max_spout_pending", "commit_group_max", "commit_operations_max", "max_attempts", "last_txid", "slots"]
MAY_BE_NONE = ("max_spout_pending", "last_txid", "slots")


WRONG_BOUNDS = [(name, value) for name in BOUNDS for value in (0, -1, True, 1.0, "1")]


@pytest.mark.case(id="P-12")
@pytest.mark.parametrize(
    ("name", "value"), [*WRONG_BOUNDS, *((name, None) for name in BOUNDS if name not in MAY_BE_NONE)]
)
def test_a_bound_that_is_not_an_integer_from_1_is_refused(name, value):
    with pytest.raises(TopologyError, match=f"option {name} is {value!r}; give an integer of at least 1"):
        RunOptions(**{name: value})


def test_a_window_that_is_not_given_is_the_engines_whatever_else_is_given():
    given = RunOptions(commit_group_max=2)
    assert (given.or_window(1).max_spout_pending, given.or_window(1).commit_group_max) == (1, 2)
    assert RunOptions(max_spout_pending=4).or_window(1).max_spout_pending == 4


A_NUMBER = "give a number of seconds, 0 or more"
SECONDS = "give a number of seconds above 0"
WORDS = "give one of these words: halt: the run ends"
ADOPT = "give True, or .* of these.*skip: .*again: "
NONE_OR_MORE = [-1, float("nan"), float("inf"), "1", True]


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        *(("wave_target_s", value, SECONDS) for value in (0, -1, True, "0.3", float("inf"), float("nan"))),
        *(("on_poison", value, WORDS) for value in ("stop", "", None, True)),
        *(("retry_backoff_s", value, A_NUMBER) for value in NONE_OR_MORE),
        *(("retry_backoff_max_s", value, A_NUMBER) for value in NONE_OR_MORE),
        *(("max_bad_fraction", value, "give a number from 0 to 1") for value in (-0.1, 1.1, True, "1%")),
        *(("adopt", value, ADOPT) for value in ("", "everything", "skip,", "skip;again", 1, None)),
        ("commit_operations_max", 500_001, "give at most 500000"),
        ("durability", "disk", "give one of memory, fsync, replica"),
        ("durability_replicas", 0, "give an integer of at least 1"),
    ],
    ids=shown,
)
def test_an_option_that_is_none_of_what_it_may_be_is_refused_with_what_it_may_be(name, value, remedy):
    with pytest.raises(TopologyError, match=f"option {name} is {value!r}; {remedy}"):
        RunOptions(**{name: value})


def test_the_switches_are_no_bounds():
    assert RunOptions(adopt=True, early_commit=False).early_commit is False


def test_every_bound_may_be_one():
    ones: dict[str, Any] = dict.fromkeys(BOUNDS, 1)
    least = RunOptions(**ones)
    assert [getattr(least, name) for name in BOUNDS] == [1] * len(BOUNDS)


def test_seconds_run_from_the_first_issue_to_the_last_commit():
    counter = Counted()
    statistics = counter.statistics
    assert statistics.seconds == 0.0
    counter.starts(10.0, 7, 8, 9)
    assert statistics.seconds == 0.0
    counter.starts(11.0, 10, 11)
    counter.ends(12.0, 7, tuple_count=9, counters={"lines": 9})
    report = TaskReport(2, "count")
    report.results.append(AttemptResult(TransactionAttempt(7, 1), counters=Counter(lines=1)))
    report.results.append(AttemptResult(TransactionAttempt(8, 1), counters=Counter(lines=100)))
    counter.commits(15.5, 7, operation_count=3, reports=(report,))
    del statistics.components["count"]
    assert statistics.seconds == 5.5
    of_attempts = {"committed": 1, "last_txid": 7, "attempts": 5, "failed_attempts": 0, "waves": 2, "commit_groups": 1}
    of_content = {"tuples": 9, "changes": 3, "counters": {"lines": 10}}
    assert statistics.to_dict("job") == {"topology": "job", "seconds": 5.5} | of_attempts | of_content


def test_pauses_double_from_the_second_failure_on_up_to_the_longest():
    options = RunOptions(retry_backoff_s=0.5, retry_backoff_max_s=3)
    assert [options.pause_s(failures) for failures in (0, 1, 2, 3, 4, 5, 6, 10_000)] == [0, 0, 0.5, 1, 2, 3, 3, 3]


def test_an_engine_may_want_a_backoff_unless_the_user_says_otherwise():
    assert RunOptions().or_backoff(0.2).pause_s(2) == 0.2
    assert RunOptions(retry_backoff_s=0).or_backoff(0.2).pause_s(2) == 0
    assert RunOptions().pause_s(2) == 0, "an engine whose time stands still"
