"""The lowest PySpark that pyproject.toml allows does the main job."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import absent

ROOT = Path(__file__).resolve().parents[2]
LOWEST = ROOT / ".programs" / "lowest-pyspark"
TEXT = "to be or not to be\n" * 40
RUN = "import pyspark; print(pyspark.__version__); from coordinator.operating.cli import main; main()"

pytestmark = pytest.mark.spark


def test_the_lock_names_the_lowest_version_that_is_allowed():
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (lowest,) = re.findall(r"^pyspark>=([\d.]+),", "\n".join(allowed), re.MULTILINE)
    (locked,) = re.findall(r"^pyspark==([\d.]+) ", (ROOT / "requirements-lowest.lock").read_text(), re.MULTILINE)
    assert locked == f"{lowest}.0"


@pytest.mark.slow
@pytest.mark.redis
def test_words_are_counted_exactly(redis_backend, tmp_path):
    if not LOWEST.is_dir():
        absent("the lowest PySpark (tools/bootstrap.sh lowest-pyspark)")
    (tmp_path / "text.txt").write_text(TEXT)
    command = ["run", str(ROOT / "examples" / "word_count.py") + ":topology", "-p", "input=text.txt"]
    command += ["-p", "lines_per_batch=2", "--redis", redis_backend.url, "--master", "local[2]"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(LOWEST), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "4.1.0"
    counts = redis_backend.client(decode_responses=True).hgetall("{word_count}:counts")
    assert counts == {word: str(count) for word, count in Counter(TEXT.split()).items()}
