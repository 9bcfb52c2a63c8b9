"""Makes the archive of Spark's classes, once a machine; what it is for is said in `class_archive`."""

from __future__ import annotations

import os
from pathlib import Path

from coordinator.engines.spark.class_archive import JAVA_OPTIONS, archive_folder, archive_name
from coordinator.engines.spark.gateway import let_java_end, stop_context
from coordinator.engines.spark.session import LOCAL_SETTINGS, open_context
from state.errors import EngineError

END_TIMEOUT_S = 120.0
"""How long Java may take to write an archive."""


def make_archive() -> Path:
    """Starts Spark, has it run a small job, and keeps what Java has loaded for that; takes a quarter of a minute.

    Raises:
        EngineError: Java did not write the archive.
        TopologyError: Spark does not start.
    """
    folder = archive_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = folder / f"unfinished-{os.getpid()}.jsa"
    options = f'{LOCAL_SETTINGS[JAVA_OPTIONS]} "-XX:ArchiveClassesAtExit={made}"'
    try:
        context = open_context("archive of classes", "local[2]", {JAVA_OPTIONS: options})
        try:
            context.parallelize(range(4), 2).keyBy(str).groupByKey(2).count()
        finally:
            stop_context(context)
            is_whole = let_java_end(END_TIMEOUT_S)
        if not is_whole or not made.exists():
            raise EngineError(
                f"Java wrote no archive of Spark's classes into {folder}: this build of Java cannot, or the disk is "
                "full; runs start without one, and nothing else depends on it"
            )
        return made.replace(folder / f"{archive_name()}-{made.stat().st_size}.jsa")
    finally:
        made.unlink(missing_ok=True)
