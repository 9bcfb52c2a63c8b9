"""Asks executors what they are, in a context that ships what a run would ship (driver)."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.engines.spark.cluster.running_jobs import RunningJobs
from coordinator.engines.spark.cluster.spark_facts import (
    CLUSTER_FILES,
    ExecutorFacts,
    SparkFacts,
    interpreter_line,
    missing_modules,
)
from coordinator.engines.spark.crash_story import crash_story
from coordinator.engines.spark.privacy import exposures
from coordinator.engines.spark.session import spark_lease
from coordinator.engines.spark.shipping import ship_code, ship_topology
from coordinator.topology.building.topology import ComponentGraph
from coordinator.watching.failure_cause import CrashKind
from state.errors import EngineError
from state.troubles import Trouble

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger("txbatch.spark")
TASKS_PER_CORE = 4
"""Most likely enough for each executor to get one: a job cannot address a certain executor."""
TASKS_MAX = 64
LIBRARIES = ("pyspark", "msgpack", "redis")
OURS = "coordinator.engines.waves.stage"

Answer = tuple[str, str, str, str, tuple[tuple[str, str], ...], tuple[tuple[str, int], ...]]
"""Host, executable, Python, PySpark, (module, why it cannot be imported) pairs, (scratch folder, free bytes) pairs."""


def probe_spark(
    master: str, conf: Mapping[str, str], topology: ComponentGraph | None, factory_module: str | None
) -> SparkFacts:
    """Starts Spark and runs a job that imports what a run would import.

    Args:
        master: Spark master.
        conf: Spark settings.
        topology: its modules are shipped as in a run; None ships our own packages only.
        factory_module: the module of its factory, which executors import too.

    Raises:
        TopologyError: Spark does not accept the master or a setting.
        EngineError: Spark cannot be reached, or the job failed; the message has the reason and a remedy.
    """
    modules = (*LIBRARIES, OURS, *([factory_module] if factory_module else []))
    with spark_lease("doctor", None, master, conf) as lease:
        context = lease.context
        if topology is None:
            code = lease.watch.call(lambda: ship_code(context, []))
        else:
            code = lease.watch.call(lambda: ship_topology(context, topology, factory_module))
        settings = context.getConf()
        executors = lease.watch.call(lambda: _ask_executors(context, code, modules))
        return SparkFacts(
            master=master,
            is_local=master.startswith("local"),
            version=context.version,
            java_version=lease.watch.call(lambda: str(_java_version(context))),
            driver_python=platform.python_version(),
            modules=modules,
            exposures=tuple(exposures(lambda key, default: str(settings.get(key, default)))),
            executors=executors,
            interpreter_line=line_for(context),
        )


def line_for(context: SparkContext) -> str:
    """Returns the line to set so that executors find the driver's Python."""
    found = filter(lambda file: Path(file).exists(), CLUSTER_FILES)
    return interpreter_line(context.master or "", platform.python_version(), found)


def look_at_executors(
    context: SparkContext, code: str, jobs: RunningJobs, job_group: str, tell: Callable[[EngineError], None]
) -> None:
    """Runs the job that comes before the first wave, and waits for executors as long as it takes (driver, on a lane).

    Args:
        context: the Spark context.
        code: what `ship_code` returned.
        jobs: the run's jobs, which already include this one.
        job_group: the job's group.
        tell: called with the error if executors cannot run any wave.
    """
    try:
        context.setJobGroup(job_group, "txbatch: executors", interruptOnCancel=True)
        check_executors(context, code)
    except EngineError as error:
        tell(error)
    finally:
        jobs.ended(job_group)


def check_executors(context: SparkContext, code: str) -> None:
    """Runs a small job like those of the first wave.

    Raises:
        EngineError: executors run another Python, or cannot import what every wave needs.
    """
    try:
        executors = _asked(context, code, (*LIBRARIES, OURS), context.defaultParallelism)
    except Exception as error:
        story = crash_story(error)
        if story.kind is CrashKind.CERTAIN:
            raise EngineError(f"executors cannot run txbatch: {story.reason}; {line_for(context)}") from error
        _LOG.debug("the job that looks at executors crashed: %s", story.reason)  # as the first wave may
        return
    missing = missing_modules((each.host, dict(each.missing)) for each in executors)
    if missing:
        raise EngineError(f"{missing}; install them in the interpreter of the executors: {line_for(context)}").about(
            Trouble.SPARK
        )


def _java_version(context: SparkContext) -> str:
    gateway = context._gateway  # noqa: SLF001 - its only name
    assert gateway is not None
    return str(gateway.jvm.java.lang.System.getProperty("java.version"))


def _ask_executors(context: SparkContext, code: str, modules: tuple[str, ...]) -> tuple[ExecutorFacts, ...]:
    try:
        return _asked(context, code, modules, TASKS_PER_CORE * context.defaultParallelism)
    except Exception as error:  # Spark raises what it likes
        reason = f"{crash_story(error).reason}; {line_for(context)}"
        raise EngineError(f"Spark could not run a small job: {reason}") from error


def _asked(context: SparkContext, code: str, modules: tuple[str, ...], task_count: int) -> tuple[ExecutorFacts, ...]:
    count = min(TASKS_MAX, task_count)
    return merged(context.parallelize(range(count), count).mapPartitions(_question(code, modules)).collect())


def merged(answers: Iterable[Answer]) -> tuple[ExecutorFacts, ...]:
    """Merges the answers of each interpreter's tasks into one entry, with the fewest free bytes seen for a folder."""
    found: dict[tuple[str, str, str, str], ExecutorFacts] = {}
    for host, executable, python, pyspark, missing, scratch in sorted(answers):
        place = (host, executable, python, pyspark)
        known = found.setdefault(place, ExecutorFacts(*place, {}, {}))
        free = dict(known.scratch)
        for folder, free_bytes in scratch:
            free[folder] = min(free_bytes, free.get(folder, free_bytes))
        found[place] = ExecutorFacts(*place, {**known.missing, **dict(missing)}, free)
    return tuple(found.values())


def _question(code: str, modules: tuple[str, ...]) -> Callable[[Iterable[int]], Iterator[Answer]]:
    """Returns the function that a task runs; pickled by value, so that it can begin without any of our modules."""

    def answer(_: Iterable[int]) -> Iterator[Answer]:
        import importlib
        import os
        import platform as its_own
        import shutil
        import sys
        from pathlib import Path

        from pyspark import SparkFiles, __version__

        sys.path.insert(1, SparkFiles.get(code))
        missing = []
        for module in modules:
            try:
                importlib.import_module(module)
            except BaseException as error:  # noqa: BLE001 - a module may raise anything, sys.exit included
                missing.append((module, f"{type(error).__name__}: {error}"))
        scratch = []
        for folder in filter(None, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")):
            free_bytes = shutil.disk_usage(folder).free if os.access(folder, os.W_OK | os.X_OK) else -1
            scratch.append((str(Path(folder).parent), free_bytes))
        versions = its_own.python_version(), __version__
        yield its_own.node(), sys.executable, *versions, tuple(missing), tuple(scratch)

    return answer
