"""Which sessions a run takes, and what it says of others before anything is written."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from pyspark import SparkConf

from coordinated_bolt.components.spouts import BaseSpout
from coordinator.engines.spark import session
from coordinator.engines.spark.session import open_context, slots_of
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.run import run
from coordinator.run_plain import run_plain
from state.errors import TopologyError
from tests.support.spark.bolts import numbers_topology
from tests.support.spark.plain_jobs import Seen


class Idle(BaseSpout):
    output_fields = ("value",)

    def next_tuple(self):
        raise AssertionError("nothing runs")


def idle_topology():
    builder = TopologyBuilder("idle")
    builder.set_spout("idle", Idle())
    builder.set_bolt("seen", Seen("nowhere")).shuffle_grouping("idle")
    return builder.build()


def refusal(redis_url, **more):
    with pytest.raises(TopologyError) as caught:
        run(numbers_topology(1), redis_url=redis_url, **more)
    return str(caught.value)


CONNECT_SESSION = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


@pytest.mark.parametrize("where", [{"spark": CONNECT_SESSION}, {"master": "sc://nowhere"}], ids=["session", "address"])
def test_spark_connect_is_refused_for_plain_topologies(where):
    with pytest.raises(TopologyError, match=r"^on Spark Connect, transactional topologies run by run\(\)"):
        run_plain(idle_topology(), **where)


@pytest.mark.redis
def test_what_is_neither_a_session_nor_a_context_is_refused(redis_backend):
    assert "give a SparkSession or a SparkContext" in refusal(redis_backend.url, spark="local")


@pytest.mark.redis
def test_settings_together_with_a_session_are_refused(redis_backend):
    text = refusal(redis_backend.url, spark=object(), conf={"spark.cores.max": "1"})

    assert text == "conf is for a session that txbatch starts; set it on the session that you pass as spark=…"


def context_with(master, parallelism=2, **settings):
    """A context as `slots_of` asks it."""
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(f"spark.{name.replace('_', '.')}", value)
    return SimpleNamespace(master=master, defaultParallelism=parallelism, getConf=lambda: conf)


def test_a_local_master_has_as_many_slots_as_cores():
    assert slots_of(context_with("local[6]", 6, cores_max="99")) == 6
    assert slots_of(context_with("local", 1)) == 1


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({}, None),
        ({"executor_cores": "4"}, None),
        ({"cores_max": "12", "executor_cores": "4"}, 12),
        ({"cores_max": "12", "task_cpus": "5"}, 2),
        ({"executor_instances": "3", "executor_cores": "4"}, 12),
        ({"default_parallelism": "40", "cores_max": "12"}, 40),
    ],
    ids=["nothing", "cores of an executor", "cores", "cpus of a task", "executors", "parallelism"],
)
def test_a_cluster_has_the_slots_it_was_asked_for_whatever_has_registered(settings, slots):
    parallelism = int(settings.get("default_parallelism", 2))  # else it counts the executors that are there
    assert slots_of(context_with("spark://master:7077", parallelism, **settings)) == slots


@pytest.mark.parametrize("master", ["local[2]", "yarn"])
def test_the_python_setting_is_handed_on_as_the_variable_that_pyspark_reads(monkeypatch, master):
    """Else `--conf spark.pyspark.python=…` would be accepted and mean nothing: only spark-submit reads it."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/another/python3")
    monkeypatch.setattr(session, "start_context", lambda conf, *, is_local: os.environ["PYSPARK_PYTHON"])
    assert str(open_context("t", master, {"spark.pyspark.python": "/usr/bin/python3.11"})) == "/usr/bin/python3.11"
