"""What has to be set so that executors find the driver's Python, for each kind of cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from state.printable import one_line

EMR_FILE = "/mnt/var/lib/info/job-flow.json"
DATAPROC_FILE = "/etc/google-dataproc"
CLUSTER_FILES = (EMR_FILE, DATAPROC_FILE)
"""What machines of these services have."""


def interpreter_line(master: str, version: str, found_files: Iterable[str] = ()) -> str:
    """Returns the exact line to set for a master.

    Args:
        master: Spark master.
        version: the driver's version of Python, as in "3.11.7".
        found_files: those of `CLUSTER_FILES` that this machine has.
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
    """Returns which modules executors cannot import and why, each on one host; "" if they have all of them."""
    missing: dict[str, str] = {}
    for host, reasons in missing_by_host:
        for module, reason in reasons.items():
            missing.setdefault(module, f"{module} on {host} ({one_line(reason, 200)})")
    return f"executors cannot import {'; '.join(missing.values())}" if missing else ""


def minor(version: str) -> str:
    """Returns the first two numbers of a version."""
    return ".".join(version.split(".")[:2])
