"""``txbatch doctor`` on real clusters: another Python, a missing library, a factory whose module is shipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.jobs import JobFolder
from tests.support.spark.installed import python_with, spark_home_in

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(180)]

CLUSTER = "local-cluster[1,1,1024]"
CLUSTER_CONF = ("spark.executor.memory=512m", "spark.ui.enabled=true")
REPOSITORY = Path(__file__).resolve().parents[2]
OTHER_VERSION = """
import collections, sys
Version = collections.namedtuple("Version", "major minor micro releaselevel serial")
sys.version_info = Version(3, 99, 0, "final", 0)
"""
NO_REDIS = "raise ModuleNotFoundError(\"No module named 'redis'\")\n"


def examined(folder: Path, valkey_url: str, *more: str, **variables: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and subject -> finding."""
    command = [sys.executable, "-m", "coordinator.operating.cli", "doctor", "--redis", valkey_url, "--json", *more]
    conf = [part for setting in CLUSTER_CONF for part in ("--conf", setting)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": "127.0.0.1"} | variables
    ended = subprocess.run(
        [*command, *conf], cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=170
    )
    assert ended.returncode in (0, 1), ended.stderr
    (line,) = ended.stdout.splitlines()
    said = json.loads(line)
    assert said["is_fit"] is (ended.returncode == 0)
    return ended.returncode, {finding["subject"]: finding for finding in said["findings"]}


def on_cluster(folder: Path, program: Path) -> tuple[str, dict[str, str]]:
    return CLUSTER, {"PYSPARK_PYTHON": str(program), "SPARK_HOME": str(spark_home_in(folder))}


@pytest.mark.nightly
def test_executors_of_another_python_are_found_on_a_cluster(tmp_path, valkey_url):
    master, variables = on_cluster(tmp_path, python_with(tmp_path, "sitecustomize", OTHER_VERSION))
    code, found = examined(tmp_path, valkey_url, "--master", master, **variables)
    assert code == 1
    assert found["spark"]["weight"] == "fail"
    assert "PYTHON_VERSION_MISMATCH" in found["spark"]["found"] or "different version" in found["spark"]["found"]
    assert "name the same version in PYSPARK_PYTHON" in found["spark"]["remedy"]


@pytest.mark.nightly
def test_a_library_that_executors_lack_is_named_on_a_cluster(tmp_path, valkey_url):
    job = JobFolder(tmp_path)
    job.write_job()
    master, variables = on_cluster(tmp_path, python_with(tmp_path, "redis", NO_REDIS))
    code, found = examined(tmp_path, valkey_url, "job_of_lines.py:topology", "--master", master, **variables)
    assert code == 1
    assert found["executor modules"]["weight"] == "fail"
    assert found["executor modules"]["found"].startswith("executors cannot import redis on ")
    assert "No module named 'job_of_lines'" not in found["executor modules"]["found"]
    assert found["executor Python"]["weight"] == "ok"
    assert found["java"]["weight"] == "ok"


def test_a_master_that_is_not_there_is_told_within_seconds(tmp_path, valkey_url):
    code, found = examined(tmp_path, valkey_url, "--master", "spark://127.0.0.1:1")
    assert code == 1
    assert found["spark"]["weight"] == "fail"
    assert "Spark master 'spark://127.0.0.1:1' cannot be reached" in found["spark"]["found"]
