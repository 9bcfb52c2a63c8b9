"""The lowest versions that pyproject.toml allows do the main jobs together, and a platform's PySpark is kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.conftest import absent
from tools.spark_matrix import PY4J, SPARKS, Site

pytestmark = [pytest.mark.nightly, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
LOWEST = ROOT / ".programs" / "lowest-versions"
WANTED = [Requirement(each) for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]]
LOCKED = dict(re.findall(r"^([\w-]+)==([\d.]+) ", (ROOT / "requirements-lowest.lock").read_text(), re.MULTILINE))


def wanted_pyspark() -> Requirement:
    (found,) = (requirement for requirement in WANTED if requirement.name == "pyspark")
    return found


@pytest.mark.parametrize("requirement", WANTED, ids=[requirement.name for requirement in WANTED])
def test_the_lock_names_the_lowest_version_that_is_allowed(requirement):
    (lowest,) = (each.version for each in requirement.specifier if each.operator == ">=")
    assert Version(LOCKED[requirement.name]) == Version(lowest)


def test_the_lowest_pyspark_has_its_py4j():
    assert LOCKED["py4j"] in PY4J


@pytest.mark.parametrize("version", [LOCKED["pyspark"], *SPARKS, "4.4.0"])
def test_a_platforms_pyspark_is_kept(version):
    assert wanted_pyspark().specifier.contains(version)


@pytest.mark.parametrize("version", ["3.4.4", "5.0.0"])
def test_a_pyspark_that_would_not_run_is_replaced(version):
    assert not wanted_pyspark().specifier.contains(version)


@pytest.fixture(scope="module")
def site() -> Site:
    if not LOWEST.is_dir():
        absent("the lowest versions (tools/bootstrap.sh lowest-versions)")
    return Site("lowest", sys.executable, LOWEST)


def test_installing_txbatch_beside_the_lowest_pyspark_installs_nothing_else(site, tmp_path):
    """pip resolves, without an index: all that txbatch needs has to be there, and nothing to be replaced."""
    wheel, info = tmp_path / "probe-1.0-py3-none-any.whl", "probe-1.0.dist-info"
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in WANTED)
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n{needs}")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")
    done = site.run("-m", "pip", "install", "--dry-run", "--no-index", "--disable-pip-version-check", str(wheel))
    kept = rf"satisfied: pyspark\S* in \S*{LOWEST.name} .*\({LOCKED['pyspark']}\)"
    assert re.search(kept, done.stdout), done.stdout
    assert done.stdout.splitlines()[-1] == "Would install probe-1.0", done.stderr


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.timeout(300)
def test_the_lowest_versions_run_what_every_pyspark_has_to_run(site):
    done = site.short_tests()
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    assert done.stdout.splitlines()[0] == LOCKED["pyspark"]


@pytest.mark.slow
def test_a_spark_of_another_version_is_refused_by_name(site, tmp_path, valkey_url):
    """SPARK_HOME names it, as where a cluster's own Spark lies beside a newer PySpark."""
    text = tmp_path / "text.txt"
    text.write_text("to be\n")
    command = [sys.executable, "-m", "coordinator.operating.cli", "run"]
    command += [str(ROOT / "examples" / "word_count.py") + ":topology", "-p", f"input={text}", "--redis", valkey_url]
    environment = os.environ | {"SPARK_HOME": str(LOWEST / "pyspark"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 5
    assert "PySpark 4.3.0 drives Spark 3.5.0, for which it was not made; install the same version" in done.stderr
    assert "Traceback" not in done.stderr
