"""``txbatch explain``."""

from __future__ import annotations

from functools import partial

import pytest

from state.errors import FencedError
from state.troubles import Trouble
from tests.support.cli.in_process import txbatch

ended = partial(txbatch, "explain")


def test_the_command_that_an_error_names_explains_it(capsys: pytest.CaptureFixture[str]) -> None:
    program, command, entry = FencedError("words").trouble.command.split()
    assert (program, command) == ("txbatch", "explain")
    assert ended(entry) == 0
    assert capsys.readouterr().out.startswith(
        "fenced: A newer run of this topology took over.\n\n`FencedError`, exit code 3."
    )


def test_without_an_error_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Your code:"
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [str(trouble) for trouble in Trouble]


def test_an_unknown_name_is_a_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("fence") == 2
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("txbatch: no entry 'fence'; give the name in the last line of an error")
    assert second == "  fenced: A newer run of this topology took over."
