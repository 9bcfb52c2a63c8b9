"""Closes what Spark leaves open to others by default, or warns of it: scratch files, ports and the web UI."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from state.errors import TopologyError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

_LOG = logging.getLogger("txbatch.spark")
LOCAL_DIR = "spark.local.dir"
LOCAL_DIRS_VARIABLE = "SPARK_LOCAL_DIRS"
PREFIX = "txbatch-spark-"


def keep_scratch_private(conf: SparkConf, environment: Mapping[str, str] = os.environ) -> None:
    """Gives Spark a folder that only this user can open in each of its local folders (driver, before a local start).

    Spark's shuffle files hold the user's tuples, and Spark makes their folders as readable as is the system's default.
    On a cluster, executors make their own folders: `docs/spark.md` describes what to set there.

    Raises:
        TopologyError: a folder cannot be made.
    """
    given = environment.get(LOCAL_DIRS_VARIABLE)
    if given:  # wins over the setting, inside Spark
        for folder in filter(_is_open, given.split(",")):
            _LOG.warning(
                "%s names %r, which other users can open, and so can they Spark's scratch files with your tuples; "
                "chmod 700 it, or unset the variable and give spark.local.dir",
                LOCAL_DIRS_VARIABLE,
                folder,
            )
        return
    roots = str(conf.get(LOCAL_DIR, None) or tempfile.gettempdir()).split(",")
    conf.set(LOCAL_DIR, ",".join(_private_folder(root.strip()) for root in roots if root.strip()))


def exposures(setting: Callable[[str, str], str]) -> list[str]:
    """Returns what a cluster leaves open to others, each with the setting that closes it.

    Args:
        setting: (name, default) -> the Spark setting, or the default.
    """

    def is_on(key: str, default: str) -> bool:
        return setting(key, default).lower() == "true"

    found = []
    if not is_on("spark.authenticate", "false"):
        found.append("anyone who can reach its ports can read tuples and run code in it (set spark.authenticate=true)")
    has_acls = is_on("spark.acls.enable", "false") or is_on("spark.ui.acls.enable", "false")
    if is_on("spark.ui.enabled", "true") and not has_acls:
        found.append(
            "anyone who can reach its web UI can read settings and end jobs (set spark.acls.enable=true with "
            "spark.ui.view.acls, or spark.ui.enabled=false)"
        )
    return found


def warn_of_open_cluster(context: SparkContext) -> None:
    """Warns of what a cluster leaves open (driver, once a run); a local master is reached from its own machine only."""
    conf = context.getConf()
    found = exposures(lambda key, default: str(conf.get(key, default)))
    if found and not str(context.master).startswith("local"):
        _LOG.warning("Spark master %s is open: %s", context.master, "; ".join(found))


@cache
def _private_folder(root: str) -> str:
    """Returns a folder below `root` that is kept until this process ends: Spark's Java process remembers it as long.

    The setting of one start is a default of the next one, so `root` may itself be such a folder.
    """
    if Path(root).name.startswith(PREFIX) and not _is_open(root):
        return root
    try:
        Path(root).mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=root)
    except OSError as error:
        raise TopologyError(
            f"Spark's scratch folder cannot be made in {root!r}: {error.strerror}; give --conf {LOCAL_DIR}=FOLDER with "
            "one that this user may write"
        ) from error
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_open(folder: str) -> bool:
    try:
        return bool(Path(folder).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError:
        return False  # Spark makes it, or reports why not
