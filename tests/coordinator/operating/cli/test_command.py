"""What commands share: options that are written once, ``--debug``, exit codes, suggested commands that work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from coordinator.operating.cli.app import Commands
from coordinator.operating.cli.command import AsJson, ServerOptions, command
from coordinator.operating.cli.terminal import say_json
from state.errors import StateRefusedError

SERVER = ("redis", "data_dir", "allow_plaintext")
OF_A_CHECKOUT = ("bench",)


def every_command() -> Iterator[tuple[str, Any]]:
    for name, found in Commands().items():
        for below, each in getattr(found, "commands", {"": found}).items():
            yield f"{name} {below}".strip(), each


def test_every_command_shows_its_tracebacks_on_request() -> None:
    without = [name for name, each in every_command() if "debug" not in {given.name for given in each.params}]
    assert without == list(OF_A_CHECKOUT)


def test_a_server_is_named_in_the_same_way_everywhere() -> None:
    found = [
        tuple((given.name, given.opts, given.help, given.default) for given in each.params if given.name in SERVER)
        for _, each in every_command()
    ]
    assert len([server for server in found if server]) > 20
    assert len(set(map(repr, filter(None, found)))) == 1


def try_out(body: Any, *arguments: str) -> Any:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command(body))
    return CliRunner().invoke(app, arguments)


def test_the_options_of_a_value_arrive_as_that_value_and_what_is_returned_is_the_exit_code() -> None:
    def body(*, server: ServerOptions, as_json: AsJson = False) -> int:
        """Does something."""
        say_json([server.redis, server.data_dir, server.allow_plaintext, as_json])
        return 4

    ended = try_out(body, "--json", "--redis", "redis://h:1", "--allow-plaintext")
    assert (ended.exit_code, ended.output) == (4, '["redis://h:1", null, true, true]\n')


@pytest.mark.parametrize(("given", "shown"), [((), 0), (("--debug",), 1)])
def test_what_a_command_raises_is_a_sentence_with_the_server_that_was_typed(given: tuple[str, ...], shown: int) -> None:
    def body(*, server: ServerOptions) -> None:
        raise StateRefusedError("broken; `txbatch drop words`")

    ended = try_out(body, "--redis", "redis://:hunter22@h:1", *given)
    assert ended.exit_code == 4
    assert "txbatch: broken; `txbatch drop words --redis redis://h:1`\n" in ended.output
    assert ended.output.count("Traceback (most recent call last)") == shown
    assert "hunter22" not in ended.output


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
def test_a_suggested_drop_repeats_the_server_options_that_were_given(redis_url, data_dir, command) -> None:
    assert ServerOptions(redis=redis_url, data_dir=data_dir).completed(MESSAGE).endswith(f"start over with {command}")


def test_a_suggested_command_does_not_show_the_password_and_other_text_in_backticks_is_left_alone() -> None:
    assert "hunt'er" not in ServerOptions(redis="redis://:hunt'er@host:6379").completed(MESSAGE)
    text = "call `drain`, see `txbatch status`"
    assert ServerOptions(data_dir=Path("d")).completed(text) == text
