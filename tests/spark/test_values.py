"""Values on real Spark: what tests/coordinator/testing/cluster/test_values.py says of the local cluster."""

from __future__ import annotations

import pytest

from state.errors import UserCodeError
from tests.support.spark.bolts import notes
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.spark.plain_jobs import run
from tests.support.topologies import value_jobs
from tests.support.topologies.value_jobs import MISUSES, PLAIN_MISUSES

pytestmark = [pytest.mark.spark, pytest.mark.redis]


def texts(cluster, key):
    return [text.decode() for text in cluster.client.lrange(key, 0, -1)]


@EITHER_ENGINE
def test_what_changes_after_it_was_emitted_arrives_as_it_was(cluster):
    cluster.run(value_jobs.growing(4))
    assert texts(cluster, "{growing}:seen") == value_jobs.grown(4)


def test_what_changes_after_it_was_emitted_arrives_as_it_was_in_a_plain_topology(contexts, tmp_path):
    run(contexts.open(), value_jobs.plain_growing(tmp_path / "notes", 3))
    assert [noted for _, _, noted in notes(tmp_path / "notes")] == value_jobs.plain_grown(3)


@EITHER_ENGINE
def test_equal_keys_meet_in_one_task_that_reads_and_writes(cluster):
    cluster.run(value_jobs.equal_keys())
    assert cluster.hash("{equal-keys}:counts") == value_jobs.EQUAL_COUNTS


@EITHER_ENGINE
def test_what_stands_for_an_integer_counts_adds_and_travels_as_one(cluster):
    assert cluster.run(value_jobs.numerals()).counters == {"seen": 7}
    assert cluster.hash("{numerals}:counts") == {"a": 7, "b": 5}
    assert (cluster.client.get("{numerals}:total"), cluster.client.smembers("{numerals}:members")) == (b"9", {b"6"})


@EITHER_ENGINE
@pytest.mark.parametrize("wrong", MISUSES)
def test_a_wrong_value_is_the_users_error_with_his_line(cluster, wrong):
    with pytest.raises(UserCodeError) as caught:
        cluster.run(value_jobs.misuse(wrong))
    assert "component 'misuse', task 0" in str(caught.value)
    for part in MISUSES[wrong]:
        assert part in str(caught.value)
    assert cluster.client.hget(f"{{misuse-{wrong}}}:txbatch:control", "committed") == b"1"


@pytest.mark.parametrize("wrong", PLAIN_MISUSES)
def test_a_wrong_value_is_the_users_error_in_a_plain_topology(contexts, wrong):
    with pytest.raises(UserCodeError) as caught:
        run(contexts.open(), value_jobs.plain_misuse(wrong))
    for part in PLAIN_MISUSES[wrong]:
        assert part in str(caught.value)


@EITHER_ENGINE
def test_every_attempt_has_a_configuration_of_its_own(cluster):
    topology, expected = value_jobs.spoiling()
    cluster.run(topology)
    assert texts(cluster, "{spoiling}:found") == [expected] * 6
