"""``txbatch explain``."""

from __future__ import annotations

from state.errors import FencedError
from state.troubles import Trouble


def test_the_command_that_an_error_names_explains_it(output) -> None:
    program, command, entry = FencedError("words").trouble.command.split()
    assert (program, command) == ("txbatch", "explain")
    assert output("explain", entry).startswith(
        "fenced: A newer run of this topology took over.\n\n`FencedError`, exit code 3."
    )


def test_without_an_error_all_are_listed(output) -> None:
    lines = output("explain").splitlines()
    assert lines[0] == "Your code:"
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [str(trouble) for trouble in Trouble]


def test_an_unknown_name_is_a_wrong_usage(complaint) -> None:
    first, second, *_ = complaint("explain fence").splitlines()
    assert first.startswith("txbatch: no entry 'fence'; give the name in the last line of an error")
    assert second == "  fenced: A newer run of this topology took over."
