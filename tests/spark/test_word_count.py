"""The word count by the command line, in a process of its own, on whichever PySpark is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = "to be or not to be\n" * 40

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.every_spark]


def command_line(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    command = [sys.executable, "-m", "coordinator.operating.cli", *arguments]
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, cwd=cwd, env=environment, check=False, capture_output=True, text=True)


@pytest.mark.nightly
def test_words_are_counted_exactly_and_doctor_finds_nothing_to_fix(redis_backend, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    target = [str(ROOT / "examples" / "word_count.py") + ":topology", "-p", "input=text.txt", "-p", "lines_per_batch=2"]
    where = ["--redis", redis_backend.url, "--master", "local[2]"]

    examined = command_line("doctor", *target, *where, cwd=tmp_path)
    done = command_line("run", *target, *where, cwd=tmp_path)

    assert examined.returncode == 0, examined.stdout + examined.stderr
    assert done.returncode == 0, done.stderr
    counts = redis_backend.client(decode_responses=True).hgetall("{word_count}:counts")
    assert counts == {word: str(count) for word, count in Counter(TEXT.split()).items()}
