"""Provides the Spark context of a run: the user's, left as it is, or our own with good settings."""

from __future__ import annotations

import os
import re
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import SparkConf, SparkContext

from coordinator.engines.spark.import_path import import_folders, refuse_shadowed
from coordinator.engines.spark.java.gateway import (
    abandon_context,
    output_of,
    quieten_java,
    running_gateway,
    start_context,
    stop_context,
)
from coordinator.engines.spark.java.java_watch import GatewayProcess, JavaWatch
from coordinator.engines.spark.privacy import keep_scratch_private, warn_of_open_cluster
from coordinator.engines.spark.spark_versions import check_pyspark, check_spark
from state.errors import EngineError, TopologyError
from state.troubles import Trouble

STANDALONE = re.compile(r"spark://(?P<addresses>.+)")
LISTENING = re.compile(r"(spark|sc)://(?P<addresses>[^/;]+).*")
CONNECT_TIMEOUT_S = 5.0
OUT_OF_FILES = re.compile(r"Error loading java\.security|Too many open files|error=24\b")
"""Java's messages when it cannot open any more of its own files; the first one does not mention the cause."""
TOO_FEW_FILES = 256
"""With so few Spark does not start (measured: with 320 it does), and its message depends on the file it cannot open."""
ENOUGH_FILES = 4096
CONNECT_SCHEME = "sc://"
"""The beginning of the address of every Spark Connect server."""
CONNECT_MODULE = "pyspark.sql.connect."


