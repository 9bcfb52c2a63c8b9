"""The benchmarks time the code that runs: what they put in its place is what a run takes."""

from __future__ import annotations

from importlib import import_module

from benchmarks.stopwatch import Stopwatch
from coordinator.engines.spark import spark_engine as engine
from coordinator.server_choice import open_store
from examples import word_count
from state.redis_owner.store import RedisStore

NOWHERE = "redis://127.0.0.1:1"


def test_the_stopwatch_times_the_engine_and_the_store_of_a_run() -> None:
    topology = word_count.topology("*", 1)
    ordinary = engine.SparkEngine

    with Stopwatch().installed():
        assert issubclass(engine.SparkEngine, ordinary)
        assert engine.SparkEngine is not ordinary
        assert type(open_store(NOWHERE, topology)) is not RedisStore
    assert engine.SparkEngine is ordinary
    assert type(open_store(NOWHERE, topology)) is RedisStore
    run_module = import_module("coordinator.run")  # the package's attribute `run` is the function
    assert "SparkEngine" not in vars(run_module), "a run would keep the engine it has imported already"
