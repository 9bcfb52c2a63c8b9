"""Commands that messages suggest work as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.cli.suggestions import server_options, with_server_options

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
    assert with_server_options(MESSAGE, server_options(redis_url, data_dir)).endswith(f"start over with {command}")


def test_a_suggested_command_does_not_show_the_password() -> None:
    assert "hunt'er" not in with_server_options(MESSAGE, server_options("redis://:hunt'er@host:6379", None))


def test_other_text_in_backticks_is_left_alone() -> None:
    assert with_server_options("call `drain`, see `txbatch status`", " --data-dir d") == (
        "call `drain`, see `txbatch status`"
    )
