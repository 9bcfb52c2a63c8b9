"""Facts measured on Spark, as values, and the line to set so that executors find the driver's Python. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from state.printable import one_line

EMR_FILE = "/mnt/var/lib/info/job-flow.json"
DATAPROC_FILE = "/etc/google-dataproc"
CLUSTER_FILES = (EMR_FILE, DATAPROC_FILE)
"""Files by which machines of these services are known."""


@dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """A Python interpreter that ran tasks.

    Attributes:
        host: the name of its machine.
        executable: path of the interpreter.
        python: its version, as in "3.11.7".
        pyspark: the version of PySpark that ran the task.
        missing: module that it cannot import -> the reason.
        scratch: folder for shuffle files -> free bytes, -1 if it cannot be written.
    """

    host: str
    executable: str
    python: str
    pyspark: str
    missing: Mapping[str, str]
    scratch: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SparkFacts:
    """A Spark that ran a job.

    Attributes:
        master: as given.
        is_local: whether it is reachable from this machine only.
        version: the version of Spark.
        java_version: the version of the driver's Java, as in "17.0.2".
        driver_python: the version of this process's Python.
        modules: the modules that executors were asked to import.
        exposures: what it leaves open to others, in one sentence each.
        executors: every interpreter that ran one of the job's tasks.
        interpreter_line: the line to set so that executors find the driver's Python.
    """

    master: str
    is_local: bool
    version: str
    java_version: str
    driver_python: str
    modules: tuple[str, ...]
    exposures: tuple[str, ...]
    executors: tuple[ExecutorFacts, ...]
    interpreter_line: str = ""


def interpreter_line(master: str, version: str, found_files: Iterable[str] = ()) -> str:
    """Returns the exact line to set for a master.

    Args:
        master: Spark master.
        version: the driver's version of Python, as in "3.11.7".
        found_files: the `CLUSTER_FILES` that exist on this machine.
    """
    python = f"python{minor(version)}"
    found = set(found_files)
    if EMR_FILE in found:
        return f"on EMR: export PYSPARK_PYTHON=/usr/bin/{python}, installed on all nodes by a bootstrap action"
    if DATAPROC_FILE in found:
        return f"on Dataproc: export PYSPARK_PYTHON=/opt/conda/default/bin/{python}, on all nodes"
    if master.startswith("yarn"):
        return f"on YARN: export PYSPARK_PYTHON=./env/bin/{python}, and --conf spark.archives=ENV.tar.gz#env"
    if master.startswith("k8s"):
        return (
            f"on Kubernetes: export PYSPARK_PYTHON=/usr/bin/{python}, a path in the image of "
            "spark.kubernetes.container.image"
        )
    return f"export PYSPARK_PYTHON=/PATH/ON/ALL/WORKERS/{python} where the driver starts"


def missing_modules(missing_by_host: Iterable[tuple[str, dict[str, str]]]) -> str:
    """Returns in words the modules that executors cannot import, each with a host and the reason; "" without any."""
    missing: dict[str, str] = {}
    for host, reasons in missing_by_host:
        for module, reason in reasons.items():
            missing.setdefault(module, f"{module} on {host} ({one_line(reason, 200)})")
    return f"executors cannot import {'; '.join(missing.values())}" if missing else ""


def minor(version: str) -> str:
    """Returns the first two numbers of a version."""
    return ".".join(version.split(".")[:2])
