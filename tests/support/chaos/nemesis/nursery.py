"""Forks drivers from a process that has imported everything, so that a restart takes milliseconds; run as a program.

    python -m tests.support.chaos.nemesis.nursery

A line on standard input is a `DriverSpec`; the answer on standard output is ``started PID``, and when that process has
ended ``ended PID CODE``, with minus the signal's number as the code of one that was killed. At the end of the input
all of them are killed. There are no threads, so a fork is safe.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback

from tests.support.chaos.nemesis.driver_program import drive
from tests.support.chaos.nemesis.driver_spec import DriverSpec

CRASHED = 70
"""Exit code of a driver that ended by an exception nobody had planned."""


def _ignore(_number: int, _frame: object) -> None:
    """Only wakes `select`, by the descriptor that Python writes to."""


def main() -> None:
    """Answers requests until standard input ends."""
    wake_read, wake_write = os.pipe()
    for descriptor in (wake_read, wake_write):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, _ignore)
    children: set[int] = set()
    request = b""
    while True:
        ready, _, _ = select.select([0, wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _reap(children)
        if 0 in ready:
            data = os.read(0, 1 << 16)
            if not data:
                break
            request += data
            while b"\n" in request:
                line, _, request = request.partition(b"\n")
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    os._exit(_child(DriverSpec.from_line(line.decode())))
                children.add(pid)
                _say(f"started {pid}")
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _reap(children: set[int]) -> None:
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            children.discard(pid)
            _say(f"ended {pid} {os.waitstatus_to_exitcode(status)}")


def _child(spec: DriverSpec) -> int:
    nowhere = os.open(os.devnull, os.O_RDWR)
    said = os.open(f"{spec.notes_path}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for old, new in ((nowhere, 0), (said, 1), (said, 2)):
        os.dup2(old, new)
    try:
        return drive(spec)
    except BaseException:  # noqa: BLE001 - the process ends here
        os.write(2, traceback.format_exc().encode())
        return CRASHED


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
