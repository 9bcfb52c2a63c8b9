"""Folders and Python of this machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.inspection.doctor.checks.machine_checks import FolderFacts, check_folder, check_python
from coordinator.inspection.finding import Weight

FOLDER = FolderFacts("data directory", "/data", "--data-dir", is_writable=True, free_bytes=2**40)


@pytest.mark.parametrize(
    ("changes", "weight", "found"),
    [
        ({}, Weight.OK, "data directory '/data' has 1,024.0 GiB free"),
        ({"is_writable": False}, Weight.FAIL, "cannot be written by this user"),
        ({"free_bytes": 100 * 2**20 - 1}, Weight.FAIL, "has 0.1 GiB free"),
        ({"free_bytes": 100 * 2**20}, Weight.WARN, "has 0.1 GiB free"),
        ({"free_bytes": 2**30}, Weight.OK, "has 1.0 GiB free"),
        ({"is_open": True}, Weight.WARN, "other users can open it"),
    ],
)
def test_a_folder_is_judged_by_room_and_rights(changes, weight, found):
    finding = check_folder(replace(FOLDER, **changes))
    assert (finding.subject, finding.weight) == ("disk", weight)
    assert found in finding.found
    assert weight is Weight.OK or "--data-dir" in finding.remedy


@pytest.mark.parametrize(
    ("version", "weight"),
    [
        ((3, 10, 9), Weight.FAIL),
        ((3, 11, 0), Weight.OK),
        ((3, 13, 5), Weight.OK),
        ((3, 14, 0), Weight.WARN),
    ],
)
def test_a_python_that_was_not_tried_is_told(version, weight):
    assert check_python(version).weight is weight
