"""Servers of our own: Redis or Valkey processes in temporary folders, on loopback or a Unix socket, ended by pid."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from random import Random
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.chaos.jobs import POLL_S

START_TIMEOUT_S = 15.0
ANSWER_TIMEOUT_S = 10.0
EVERYSEC, ALWAYS = "everysec", "always"
"""With `everysec` the server may answer before it writes: while a slow fsync runs, it holds the file back for up to two
seconds. A kill -9 then loses answered writes, as a power failure does."""
NEWEST_BYTES = 40_000
"""Most bytes that a cut takes off the end, apart from the one in eight that takes up to half of the file."""


def free_port() -> int:
    """A loopback port that nothing listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Server:
    """One server process, started, stopped, killed and damaged at will; its data stay in its folder.

    Args:
        program: path of redis-server or valkey-server.
        folder: for its data, its log and its socket.
        append_only: whether it keeps an append-only file; a replica of ours does without.

    Attributes:
        port: where it listens, on loopback.
        fsync: `EVERYSEC` or `ALWAYS`, from the next start on.
    """

    def __init__(self, program: str, folder: Path, *, append_only: bool = True) -> None:
        self.folder, self.program, self._append_only = folder, program, append_only
        self.port = free_port()
        self.fsync = EVERYSEC
        self._kept = folder / "kept"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def program_name(self) -> str:
        """redis-server or valkey-server."""
        return Path(self.program).name

    @property
    def keeps_halves(self) -> bool:
        """Whether it leaves half a write in a file that was cut there; operations says what to do about it."""
        return self.program_name == "redis-server"

    def rewrite(self) -> None:
        """Has it rewrite its append-only file from what it holds, so that no half of a write stays in it."""
        with self.client() as client:
            client.bgrewriteaof()
            while client.info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(POLL_S)

    @property
    def url(self) -> str:
        """Its Unix socket."""
        return f"unix://{self.folder}/redis.sock"

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    def client(self, **options: Any) -> redis.Redis:
        """A client that never retries; the caller closes it."""
        return redis.Redis(
            unix_socket_path=f"{self.folder}/redis.sock",
            retry=Retry(NoBackoff(), 0),
            socket_timeout=ANSWER_TIMEOUT_S,
            **options,
        )

    def start(self) -> None:
        """Starts it and waits until it has loaded what it has."""
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": f"{self.folder}/redis.sock",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "yes" if self._append_only else "no",
            "appendfsync": self.fsync,
            "auto-aof-rewrite-percentage": "0",
            "repl-diskless-sync": "yes",
            "repl-diskless-sync-delay": "0",
            "maxmemory-policy": "noeviction",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        with self.client() as client:
            while not self._is_ready(client):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log_end = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"server in {self.folder} did not start:\n{log_end}")
                time.sleep(POLL_S)

    @staticmethod
    def _is_ready(client: redis.Redis) -> bool:
        with contextlib.suppress(redis.RedisError):
            return bool(client.ping())
        return False

    def is_running(self) -> bool:
        """Whether the process exists."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """kill -9; what it has written stays in the page cache, so nothing is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def cut(self, draw: Random) -> int:
        """Takes bytes off the end of its append-only file, as a power failure does; returns how many.

        The server must have been killed. Half of a cut lands in the middle of a command, which the server then drops.
        """
        log = max(self.folder.glob("appendonlydir/*.incr.aof"), key=lambda path: int(path.name.split(".")[2]))
        size = log.stat().st_size
        most = size // 2 if draw.randrange(8) == 0 else min(size // 2, NEWEST_BYTES)
        lost = int(most ** draw.random())
        os.truncate(log, size - lost)
        return lost

    def keep(self) -> None:
        """Copies what it has on disk, as a backup does; `go_back` returns to the last copy."""
        self.rewrite()
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self.folder / "appendonlydir", self._kept)

    def go_back(self) -> None:
        """Puts the last copy in the place of its data; it must have been killed."""
        shutil.rmtree(self.folder / "appendonlydir")
        shutil.copytree(self._kept, self.folder / "appendonlydir")

    def wipe(self) -> None:
        """Deletes its data; it must have been killed."""
        for path in [*self.folder.glob("appendonlydir/*"), *self.folder.glob("*.rdb")]:
            path.unlink()
