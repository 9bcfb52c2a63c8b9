"""The benchmarks time the code that runs: what they put in its place is what a run takes."""

from __future__ import annotations

import sys

from benchmarks.stopwatch import Stopwatch
from coordinator.engines.spark import spark_engine as engine


def test_the_stopwatch_times_the_engine_and_the_store_of_a_run() -> None:
    run_module = sys.modules["coordinator.run"]
    before = engine.SparkEngine, run_module.RedisStore

    with Stopwatch().installed():
        assert issubclass(engine.SparkEngine, before[0])
        assert engine.SparkEngine is not before[0]
        assert run_module.RedisStore is not before[1]
    assert (engine.SparkEngine, run_module.RedisStore) == before
    assert "SparkEngine" not in vars(run_module), "a run would keep the engine it has imported already"
