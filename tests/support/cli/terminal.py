"""Runs a command on a terminal of its own, and keeps everything it shows there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Shown:
    """What a command showed.

    Attributes:
        code: exit code.
        output: standard output, a pipe.
        screen: standard error, the terminal: every line it ever showed, colours and movements left out.
    """

    code: int
    output: str
    screen: str


def on_terminal(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, columns: int = 100, timeout_s: float = 120
) -> Shown:
    """Runs a command whose standard error is a terminal.

    Args:
        command: program and arguments.
        folder: where it runs.
        environment: its variables; COLUMNS and LINES, which would hide the width of this terminal, are left out.
        columns: width of the terminal.
        timeout_s: longest time until it ends, in seconds.
    """
    ours, theirs = pty.openpty()
    inherited = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**inherited, "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        screen = _read_all(ours)
        output, _ = process.communicate(timeout=timeout_s)
    os.close(ours)
    return Shown(process.returncode, output, ESCAPES.sub("", screen.replace("\r", "\n")))


def _read_all(terminal: int) -> str:
    read = bytearray()
    while True:  # until the command has closed its end, which ends in an error on Linux and in nothing elsewhere
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        read += part
    return read.decode("utf-8", errors="replace")
