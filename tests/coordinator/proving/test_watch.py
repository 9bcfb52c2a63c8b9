"""What user code does is seen with its line, and what libraries or txbatch do is not taken for it."""

from __future__ import annotations

import datetime as dt
import os
import random
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator.proving.forked import in_a_copy
from coordinator.proving.watch import Watch, drawn_by
from state.errors import TransactionError


class Component:
    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def finish_batch(self) -> None:
        self.act()  # here


def seen(act: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """What is drawn and what is done outside, by a component that acts; in a copy, because audit hooks stay."""

    def run() -> tuple[list[str], list[str]]:
        watch = Watch({Component: "count"})
        with watch:
            Component(act).finish_batch()
        for each in (*watch.seen.draws, *watch.seen.effects):
            assert (each.component_id, each.place.rpartition(":")[0]) == ("count", __file__)
        return [each.what for each in watch.seen.draws], [each.what for each in watch.seen.effects]

    return in_a_copy(run)


@pytest.mark.parametrize(
    ("act", "drawn"),
    [
        (random.random, ["random.random()"]),
        (lambda: random.Random().randint(1, 5), ["random.randint()"]),
        (time.time, ["time.time()"]),
        (dt.datetime.now, ["datetime.now()"]),
        (dt.date.today, ["date.today()"]),
        (uuid.uuid4, ["uuid.uuid4()"]),
        (secrets.token_hex, ["secrets.token_hex()"]),
        (lambda: dt.datetime.fromtimestamp(0, dt.UTC).isoformat(), []),
        (lambda: sorted([3, 1, 2]), []),
    ],
)
def test_draws_are_named_as_they_were_called(act: Callable[[], Any], drawn: list[str]) -> None:
    assert seen(act)[0] == drawn


def test_effects_are_named_and_reading_is_none(tmp_path: Path) -> None:
    file, text = tmp_path / "file", tmp_path / "text"
    text.write_text("to read")
    assert seen(partial(file.write_text, "x"))[1] == [f"opens '{file}' to write"]
    assert seen(partial(os.mkdir, str(file) + "s"))[1] == [f"os.mkdir('{file}s')"]
    assert seen(partial(subprocess.run, ["true"], check=True))[1] == ["subprocess.Popen"]
    assert seen(text.read_text)[1] == []


def _scratch(folder: Path) -> None:
    file = folder / "scratch"
    file.write_text("x")
    file.write_text("y")
    file.unlink()


def _scratch_folder(_: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "inner").mkdir()
        Path(folder, "inner", "file").write_text("x")


def _written(create: Callable[[], Any], _: Path) -> None:
    with create() as file:
        file.write(b"x")


def _named_again(_: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a").write_text("x")
        Path(folder, "a").rename(Path(folder, "b"))
        Path(folder, "link").symlink_to("b")
        Path(folder, "c").hardlink_to(Path(folder, "b"))
        os.truncate(Path(folder, "b"), 0)


def _with_rights(_: Path) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).chmod(0o600)
        os.truncate(file.name, 0)


def _into_nothing(_: Path) -> None:
    with Path(os.devnull).open("w") as file, redirect_stdout(file):
        sys.stdout.write("x")


def _in_memory(_: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("create table t (a)")


@pytest.mark.parametrize(
    "act",
    [
        _scratch,
        _scratch_folder,
        partial(_written, tempfile.TemporaryFile),
        partial(_written, tempfile.NamedTemporaryFile),
        _named_again,
        _with_rights,
        _into_nothing,
        _in_memory,
    ],
)
def test_what_is_created_and_gone_at_the_end_of_a_transaction_is_no_effect(tmp_path, act) -> None:
    assert seen(partial(act, tmp_path))[1] == []


def _renames(folder: Path) -> None:
    (folder / "new").write_text("x")
    (folder / "new").rename(folder / "others")


def _moves_out(folder: Path) -> None:
    (folder / "scratch").mkdir()
    (folder / "scratch" / "new").write_text("x")
    (folder / "scratch" / "new").rename(folder / "others")
    (folder / "scratch").rmdir()


def _in_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.close(os.open("left", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def _removes_and_writes(folder: Path) -> None:
    (folder / "others").unlink()
    (folder / "others").write_text("x")
    (folder / "others").unlink()


def _signals(_: Path) -> None:
    with suppress(PermissionError):
        os.kill(1, 0)


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda folder: (folder / "others").chmod(0o600), "os.chmod('{}/others')"),
        (_signals, "os.kill(1)"),
        (lambda _: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0), "os.posix_spawn('/bin/true')"),
        (lambda folder: (folder / "others").unlink(), "os.remove('{}/others')"),
        (_moves_out, "os.rename('{}/scratch/new')"),
        (_renames, "os.rename('{}/new')"),
        (_in_folder, "opens 'left' to write"),
        (_removes_and_writes, "os.remove('{}/others')"),
    ],
)
def test_what_stays_or_was_of_others_is_an_effect(tmp_path: Path, act: Callable[[Path], None], what: str) -> None:
    (tmp_path / "others").write_text("of others")
    assert seen(partial(act, tmp_path))[1] == [what.format(tmp_path)]


def test_what_a_builtin_function_draws_depends_on_its_owner() -> None:
    assert drawn_by(random.Random(5).random) == "random.random()"
    assert drawn_by(time.sleep) == ""
    assert drawn_by(len) == ""


def test_a_copy_returns_or_raises_what_the_original_would() -> None:
    def refuse() -> None:
        raise ValueError("of the copy")

    assert in_a_copy(lambda: {"a": [1, 2]}) == {"a": [1, 2]}
    with pytest.raises(ValueError, match="of the copy"):
        in_a_copy(refuse)
    with pytest.raises(TransactionError, match="with signal 9"):
        in_a_copy(lambda: os.kill(os.getpid(), 9))
