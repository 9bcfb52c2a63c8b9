"""A real server that is killed, and what a power cut would leave of its append-only file.

`kill -9` of a server loses nothing, because the kernel keeps what it has written. So strace writes down what the server
gives to the kernel and when it syncs it, and the file is cut where the last sync that has returned found it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import redis

START_TIMEOUT_S = 20.0
_WRITE = re.compile(r"write\(\d+<(?P<file>[^>]*\.incr\.aof)>.*\)\s+= (?P<count>\d+)$")
_SYNC = re.compile(r"f(data)?sync\(\d+<(?P<file>[^>]*\.incr\.aof)>\)\s+= 0$")
_BEGUN = re.compile(r"^(?P<pid>\d+) f(data)?sync\(\d+<(?P<file>[^>]*\.incr\.aof)>\s*<unfinished")
_ENDED = re.compile(r"^(?P<pid>\d+) <\.\.\. f(data)?sync resumed>.*= 0$")


class MortalServer:
    """One server with an append-only file, started by the test and ended with it; by its pid only.

    Args:
        program: of the server.
        port: where it listens on loopback; 0 for a Unix socket only.
        is_traced: strace writes down its syncs.
        options: of its command line.
    """

    def __init__(self, program: str, *options: str, port: int = 0, is_traced: bool = False) -> None:
        self._program, self._options, self.port, self._is_traced = program, options, port, is_traced
        self._folder = tempfile.TemporaryDirectory(prefix="txbatch-")  # not under pytest's: a socket's path is short
        self.folder = Path(self._folder.name)
        self.url = f"unix://{self.folder}/redis.sock"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> Self:
        """Starts it and returns once it answers."""
        socket = f"{self.folder}/redis.sock"
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", socket]
        command += ["--dir", str(self.folder), "--save", "", *self._options]
        if self._is_traced:
            trace = ["strace", "-f", "-y", "-s", "0", "-e", "trace=write,fsync,fdatasync", "-o", f"{self.folder}/trace"]
            command = [*trace, *command]
        with Path(self.folder, "server.log").open("ab") as log:
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                with self.client() as client:
                    self._pid = int(client.info("server")["process_id"])
                return self
            except redis.ConnectionError:
                assert time.monotonic() < deadline, Path(self.folder, "server.log").read_text()
                time.sleep(0.02)  # there is no event to wait for

    def client(self) -> redis.Redis:
        """A client of it."""
        return redis.Redis.from_url(self.url)

    def kill(self) -> None:
        """Ends exactly this server by SIGKILL."""
        subprocess.run(["kill", "-9", str(self._pid)], check=True)
        self._processes.pop().wait(START_TIMEOUT_S)

    def cut_power(self) -> int:
        """Kills it, takes away what was not synced, and returns how many bytes that were."""
        self.kill()
        trace = Path(self.folder, "trace").read_text(errors="replace").splitlines()
        synced = synced_bytes(trace)
        lost = 0
        for path in Path(self.folder, "appendonlydir").glob("*.incr.aof"):
            kept = synced.get(path.name, 0)
            lost += path.stat().st_size - kept
            with path.open("ab") as file:
                file.truncate(kept)
        return lost

    def close(self) -> None:
        """Ends it, and removes its folder."""
        if self._processes:
            self.kill()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def synced_bytes(trace: list[str]) -> dict[str, int]:
    """Name of each append-only file -> how many of its bytes were written before the last sync that has returned."""
    written: dict[str, int] = {}
    synced: dict[str, int] = {}
    under_way: dict[str, tuple[str, int]] = {}
    for line in trace:
        if found := _WRITE.search(line):
            name = Path(found["file"]).name
            written[name] = written.get(name, 0) + int(found["count"])
        elif found := _SYNC.search(line):
            name = Path(found["file"]).name
            synced[name] = written.get(name, 0)
        elif found := _BEGUN.search(line):
            name = Path(found["file"]).name
            under_way[found["pid"]] = (name, written.get(name, 0))
        elif (found := _ENDED.search(line)) and found["pid"] in under_way:
            name, count = under_way.pop(found["pid"])
            synced[name] = max(synced.get(name, 0), count)
    return synced


def has_strace() -> bool:
    """Whether strace is there and may trace."""
    program = shutil.which("strace")
    return program is not None and subprocess.run([program, "-o", "/dev/null", "true"], check=False).returncode == 0
