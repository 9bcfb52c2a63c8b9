"""Dead letters on the stages Spark runs: exactly once whatever fails, and the same for every size of group."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.watching.statistics.run_statistics import RunStatistics
from state.commits.dead_letters import DEAD_LETTERS_STATE, DeadLetter, letter_of
from state.errors import BadInputError
from tests.support.runs.whole_runs import CrashingStore, RandomFaults, bounds, crash_points, run, run_until_it_ends
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.refusing import Add, AddBlindly, AddReading, expected_letters, refused_by, refusing

BATCHES = [[1, 2, 3, 5], [], [7, 11, 13, 15], [4, 8, 14, 14], [22, 33, 35, 1], [9], [16, 17]]

batches = st.lists(st.lists(st.integers(1, 60), max_size=8), min_size=1, max_size=6)


def letters_in(store: MemoryStore) -> list[DeadLetter]:
    held = store.states.get(DEAD_LETTERS_STATE, {})
    in_order = sorted(held.items(), key=lambda item: (item[1], item[0]))
    return [letter_of(int(score), member) for member, score in in_order]


def check(store: MemoryStore, given_batches: list[list[int]], *, below: bool = False) -> None:
    expected, total = expected_letters(given_batches, below=below)
    assert refused_by(letters_in(store)) == expected
    assert store.states.get("sums", {"sum": 0}) == {"sum": total}


@pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])
@pytest.mark.parametrize("adds", [AddBlindly(), AddReading()], ids=["blind", "reading"])
@pytest.mark.parametrize("below", [False, True], ids=["one level", "two levels"])
@pytest.mark.parametrize("group", [1, 2, 64])
def test_letters_do_not_depend_on_groups_levels_or_jobs(early_commit: bool, adds: Add, below: bool, group: int) -> None:
    store = MemoryStore()
    topology = refusing(BATCHES, adds=adds, below=below)
    run(topology, store, max_spout_pending=8, commit_group_max=group, early_commit=early_commit)
    check(store, BATCHES, below=below)


def test_the_order_of_letters_is_that_of_components_tasks_and_calls() -> None:
    found = []
    for group in (1, 8):
        for seed in (1, 2, 3):
            store = MemoryStore()
            run(refusing(BATCHES), store, seed=seed, max_spout_pending=8, commit_group_max=group)
            found.append(letters_in(store))
    assert all(letters == found[0] for letters in found)
    of_third = [(letter.component_id, letter["number"]) for letter in found[0] if letter.txid == 3]
    assert of_third == [("source", 11), ("check", 15), ("add", 7)]


@settings(max_examples=150, derandomize=True)
@given(batches, bounds, crash_points, st.integers(0, 2**32), st.integers(0, 6))
def test_letters_are_stored_exactly_once_through_lost_frames_and_drivers_that_die(
    given_batches: list[list[int]], given_bounds: Any, crashes: Any, seed: int, budget: int
) -> None:
    below = bool(seed % 2)
    store = CrashingStore(crashes)
    fault = RandomFaults(Random(seed), budget)
    run_until_it_ends(refusing(given_batches, below=below), store, seed=seed, fault=fault, **given_bounds)
    check(store, given_batches, below=below)


@pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])
def test_too_many_letters_of_one_transaction_end_the_run_after_lower_ones_are_committed(early_commit: bool) -> None:
    given_batches = [[3, 1], [5, 2], [3, 5, 7, 11, 1], [3]]  # the third has four letters, of four components
    store = MemoryStore()
    with pytest.raises(BadInputError) as caught:
        run(
            refusing(given_batches, per_transaction=3),
            store,
            max_spout_pending=8,
            commit_group_max=8,
            early_commit=early_commit,
        )
    assert str(caught.value).startswith(
        "one transaction has 4 dead letters or more, and the limit is 3; if so much of the input is bad, fix the "
        "input or the bolt, else raise the limit with builder.set_dead_letters(per_transaction=6) (component 'commit'"
    )
    check(store, given_batches[:2])


@pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])
def test_a_batch_with_too_many_letters_is_poison_and_may_be_quarantined(early_commit: bool) -> None:
    given_batches = [[3, 1], [3, 5, 7, 11, 1], [5, 2]]
    store = MemoryStore()
    topology = refusing(given_batches, per_transaction=3)
    done = run(
        topology, store, max_spout_pending=8, max_attempts=2, early_commit=early_commit, on_poison="quarantine"
    ).statistics
    assert done.quarantined == [2]
    check(store, [given_batches[0], [], given_batches[2]])


def test_statistics_count_letters_once_in_the_run_and_at_each_component() -> None:
    store = MemoryStore()
    done: RunStatistics = run(refusing(BATCHES), store, max_spout_pending=4).statistics
    expected, _ = expected_letters(BATCHES)
    assert done.dead_letters == len(expected) == done.to_dict("refusing")["dead_letters"]
    counted = {name: component.work.dead_letters for name, component in done.components.items()}
    assert counted == {name: sum(name == where for _, where, _ in expected) for name in counted}


def test_a_run_that_refuses_nothing_sends_what_it_always_did() -> None:
    store = MemoryStore()
    done = run(refusing([[1, 2], [4]]), store).statistics
    assert "dead_letters" not in done.to_dict("refusing")
    assert store.states == {"sums": {"sum": 7}}
