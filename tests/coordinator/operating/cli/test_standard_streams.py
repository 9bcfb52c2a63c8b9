"""Commands end quietly where nobody reads their output, and say so where it cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

import pytest

from coordinator.operating.cli import main
from coordinator.operating.cli.exits import errors_reported
from coordinator.operating.cli.standard_streams import READER_GONE
from state.errors import StateUnreachableError

LONG = "a line of output\n" * 10_000
needs_a_full_device = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no device that is always full"
)


@contextmanager
def unread_output() -> Iterator[TextIO]:
    """Makes standard output a pipe whose reader is gone; a fixture could not, because capsys would replace it."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as stream, closing_in_nothing(stream), redirect_stdout(stream):
        yield stream


@contextmanager
def closing_in_nothing(stream: TextIO) -> Iterator[None]:
    """Lets a stream be closed that still holds what cannot be written."""
    yield
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@pytest.mark.parametrize("arguments", [("acl", "words"), ("--version",), ("--help",)], ids=lambda given: given[0])
def test_a_command_whose_output_nobody_reads_ends_without_a_word(arguments: tuple[str, ...], capsys) -> None:
    with unread_output(), pytest.raises(SystemExit) as end:
        main(arguments)
    assert (end.value.code, capsys.readouterr().err) == (READER_GONE, "")


def test_output_longer_than_a_buffer_ends_the_command_where_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with unread_output(), pytest.raises(SystemExit) as end, errors_reported():
        sys.stdout.write(LONG)
    assert (end.value.code, capsys.readouterr().err) == (READER_GONE, "")


def test_a_broken_socket_is_an_error_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, errors_reported():
        raise BrokenPipeError(32, "Broken pipe")
    assert end.value.code == 1
    assert "BrokenPipeError" in capsys.readouterr().err


def test_a_failure_keeps_its_code_where_nobody_reads_its_sentence() -> None:
    with unread_output() as stream, redirect_stderr(stream), pytest.raises(SystemExit) as end, errors_reported():
        raise StateUnreachableError("server is away")
    assert end.value.code == 4


@contextmanager
def output_on_a_full_disk() -> Iterator[None]:
    with Path("/dev/full").open("w", encoding="utf-8") as full, closing_in_nothing(full), redirect_stdout(full):
        yield


@needs_a_full_device
def test_output_that_cannot_be_written_is_said_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with output_on_a_full_disk(), pytest.raises(SystemExit) as end:
        main(["acl", "words"])
    assert (end.value.code, capsys.readouterr().err) == (
        1,
        "txbatch: standard output cannot be written: No space left on device; what it holds is not all\n",
    )


@needs_a_full_device
def test_long_output_that_cannot_be_written_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with output_on_a_full_disk(), pytest.raises(SystemExit) as end, errors_reported():
        sys.stdout.write(LONG)
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith("txbatch: standard output or a temporary file cannot be written: ")


def test_closed_streams_are_like_dev_null(tmp_path: Path) -> None:
    # a file that is opened while standard output is closed takes its number, and whatever a child prints ends in it
    script = (
        "import os, subprocess, sys; from coordinator.operating.cli import main\n"
        "try: main(['acl', 'words'])\n"
        "except SystemExit as end: code = end.code\n"
        f"os.open({str(tmp_path / 'data')!r}, os.O_WRONLY | os.O_CREAT)\n"
        "subprocess.run(['sh', '-c', 'echo from a child'], check=True)\n"
        "sys.exit(code)"
    )
    root = Path(__file__).resolve().parents[4]
    done = subprocess.run(["sh", "-c", 'exec "$0" -c "$1" >&- 2>&- <&-', sys.executable, script], cwd=root, check=False)
    assert done.returncode == 0
    assert (tmp_path / "data").read_bytes() == b""


@needs_a_full_device
def test_a_run_survives_a_standard_error_that_takes_nothing() -> None:
    script = (
        "from coordinator.operating.cli.standard_streams import prepare_streams; import logging, sys, warnings\n"
        "prepare_streams(); print('x' * 100_000, file=sys.stderr, flush=True); logging.error('y'); warnings.warn('z')\n"
        "sys.stdout.write('done')"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=full, check=False)
    assert (done.returncode, done.stdout) == (0, b"done")
