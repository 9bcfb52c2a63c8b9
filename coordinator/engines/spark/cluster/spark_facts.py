"""What was measured on Spark, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """A Python interpreter that ran tasks.

    Attributes:
        host: its machine's name.
        executable: path of the interpreter.
        python: its version, as in "3.11.7".
        pyspark: the version of PySpark that ran the task.
        missing: module that it cannot import -> the reason.
        scratch: folder of its shuffle files -> free bytes, -1 if it cannot be written.
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
        is_local: whether it speaks to itself only.
        version: of Spark.
        java_version: of the driver's Java, as in "17.0.2".
        driver_python: version of this process's Python.
        modules: what executors were asked to import.
        open_doors: what it leaves open to others, a sentence each.
        executors: every interpreter that ran one of the job's tasks.
        interpreter_line: what to set so that they find the driver's Python.
    """

    master: str
    is_local: bool
    version: str
    java_version: str
    driver_python: str
    modules: tuple[str, ...]
    open_doors: tuple[str, ...]
    executors: tuple[ExecutorFacts, ...]
    interpreter_line: str = ""
