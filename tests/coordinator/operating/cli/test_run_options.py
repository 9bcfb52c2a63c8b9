"""The options of ``txbatch run`` that say what the user accepts."""

from __future__ import annotations

from typing import Any

import pytest

import coordinator.operating.cli.commands.run as run_module
from coordinator.operating.cli.run_command import TypedRun
from tests.support.cli.in_process import txbatch


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TypedRun]:
    """What would have been run."""
    runs: list[TypedRun] = []

    def noted(typed: TypedRun) -> int:
        runs.append(typed)
        return 0

    monkeypatch.setattr(run_module, "execute", noted)
    return runs


@pytest.mark.parametrize(
    ("arguments", "adopt"),
    [
        (["m:f"], False),
        (["m:f", "--adopt"], True),
        (["--adopt", "m:f"], True),
        (["--adopt", "m:f", "--max-pending", "3"], True),
        (["m:f", "--adopt=skip"], "skip"),
        (["--adopt=skip,again", "m:f"], "skip,again"),
        (["m:f", "--adopt=unchecked"], "unchecked"),
        (["--adopt=changed", "--", "m:f"], "changed"),
    ],
    ids=str,
)
def test_adopt_may_stand_alone_or_carry_words(asked: list[TypedRun], arguments: list[str], adopt: Any) -> None:
    assert txbatch("run", *arguments) == 0
    (typed,) = asked
    assert (typed.target, typed.request.options.adopt) == ("m:f", adopt)


@pytest.mark.parametrize("given", [[], ["--accept-state-changes"]])
def test_state_changes_are_accepted_by_their_own_option(asked: list[TypedRun], given: list[str]) -> None:
    txbatch("run", "m:f", *given)
    assert asked[0].request.options.accept_state_changes is bool(given)


@pytest.mark.parametrize("words", ["skip", "skip,again", "changed", "unchecked"])
def test_a_word_after_adopt_without_an_equals_sign_is_answered_with_the_right_form(asked, complaint, words) -> None:
    assert f"write --adopt={words}" in complaint("run m:f --adopt", words)
    assert asked == []
