"""A job in the short form leaves what its classes leave: every state, every dead letter, from fewer lines."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.task_counts import with_tasks
from coordinator import Topology, prove
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from examples import clickstream, dedupe, ledger, short_forms, top_k, word_count

ROOT = Path(__file__).resolve().parents[2]


def text(folder: Path, count: int) -> None:
    lines = (f"to be or not {number % 7} to be\n" for number in range(count))
    (folder / "text.txt").write_text("".join(lines))


JOBS: dict[str, tuple[Any, Callable[..., Any], str, int]] = {
    "word_count": (word_count, text, "*.txt", 300),
    "clickstream": (clickstream, clickstream.make_data, "*.json.gz", 600),
    "top_k": (top_k, top_k.make_data, "*.csv", 700),
    "dedupe": (dedupe, dedupe.make_data, "*.jsonl", 300),
    "ledger": (ledger, ledger.make_data, "*.jsonl", 400),
}
"""Job -> its example, what makes its data, their pattern, and how much of it."""


def left_by(topology: Topology, tasks: int, group: int) -> tuple[dict[str, Any], list[str]]:
    """All states, and all dead letters, whichever bolt has refused them."""
    with LocalCluster(seed=tasks) as cluster:
        options = RunOptions(max_spout_pending=8, commit_group_max=group)
        run = cluster.submit(with_tasks(topology, tasks), options=options)
        run.run_until_idle()
        assert run.is_done
        letters = sorted(f"{letter.reason}: {letter.values}" for letter in run.dead_letters())
        return dict(run.snapshot().states), letters


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize(("tasks", "group"), [(1, 64), (3, 5)])
def test_both_forms_of_a_job_leave_the_same(name: str, tasks: int, group: int, tmp_path: Path) -> None:
    module, make_data, pattern, count = JOBS[name]
    make_data(tmp_path, count)
    short, long = (form(f"{tmp_path}/{pattern}", 50) for form in (getattr(short_forms, name), module.topology))
    found = left_by(short, tasks, group)
    assert found == left_by(long, tasks, group)
    assert all(found[0].values())
    assert bool(found[1]) is (name == "ledger")


@pytest.mark.often("ledger")
@pytest.mark.parametrize("name", JOBS)
def test_the_short_form_is_proved_and_the_shorter_one(name: str, tmp_path: Path) -> None:
    module, make_data, pattern, count = JOBS[name]
    make_data(tmp_path, count // 4)
    proof = prove(getattr(short_forms, name)(f"{tmp_path}/{pattern}", 25), seeds=5)
    assert (proof.holds, proof.mistakes) == (True, ()), proof
    short = inspect.getsource(getattr(short_forms, name)).count("\n")
    tree = ast.parse(inspect.getsource(module))
    made = [node for node in tree.body if isinstance(node, ast.ClassDef) or getattr(node, "name", "") == "topology"]
    kept = {"clickstream": "CountVisits", "ledger": "KeepBalances"}.get(name)
    lengths = [(node.end_lineno or 0) - node.lineno + 1 for node in made if getattr(node, "name", "") != kept]
    long = sum(lengths)
    assert short <= long / 2, (short, long)
