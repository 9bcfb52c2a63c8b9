"""Whole jobs are measured in turn, each as a process of its own, and a wrong answer or a failed job is not a figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.whole_job import Side, compare


def side(program: str, *, is_exact: bool = True) -> Side:
    return Side(lambda data_dir: ["-c", program], lambda data_dir: is_exact)


def test_sides_take_turns_and_every_other_round_goes_backwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    assert compare({"one": side("pass"), "two": side("pass")}, rounds=2, results=results) == 0
    measured = json.loads(results.read_text(encoding="utf-8"))["cases"]
    assert [(entry["case"], len(entry["results"])) for entry in measured] == [("one", 2), ("two", 2)]
    story = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in story] == ["one", "two", "two", "one"]


def test_a_wrong_answer_makes_the_command_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare({"one": side("pass"), "two": side("pass", is_exact=False)}, rounds=1) == 1
    assert "WRONG" in capsys.readouterr().err


def test_a_job_that_fails_ends_the_comparison_with_what_it_said() -> None:
    with pytest.raises(SystemExit, match=r"one ended with 3:\nno text here"):
        compare({"one": side("import sys; print('no text here'); sys.exit(3)")}, rounds=1)
