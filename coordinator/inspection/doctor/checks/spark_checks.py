"""Judges Spark: the master, Java, what executors run and can import, and what others can reach. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.inspection.doctor.checks.machine_checks import FolderFacts, check_folder
from coordinator.inspection.finding import Finding, fail, ok, warn
from coordinator.spark.probing.spark_facts import ExecutorFacts, SparkFacts
from state.printable import counted, one_line

LOCAL_DIR = "spark.local.dir"
OLDEST_JAVA = 17
OLDEST_SPARK = (4, 1)


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
    numbers = tuple(int(part) for part in facts.version.split(".")[:2] if part.isdecimal())
    if numbers < OLDEST_SPARK:
        return fail("spark", found, "txbatch needs 4.1 or newer", "upgrade pyspark, and the cluster with it")
    return ok("spark", f"{found} ran a job on {counted(len(facts.executors), 'executor Python')}")


def _check_java(facts: SparkFacts) -> Finding:
    major = facts.java_version.split(".", maxsplit=1)[0]
    if not major.isdecimal() or int(major) < OLDEST_JAVA:
        why = f"Spark 4 needs Java {OLDEST_JAVA} or newer"
        return fail("java", f"Java {facts.java_version}", why, f"install Java {OLDEST_JAVA} and set JAVA_HOME")
    return ok("java", f"Java {facts.java_version}")


def _check_security(facts: SparkFacts) -> Finding:
    if facts.is_local:
        return ok("spark security", "a local master speaks to itself only")
    if not facts.open_doors:
        return ok("spark security", "authentication is on, and the web UI is off or has access lists")
    found = "; ".join(facts.open_doors)
    why = "on a cluster others may reach these ports"
    return warn("spark security", found, why, "give the settings by --conf, or on the cluster")


def _check_executors(facts: SparkFacts) -> list[Finding]:
    findings = []
    others = [each for each in facts.executors if _minor(each.python) != _minor(facts.driver_python)]
    if others:
        found = f"the driver runs Python {facts.driver_python}, {_shown(others)}"
        why = "pickled bolts are byte code of one minor version"
        remedy = "name the same version by PYSPARK_PYTHON, a path on the executors"
        findings.append(fail("executor Python", found, why, remedy))
    else:
        findings.append(ok("executor Python", f"driver and executors run Python {_minor(facts.driver_python)}"))
    missing: dict[str, str] = {}
    for each in facts.executors:
        for module, reason in each.missing.items():
            missing.setdefault(module, f"{module} on {each.host} ({one_line(reason, 200)})")
    if missing:
        found = f"executors cannot import {'; '.join(missing.values())}"
        remedy = "install it in the interpreter that PYSPARK_PYTHON names there"
        findings.append(fail("executor modules", found, "the first wave would end the run", remedy))
    else:
        imported = ", ".join(facts.modules)
        findings.append(ok("executor modules", f"executors import {imported}"))
    findings += [check_folder(least) for least in _least_scratch(facts.executors)]
    return findings


def _least_scratch(executors: Iterable[ExecutorFacts]) -> list[FolderFacts]:
    """Returns the scratch folder with the least room of each host."""
    least: dict[str, tuple[int, str]] = {}
    for each in executors:
        for folder, free_bytes in each.scratch.items():
            least[each.host] = min(least.get(each.host, (free_bytes, folder)), (free_bytes, folder))
    return [
        FolderFacts(f"scratch folder on {host}", folder, LOCAL_DIR, free_bytes >= 0, free_bytes)
        for host, (free_bytes, folder) in sorted(least.items())
    ]


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _shown(executors: Iterable[ExecutorFacts]) -> str:
    by_place: Mapping[str, str] = {f"{each.executable} on {each.host}": each.python for each in executors}
    return ", ".join(f"{place} is {version}" for place, version in sorted(by_place.items()))
