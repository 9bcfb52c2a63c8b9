"""Commands that messages suggest work as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.cli.command_options import ServerOptions

MESSAGE = "restore the data, or start over with `txbatch drop words`"


@pytest.mark.parametrize(
    ("redis_url", "data_dir", "command"),
    [
        (None, None, "`txbatch drop words`"),
        (None, Path("data"), "`txbatch drop words --data-dir data`"),
        (None, Path("my data"), "`txbatch drop words --data-dir 'my data'`"),
        ("redis://host:6379", None, "`txbatch drop words --redis redis://host:6379`"),
    ],
)
def test_a_suggested_drop_repeats_the_server_options_that_were_given(
    redis_url: str | None, data_dir: Path | None, command: str
) -> None:
    assert ServerOptions(redis=redis_url, data_dir=data_dir).completed(MESSAGE).endswith(f"start over with {command}")


def test_a_suggested_command_does_not_show_the_password() -> None:
    assert "hunt'er" not in ServerOptions(redis="redis://:hunt'er@host:6379").completed(MESSAGE)


def test_other_text_in_backticks_is_left_alone() -> None:
    text = "call `drain`, see `txbatch status`"
    assert ServerOptions(data_dir=Path("d")).completed(text) == text
