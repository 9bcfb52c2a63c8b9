"""Values on the local cluster; tests/spark/test_values.py says the same of Spark."""

from __future__ import annotations

import json

import pytest

from coordinator import RunOptions
from state.errors import UserCodeError
from tests.support.topologies import value_jobs
from tests.support.topologies.value_jobs import MISUSES, PLAIN_MISUSES


def test_what_changes_after_it_was_emitted_arrives_as_it_was(cluster):
    run = cluster.submit(value_jobs.growing(4))
    run.run_until_idle()
    assert run.state("seen") == value_jobs.grown(4)
    assert [repr(values) for _, values in run.emitted("grow")] == value_jobs.grown(4)


def test_what_changes_after_it_was_emitted_arrives_as_it_was_in_a_plain_topology(cluster, tmp_path):
    run = cluster.submit(value_jobs.plain_growing(tmp_path / "notes", 3))
    run.run_until_idle()
    noted = [json.loads(line)[2] for line in (tmp_path / "notes").read_text().splitlines()]
    assert noted == value_jobs.plain_grown(3)
    assert [values for _, values in run.emitted("spout")] == [[list(range(n + 1))] for n in range(3)]


def test_equal_keys_meet_in_one_task_that_reads_and_writes(cluster):
    run = cluster.submit(value_jobs.equal_keys(), options=RunOptions(max_spout_pending=4))
    run.run_until_idle()
    assert run.state("counts") == value_jobs.EQUAL_COUNTS


def test_what_stands_for_an_integer_counts_adds_and_travels_as_one(cluster):
    run = cluster.submit(value_jobs.numerals())
    statistics = run.run_until_idle()
    assert statistics.counters == {"seen": 7}
    assert run.state("counts") == {"a": 7, "b": 5}
    assert (run.state("by_number"), run.state("floats")) == ({2: 1}, {"a": 2.0})
    assert (run.state("total"), run.state("members")) == (9, {6})


@pytest.mark.parametrize("wrong", MISUSES)
def test_a_wrong_value_is_the_users_error_with_his_line_and_ends_the_run_for_good(cluster, wrong):
    run = cluster.submit(value_jobs.misuse(wrong))
    with pytest.raises(UserCodeError) as caught:
        run.run_until_idle()
    assert "component 'misuse', task 0" in str(caught.value)
    for part in MISUSES[wrong]:
        assert part in str(caught.value)
    with pytest.raises(UserCodeError):
        run.run_until_idle()


@pytest.mark.parametrize("wrong", PLAIN_MISUSES)
def test_a_wrong_value_is_the_users_error_in_a_plain_topology(cluster, wrong):
    run = cluster.submit(value_jobs.plain_misuse(wrong))
    with pytest.raises(UserCodeError) as caught:
        run.run_until_idle()
    for part in PLAIN_MISUSES[wrong]:
        assert part in str(caught.value)


def test_every_attempt_has_a_configuration_of_its_own_in_every_run(cluster):
    topology, expected = value_jobs.spoiling()
    for _ in range(2):
        run = cluster.submit(topology)
        run.run_until_idle()
        assert run.state("found") == [expected] * 6
        cluster.client.flushall()


def test_what_breaks_inside_ends_the_run_for_good(cluster, monkeypatch):
    run = cluster.submit(value_jobs.growing(1))
    monkeypatch.setattr(run._engine, "step", lambda: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            run.run_until_idle()
    assert not run.is_done
