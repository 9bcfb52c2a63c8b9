"""Which sessions a run takes, and what it says of others before anything is written."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from pyspark import SparkConf

from coordinator.engines.spark import session
from coordinator.engines.spark.session import open_context, slots_of
from coordinator.run import run
from coordinator.run_plain import run_plain
from state.errors import TopologyError
from tests.support.spark.bolts import numbers_topology
from tests.support.topologies.plain_components import Sink, fed_builder


def idle_topology():
    builder = fed_builder()
    builder.set_bolt("sink", Sink()).shuffle_grouping("spout")
    return builder.build()


CONNECT_SESSION = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


@pytest.mark.parametrize("where", [{"spark": CONNECT_SESSION}, {"master": "sc://nowhere"}], ids=["session", "address"])
def test_spark_connect_is_refused_for_plain_topologies(where):
    with pytest.raises(TopologyError, match=r"^on Spark Connect, transactional topologies run by run\(\)"):
        run_plain(idle_topology(), **where)


@pytest.mark.redis
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"spark": "local"}, "give a SparkSession or a SparkContext"),
        (
            {"spark": object(), "conf": {"spark.cores.max": "1"}},
            "^conf is for a session that txbatch starts; set it on the session that you pass as spark=…$",
        ),
    ],
)
def test_what_is_no_session_and_settings_for_somebody_elses_are_refused(redis_backend, given, message):
    with pytest.raises(TopologyError, match=message):
        run(numbers_topology(1), redis_url=redis_backend.url, **given)
    with pytest.raises(TopologyError, match=message):
        run_plain(idle_topology(), **given)


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