def check_reachable(master: str, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
    """Refuses a Spark master that does not listen, if it is of a kind that can be asked (driver, once a run).

    Raises:
        EngineError: none of the addresses of a ``spark://`` or ``sc://`` master accepts a connection.
    """
    refusals = refusals_of(master, timeout_s)
    if refusals and all(refusals):
        raise EngineError(
            f"Spark master {master!r} cannot be reached: {'; '.join(map(str, refusals))}; start it, or check --master"
        ).about(Trouble.SPARK_MASTER)


def refusals_of(master: str, timeout_s: float) -> list[str | None]:
    """Returns why each address of a ``spark://`` or ``sc://`` master accepts no connection; None for one that does."""
    named = LISTENING.fullmatch(master)
    return [] if named is None else [_refusal(address, timeout_s) for address in named["addresses"].split(",")]


def _refusal(address: str, timeout_s: float) -> str | None:
    """Returns why an address cannot be reached; None if it can, or if refusing it is left to Spark."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return None
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
    except TimeoutError:
        return f"{address} gave no answer within {timeout_s:g} s"
    except (OSError, OverflowError) as error:
        return f"{address}: {getattr(error, 'strerror', None) or error}"
    return None


OUR_SETTINGS = {
    # Nagle and delayed acknowledgement cost 40 ms a job over TCP
    "spark.python.unix.domain.socket.enabled": "true",
    # a commit job that runs next to a processing job waits 4 times as long under FIFO
    "spark.scheduler.mode": "FAIR",
    "spark.locality.wait": "0",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # a run of many small jobs must not fill the driver's memory with their history
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    # otherwise files in a worker's current directory, such as a folder called state, hide what is shipped
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Java only moves bytes here; compiling it a second time took half of all its processor time
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
PYTHON_SETTING = "spark.pyspark.python"
OUR_NAMES = "txbatch "
"""The beginning of the name of every context of our own; the topology id follows."""


@dataclass(frozen=True, slots=True)
class SparkLease:
    """A Spark context for the duration of a run.

    Attributes:
        context: the user's context or our own.
        watch: the watch over its Java process; the run's own thread makes its calls through it.
    """

    context: SparkContext
    watch: JavaWatch


def open_context(topology_id: str, master: str, settings: Mapping[str, str]) -> SparkContext:
    """Starts a context of our own; the user's settings take precedence (driver, once a run).

    Raises:
        TopologyError: Spark does not accept the master or a setting.
        EngineError: the master gives no answer, or the Java process ends or freezes.
    """
    local = master.startswith("local")
    conf = SparkConf().setMaster(master).setAppName(f"{OUR_NAMES}{topology_id}")
    for key, value in {**OUR_SETTINGS, **_settings_for(master)}.items():
        if not conf.contains(key):
            conf.set(key, value)
    for key, value in settings.items():
        conf.set(key, value)
    if local:
        keep_scratch_private(conf)
    if conf.contains(PYTHON_SETTING):  # only spark-submit turns it into the variable, which is all that pyspark reads
        os.environ["PYSPARK_PYTHON"] = str(conf.get(PYTHON_SETTING))
    elif local and "PYSPARK_PYTHON" not in os.environ:
        # the workers need the interpreter, and so the packages, of the driver
        os.environ["PYSPARK_PYTHON"] = sys.executable
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - there is no public question
        running = SparkContext._active_spark_context.appName or ""  # noqa: SLF001 - as above
        if running.startswith(OUR_NAMES):
            raise TopologyError(
                f"the Spark session of the run of topology {running.removeprefix(OUR_NAMES)!r} is running in this "
                "process, which can hold one session: drain that run and wait for it, or start a session of your own "
                "and pass it to both runs as spark=…"
            )
        raise TopologyError("a SparkContext is running in this process already; pass it as spark=…")
    check_reachable(master)
    try:
        return start_context(conf, is_local=local)
    except RuntimeError as error:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files <= TOO_FEW_FILES or (files < ENOUGH_FILES and OUT_OF_FILES.search(str(error))):
            raise EngineError(
                f"Spark does not start, since this process and its children may open only {files} files each: raise "
                f"the limit, as by `ulimit -n {ENOUGH_FILES}`, or in the service or container (Java: {error})"
            ) from error
        raise TopologyError(f"spark does not start with master {master!r}: {error}; check master and conf").about(
            Trouble.SPARK_MASTER
        ) from error


def is_connect(spark: Any, master: str = "") -> bool:
    """Returns whether this is a session of Spark Connect, or without a session, the address of its server."""
    return master.startswith(CONNECT_SCHEME) if spark is None else type(spark).__module__.startswith(CONNECT_MODULE)


def refuse_connect(spark: Any, master: str) -> None:
    """Refuses Spark Connect for what it cannot run.

    Raises:
        TopologyError: this is a session of Spark Connect, or the address of its server.
    """
    if is_connect(spark, master):
        raise TopologyError(
            "on Spark Connect, transactional topologies run by run() and start(), and nothing else does: it has no "
            "RDDs, on which plain topologies, the rows of DataFrames and exactly_once rest; use a classic session, as "
            "in SparkSession.builder.master(...)"
        )


def master_of(spark: Any) -> str:
    """Returns, for display, where the tasks of the user's session or context run."""
    return f"sc://{spark.client.host}" if is_connect(spark) else accept_context(spark).master or ""


def accept_context(spark: Any) -> SparkContext:
    """Returns the context of the user's SparkSession or SparkContext, which is left running (driver, once a run).

    Raises:
        TopologyError: `spark` is a Spark Connect session, is stopped, or is something else.
    """
    refuse_connect(spark, "")
    context = spark if isinstance(spark, SparkContext) else getattr(spark, "sparkContext", None)
    if not isinstance(context, SparkContext):
        raise TopologyError(f"spark is {spark!r}; give a SparkSession or a SparkContext")
    if context._jsc is None or context._jsc.sc().isStopped():  # noqa: SLF001 - there is no public question
        raise TopologyError("the given Spark session is stopped; start another")
    return context


@contextmanager
def spark_lease(topology_id: str, spark: Any, master: str, settings: Mapping[str, str]) -> Iterator[SparkLease]:
    """Yields the context of a run: the user's, which is left running, or one of our own (driver, once a run).

    Args:
        topology_id: part of the name of a context of our own.
        spark: a SparkSession or SparkContext of the user's, or None.
        master: Spark master of a context of our own.
        settings: Spark settings of a context of our own; they take precedence over ours.

    Raises:
        TopologyError: settings were given for the user's context, or as `accept_context` and `open_context`.
        EngineError: as `check_pyspark`, `check_spark` and `open_context`.
    """
    check_pyspark()
    if spark is not None:
        if settings:
            raise TopologyError(
                "conf is for a session that txbatch starts; set it on the session that you pass as spark=…"
            )
        context = accept_context(spark)
        with _watch_over(context, is_ours=False) as watch:
            watch.call(lambda: check_spark(context.version))
            if is_in_process(context.master or ""):
                refuse_shadowed()
            watch.call(lambda: warn_of_open_cluster(context))
            yield SparkLease(context, watch)
        return
    refuse_connect(None, master)
    if is_in_process(master):
        refuse_shadowed()
    context = open_context(topology_id, master, settings)
    with _watch_over(context, is_ours=output_of(running_gateway()) is not None) as watch:
        watch.tell(lambda _: quieten_java())
        try:
            watch.call(lambda: warn_of_open_cluster(context))
            yield SparkLease(context, watch)
        finally:
            watch.let_stop()
            if watch.lost is None:
                stop_context(context)
            else:
                abandon_context(context)


def _watch_over(context: SparkContext, *, is_ours: bool) -> JavaWatch:
    return JavaWatch(GatewayProcess(context._gateway, is_ours=is_ours, context=context))  # noqa: SLF001 - its only name


def is_in_process(master: str) -> bool:
    """Returns whether tasks run for this very process, on this machine."""
    return master == "local" or master.startswith("local[")


def is_fair(setting: Callable[[str, str], str | None]) -> bool:
    """Returns whether jobs share executors by Spark's settings, so that a commit need not wait for a whole wave."""
    return str(setting("spark.scheduler.mode", "FIFO")).upper() == "FAIR"


def slots_of(context: SparkContext) -> int | None:
    """Returns how many tasks Spark will run at a time; None if only the executors will show it (driver, once a run).

    A cluster's executors may register long after the context is there, so the executors count that were asked for.
    """
    conf = context.getConf()
    if is_in_process(context.master or "") or conf.contains("spark.default.parallelism"):
        return max(1, context.defaultParallelism)
    total, per_task = conf.get("spark.cores.max"), int(conf.get("spark.task.cpus") or 1)
    executors, cores = conf.get("spark.executor.instances"), conf.get("spark.executor.cores")
    if total is None and executors is not None and cores is not None:
        total = str(int(executors) * int(cores))
    return None if total is None else max(1, int(total) // per_task)


def _settings_for(master: str) -> dict[str, str]:
    settings = dict(LOCAL_SETTINGS) if master.startswith("local") else {}
    if is_in_process(master):
        # tasks that run for this very process import what it can import
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(import_folders())
    return settings
