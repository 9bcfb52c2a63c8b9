"""Facts of a sound server and a sound Spark, to be changed one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator.engines.spark.cluster.spark_facts import ExecutorFacts, SparkFacts
from state.redis_server.measured_facts import LibraryState, ServerFacts

INFO = {
    "redis_version": "7.0.15",
    "role": "master",
    "redis_mode": "standalone",
    "maxmemory_policy": "noeviction",
    "maxmemory": "0",
    "used_memory": str(10 * 2**20),
    "total_system_memory": str(1000 * 2**20),
    "aof_enabled": "1",
    "aof_last_write_status": "ok",
    "rdb_last_bgsave_status": "ok",
    "loading": "0",
    "connected_slaves": "1",
    "connected_clients": "3",
    "evicted_keys": "0",
}
SETTINGS = {
    "appendfsync": "everysec",
    "maxclients": "100",
    "timeout": "0",
    "save": "",
    "no-appendfsync-on-rewrite": "no",
}
SERVER = ServerFacts(
    server="there",
    info=INFO,
    settings=SETTINGS,
    library=LibraryState.LOADED,
    may_load=True,
    lacking=(),
    lacking_on_keys=(),
    keys="{words}:*",
    grant="txbatch acl words",
    round_trips_ms=(0.2, 0.4, 9.0),
    clock_ahead_s=0.01,
)
EXECUTOR = ExecutorFacts("one", "/usr/bin/python3", "3.11.7", "4.1.0", {}, {"/scratch": 2**40})
SPARK = SparkFacts(
    master="spark://one:7077",
    is_local=False,
    version="4.1.0",
    java_version="17.0.15",
    driver_python="3.11.2",
    modules=("pyspark", "msgpack"),
    exposures=(),
    executors=(EXECUTOR,),
)


def server(
    *, info: dict[str, str] | None = None, settings: dict[str, str] | None = None, **changes: Any
) -> ServerFacts:
    """A sound server with these changes; of `settings`, None in a value's place stands for one that is not told."""
    return replace(SERVER, info=INFO | (info or {}), settings=SETTINGS | (settings or {}), **changes)


def spark(**changes: Any) -> SparkFacts:
    """A sound Spark with these changes."""
    return replace(SPARK, **changes)
