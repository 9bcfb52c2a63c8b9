"""Which sessions a run takes, and what it says of others before anything is written."""

from __future__ import annotations

import pytest

from coordinator.run import run
from state.errors import TopologyError
from tests.support.spark.bolts import numbers_topology


def refusal(redis_url, **more):
    with pytest.raises(TopologyError) as caught:
        run(numbers_topology(1), redis_url=redis_url, **more)
    return str(caught.value)


@pytest.mark.redis
def test_a_spark_connect_session_is_refused_before_anything_is_written(redis_backend):
    connect_session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    text = refusal(redis_backend.url, spark=connect_session)

    assert text.startswith("a Spark Connect session cannot run txbatch: it has no RDDs")
    assert redis_backend.client().keys("*") == []


@pytest.mark.redis
def test_what_is_neither_a_session_nor_a_context_is_refused(redis_backend):
    assert "give a SparkSession or a SparkContext" in refusal(redis_backend.url, spark="local")


@pytest.mark.redis
def test_settings_together_with_a_session_are_refused(redis_backend):
    text = refusal(redis_backend.url, spark=object(), conf={"spark.cores.max": "1"})

    assert text == "conf is for a session of our own; set it on the session you pass as spark=…"
