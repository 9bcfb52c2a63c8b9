"""Folders, Python and Spark: each trouble has a finding of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.operating.cli.commands.examine import _finding_lines
from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.platform_checks import FolderFacts, check_folder, check_python, check_spark
from tests.support.approved import approved
from tests.support.inspection.facts import EXECUTOR, SPARK, spark

OK, WARN, FAIL = Weight.OK, Weight.WARN, Weight.FAIL
FOLDER = FolderFacts("data directory", "/data", "--data-dir", is_writable=True, free_bytes=2**40)


@pytest.mark.parametrize(
    ("changes", "weight", "found"),
    [
        ({}, OK, "data directory '/data' has 1,024.0 GiB free"),
        ({"is_writable": False}, FAIL, "cannot be written by this user"),
        ({"free_bytes": 100 * 2**20 - 1}, FAIL, "has 0.1 GiB free"),
        ({"free_bytes": 100 * 2**20}, WARN, "has 0.1 GiB free"),
        ({"free_bytes": 2**30}, OK, "has 1.0 GiB free"),
        ({"is_open": True}, WARN, "other users can open it"),
    ],
)
def test_a_folder_is_judged_by_room_and_rights(changes, weight, found):
    finding = check_folder(replace(FOLDER, **changes))
    assert (finding.subject, finding.weight) == ("disk", weight)
    assert found in finding.found
    assert weight is OK or "--data-dir" in finding.remedy


@pytest.mark.parametrize(
    ("version", "weight"),
    [((3, 10, 9), FAIL), ((3, 11, 0), OK), ((3, 13, 5), OK), ((3, 14, 0), WARN)],
)
def test_a_python_that_was_not_tried_is_told(version, weight):
    assert check_python(version).weight is weight


SUBJECTS = ["spark", "java", "spark security", "executor Python", "executor modules", "disk"]


def test_a_sound_cluster_has_one_good_finding_for_each_subject():
    findings = check_spark(SPARK)
    assert [finding.subject for finding in findings] == SUBJECTS
    assert {finding.weight for finding in findings} == {OK}


ANOTHER = replace(EXECUTOR, host="two", python="3.12.1")
UNFIT = replace(EXECUTOR, missing={"redis": "ModuleNotFoundError: No module named 'redis'"})
TROUBLES: dict[str, dict[str, Any]] = {
    "another PySpark": {"version": "3.5.1"},
    "a PySpark that was not tried": {"version": "4.9.0", "executors": (replace(EXECUTOR, pyspark="4.9.1"),)},
    "an old Java": {"java_version": "11.0.2"},
    "a very old Java": {"java_version": "1.8.0_99"},
    "open doors": {"open_doors": ("its ports are open", "its web UI is open")},
    "another Python": {"executors": (EXECUTOR, ANOTHER)},
    "a module is missing": {"executors": (UNFIT,)},
    "no room": {"executors": (replace(EXECUTOR, scratch={"/a": 2**40, "/b": 0}),)},
    "a folder that cannot be written": {"executors": (replace(EXECUTOR, scratch={"/a": -1}),)},
}


def test_each_trouble_of_spark_is_named_alone_with_why_it_matters_and_what_to_do():
    said = []
    for name, changes in TROUBLES.items():
        (troubled,) = [finding for finding in check_spark(spark(**changes)) if finding.weight is not OK]
        assert troubled.why
        said += [f"== {name}", *_finding_lines([troubled], str)]
    approved("\n".join(said), "spark-troubles")


def test_a_local_master_has_no_doors_to_close():
    findings = check_spark(spark(is_local=True, open_doors=("its ports are open",)))
    assert {finding.weight for finding in findings} == {OK}


def test_another_patch_release_of_python_is_the_same_python():
    assert SPARK.driver_python != EXECUTOR.python
    (finding,) = [each for each in check_spark(SPARK) if each.subject == "executor Python"]
    assert finding.found == "driver and executors run Python 3.11"
