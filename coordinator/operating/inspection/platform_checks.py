"""Checks the platform of a run: folders that it writes, the driver's Python, and Spark with its executors. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.engines.spark.cluster.spark_facts import ExecutorFacts, SparkFacts, minor, missing_modules
from coordinator.engines.spark.spark_versions import NEWEST_SPARK, SUPPORTED, numbers_of, oldest_java
from coordinator.operating.inspection.finding import Finding, fail, ok, warn
from state.printable import counted

FREE_FAIL_BYTES = 100 * 2**20
FREE_WARN_BYTES = 2**30
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
LOCAL_DIR = "spark.local.dir"


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """A folder, which may not exist yet.

    Attributes:
        purpose: what it is for, as in "data directory".
        setting: the option that names another folder, as in "--data-dir".
        is_writable: whether this user may create files in it, or the folder itself.
        is_open: whether other users can read it.
    """

    purpose: str
    path: str
    setting: str
    is_writable: bool
    free_bytes: int
    is_open: bool = False


def check_folder(facts: FolderFacts) -> Finding:
    where = f"{facts.purpose} {facts.path!r}"
    other = f"name another by {facts.setting}"
    if not facts.is_writable:
        return fail("disk", f"{where} cannot be written by this user", "a run ends at once", f"{other}, or allow it")
    found = f"{where} has {facts.free_bytes / 2**30:,.1f} GiB free"
    if facts.free_bytes < FREE_FAIL_BYTES:
        why = "a full disk ends a run, and a server then refuses writes"
        return fail("disk", found, why, f"free space, or {other}")
    if facts.free_bytes < FREE_WARN_BYTES:
        why = "it holds what a window of transactions sends between bolts, or the state's append-only file"
        return warn("disk", found, why, f"free space, or {other}")
    if facts.is_open:
        why = "it will hold the tuples of your topology"
        return warn("disk", f"{found}, and other users can open it", why, f"chmod 700 it, or {other}")
    return ok("disk", found)


def check_python(version: tuple[int, ...]) -> Finding:
    shown = ".".join(map(str, version[:3]))
    known = f"{'.'.join(map(str, OLDEST_PYTHON))} to {'.'.join(map(str, NEWEST_PYTHON))}"
    if version[:2] < OLDEST_PYTHON:
        return fail("python", f"Python {shown} is too old", f"txbatch runs on {known}", "make a newer environment")
    if version[:2] > NEWEST_PYTHON:
        return warn("python", f"Python {shown} was not tried", f"txbatch was tried on {known}", "use one of those")
    return ok("python", f"Python {shown}")


def check_spark(facts: SparkFacts) -> list[Finding]:
    """Returns one finding for each aspect of a Spark that runs jobs."""
    return [
        _check_version(facts),
        _check_java(facts),
        _check_security(facts),
        *_check_executors(facts),
    ]


def _check_version(facts: SparkFacts) -> Finding:
    found = f"Spark {facts.version} at master {facts.master!r}"
    numbers = numbers_of(facts.version)
    others = {each.host: each.pyspark for each in facts.executors if numbers_of(each.pyspark) != numbers}
    if others:
        shown = ", ".join(f"{version} on {host}" for host, version in sorted(others.items()))
        why = "Spark and its Python workers understand each other only in one version"
        remedy = "install the same version of Spark on driver and executors"
        return fail("spark", f"{found}, executors run PySpark {shown}", why, remedy)
    if numbers > NEWEST_SPARK:
        return warn("spark", f"{found} was not tried", f"txbatch was tried on {SUPPORTED}", "use one of those")
    return ok("spark", f"{found} ran a job on {counted(len(facts.executors), 'executor Python')}")


def _check_java(facts: SparkFacts) -> Finding:
    major = facts.java_version.split(".", maxsplit=1)[0]
    oldest = oldest_java(facts.version)
    if not major.isdecimal() or int(major) < oldest:
        why = f"Spark {facts.version} needs Java {oldest} or newer"
        return fail("java", f"Java {facts.java_version}", why, f"install Java {oldest} and set JAVA_HOME")
    return ok("java", f"Java {facts.java_version}")


def _check_security(facts: SparkFacts) -> Finding:
    if facts.is_local:
        return ok("spark security", "a local master speaks to itself only")
    if not facts.exposures:
        return ok("spark security", "authentication is on, and the web UI is off or has access lists")
    found = "; ".join(facts.exposures)
    why = "on a cluster others may reach these ports"
    return warn("spark security", found, why, "give the settings by --conf, or on the cluster")


def _check_executors(facts: SparkFacts) -> list[Finding]:
    findings = []
    others = [each for each in facts.executors if minor(each.python) != minor(facts.driver_python)]
    if others:
        by_place = {f"{each.executable} on {each.host}": each.python for each in others}
        shown = ", ".join(f"{place} is {version}" for place, version in sorted(by_place.items()))
        found = f"the driver runs Python {facts.driver_python}, {shown}"
        why = "pickled bolts are byte code of one minor version"
        remedy = f"name the same version; {facts.interpreter_line}"
        findings.append(fail("executor Python", found, why, remedy))
    else:
        findings.append(ok("executor Python", f"driver and executors run Python {minor(facts.driver_python)}"))
    missing = missing_modules((each.host, dict(each.missing)) for each in facts.executors)
    if missing:
        remedy = f"install it in the executors' interpreter; {facts.interpreter_line}"
        findings.append(fail("executor modules", missing, "the first wave would end the run", remedy))
    else:
        findings.append(ok("executor modules", f"executors import {', '.join(facts.modules)}"))
    findings += [check_folder(least) for least in _least_scratch(facts.executors)]
    return findings


def _least_scratch(executors: Iterable[ExecutorFacts]) -> list[FolderFacts]:
    """Returns, for each host, the scratch folder with the least room."""
    least: dict[str, tuple[int, str]] = {}
    for each in executors:
        for folder, free_bytes in each.scratch.items():
            least[each.host] = min(least.get(each.host, (free_bytes, folder)), (free_bytes, folder))
    return [
        FolderFacts(f"scratch folder on {host}", folder, LOCAL_DIR, free_bytes >= 0, free_bytes)
        for host, (free_bytes, folder) in sorted(least.items())
    ]
