"""``make demo`` in a folder where nothing is yet: the first thing a newcomer runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = [pytest.mark.nightly, pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(300)]


def demo(folder: Path) -> str:
    command = [sys.executable, str(ROOT / "tools" / "demo.py"), "--lines", "3000", "--data-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def test_the_demo_counts_exactly_from_nothing_and_finds_nothing_to_do_the_second_time(tmp_path):
    assert "3 transactions committed" in (said := demo(tmp_path / ".txbatch")), said
    assert "has its exact count" in said
    assert said.index("Three things to try next") < said.index("txbatch drop demo") < said.index("txbatch init visits")
    again = demo(tmp_path / ".txbatch")
    assert "Everything was committed already, up to transaction 3" in again
    assert "has its exact count" in again


def test_the_readme_word_count_runs_next_to_the_demo_in_one_folder(tmp_path):
    demo(tmp_path / ".txbatch")
    (tmp_path / "lines.txt").write_text("to be\nor not to be\n")
    command = [str(Path(sys.executable).with_name("txbatch")), "run", "examples.word_count:topology"]
    command += ["-p", f"input={tmp_path}/lines.txt", "--data-dir", str(tmp_path / ".txbatch"), "--master", "local[2]"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
