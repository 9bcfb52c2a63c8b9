"""Keeps a server alive exactly as long as the process that needs it; run as a script.

    python redis_supervisor.py PIPE_FD LOCK_FD PARENT_PID SERVER ARGUMENT...

The parent holds the write end of the pipe: when it ends, even by kill -9, the read end reaches end of file and the
server is stopped. The server inherits the lock's descriptor, which is closed here, so the directory stays locked
exactly as long as a server may write to it. This process lives as long as the run, so it imports little, only from the
standard library.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

POLL_S = 0.5
"""How often to check whether server and parent are alive; the pipe wakes us at once."""
STOP_TIMEOUT_S = 10.0


def main(arguments: list[str]) -> int:
    """Starts the server, waits until it or the parent ends, and returns the server's exit code."""
    pipe_fd, lock_fd, parent_pid = int(arguments[0]), int(arguments[1]), int(arguments[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ignore)
    server = subprocess.Popen(arguments[3:], stdin=subprocess.DEVNULL, pass_fds=(lock_fd,))
    os.close(lock_fd)
    while server.poll() is None and os.getppid() == parent_pid:
        if select.select([pipe_fd], [], [], POLL_S)[0]:
            break
    return _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> int:
    if server.poll() is None:
        server.terminate()
    try:
        return server.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


def _ignore(_number: int, _frame: object) -> None:
    """Ignores the signal; unlike SIG_IGN, a handler is not inherited by the server."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
