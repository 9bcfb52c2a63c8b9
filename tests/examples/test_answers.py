"""Each example leaves what a plain loop makes of the same data, however its input is cut, shared and committed."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.task_counts import with_tasks
from coordinator import LocalCluster, RunOptions
from examples import clickstream, dedupe, ledger, top_k
from tests.support.examples.answers import ANSWERS, books

JOBS: dict[str, tuple[Any, dict[str, int], str]] = {
    "clickstream": (clickstream, {"events": 700, "days": 3}, "*.json.gz"),
    "dedupe": (dedupe, {"payments": 400}, "*.jsonl"),
    "ledger": (ledger, {"transfers": 500, "accounts": 9}, "*.jsonl"),
    "top_k": (top_k, {"orders": 1000}, "*.csv"),
}
"""Example -> its module, how much data it makes, and their pattern."""


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize(("lines", "tasks", "window", "group"), [(11, 1, 1, 1), (60, 3, 8, 3), (5000, 1, 2, 64)])
def test_the_answers_are_those_of_a_plain_loop(tmp_path, name, *, lines, tasks, window, group) -> None:
    module, amount, pattern = JOBS[name]
    module.make_data(tmp_path, **amount)
    answer = {state: held for state, held in ANSWERS[name](tmp_path).items() if ":" not in state}
    assert all(answer.values())
    with LocalCluster(seed=lines) as cluster:
        options = RunOptions(max_spout_pending=window, commit_group_max=group)
        run = cluster.submit(with_tasks(module.topology(f"{tmp_path}/{pattern}", lines), tasks), options=options)
        run.run_until_idle()
        assert run.is_done
        assert {state: run.state(state) for state in answer} == answer
        if name == "ledger":
            assert refused(run.dead_letters()) == books(tmp_path).refused


def refused(letters: Any) -> dict[str, list[int]]:
    """Component -> the numbers of the transfers it has refused."""
    found: dict[str, list[int]] = {"transfers": [], "check": [], "balances": []}
    for letter in letters:
        numbers = found[letter.component_id]
        numbers.append(letter["number"] if "number" in letter.fields else len(numbers))
    return {component: sorted(numbers) for component, numbers in found.items()}
