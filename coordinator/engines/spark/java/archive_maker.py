"""Makes the archive of Spark's classes, once a machine; what it is for is said in `class_archive`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError

from coordinator.engines.spark.crash_story import crash_story
from coordinator.engines.spark.java.class_archive import JAVA_OPTIONS, archive_folder, archive_name
from coordinator.engines.spark.java.gateway import end_java, let_java_end, running_gateway
from coordinator.engines.spark.session import LOCAL_SETTINGS, spark_lease
from state.errors import EngineError

END_TIMEOUT_S = 120.0
"""How long Java may take to write an archive."""


def make_archive() -> Path:
    """Starts Spark, has it run a small job, and keeps what Java has loaded for that; takes a quarter of a minute.

    It takes the place of an earlier one of the same Java and Spark.

    Raises:
        EngineError: Spark fails, or Java did not write the archive.
        TopologyError: Spark does not start.
    """
    folder = archive_folder()
    made = folder / f"unfinished-{os.getpid()}.jsa"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = f'{LOCAL_SETTINGS[JAVA_OPTIONS]} "-XX:ArchiveClassesAtExit={made}"'
        if not (_java_ended_well(options) and made.exists()):
            raise EngineError(
                f"Java wrote no archive of Spark's classes into {folder}; runs start without one; this build of Java "
                "cannot, the disk is full, or the class path has a folder with files in it, as that of a Spark has "
                "which pip did not install (SPARK_HOME/conf); nothing else depends on it"
            )
        whole = folder / f"{archive_name()}-{made.stat().st_size}.jsa"
        for earlier in folder.glob(f"{archive_name()}-*.jsa"):
            earlier.unlink()  # a Java process that uses it keeps it
        return made.replace(whole)
    except OSError as error:
        raise EngineError(
            f"no archive can be kept in {folder}: {error}; name another cache by XDG_CACHE_HOME"
        ) from error
    finally:
        with suppress(OSError):
            made.unlink()


def _java_ended_well(java_options: str) -> bool:
    """Whether a Java process with these options has run a job and done all it does at its end."""
    if running_gateway() is not None:
        raise EngineError("this process has a Java process of Spark already; make the archive in another process")
    try:
        with spark_lease("archive of classes", None, "local[2]", {JAVA_OPTIONS: java_options}) as lease:
            numbers = lease.watch.call(lambda: lease.context.parallelize(range(4), 2))
            try:
                lease.watch.call(lambda: numbers.keyBy(str).groupByKey(2).count())
            except Py4JError as error:
                raise EngineError(f"Spark could not run a job: {crash_story(error).reason}") from error
        return let_java_end(END_TIMEOUT_S)
    finally:
        end_java()
