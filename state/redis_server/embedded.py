"""A private server for one data directory: nothing to install, nothing to configure, nothing left running.

Two servers in one directory would mix their histories without an error. The directory is therefore locked, and the
server process itself holds the lock: while it can write there, no other server starts. A process that finds the
directory's server running attaches to it instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from state.errors import StateRefusedError
from state.redis_server import supervisor as redis_supervisor
from state.redis_server.program import find_server_program
from state.troubles import Trouble

PRIVATE_MODE = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(path: Path, *, own_names: frozenset[str], is_ours: bool = False) -> None:
    """Creates `path` if it is missing, and closes it to all other users (driver, before a server starts).

    By mistake, the user may have named a folder in which others work. So a folder open to others is closed only if it
    holds nothing but `own_names`, or if `is_ours` marks it as txbatch's. Otherwise an OSError is raised.
    """
    path.mkdir(mode=PRIVATE_MODE, parents=True, exist_ok=True)
    for found in (path.lstat(), path.stat()):  # a symbolic link, possibly somebody else's, and its target
        if found.st_uid != os.getuid():
            raise PermissionError(f"{path} belongs to user {found.st_uid}, but txbatch runs as user {os.getuid()}")
    if not found.st_mode & _OTHERS:
        return
    foreign = sorted({entry.name for entry in path.iterdir()} - own_names)
    if foreign and not is_ours:
        raise PermissionError(
            f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o}) and holds {foreign[0]!r}, which is "
            "not a file of txbatch; if the directory is for txbatch alone, chmod 700 it"
        )
    path.chmod(PRIVATE_MODE)


START_TIMEOUT_S = 15.0
"""How long an ending server may take to release the lock, or a new one to answer."""
POLL_S = 0.02
LOCK_FILE = "lock"
OWN_FOLDER = ".txbatch"
"""A folder of this name is a data directory, whatever else it holds."""
OWN_NAMES = frozenset({LOCK_FILE, "server.json", "server.log", "redis.sock", "appendonlydir"})
"""The names of all entries of a data directory."""
CUT_MESSAGE = b"Truncating the AOF"
"""Part of a server's log when it cuts the end of its append-only file, as after a power failure."""
SOCKET_PATH_LIMIT = 100
"""Longest socket path, in bytes; kernels allow 104 to 108."""
SPARE_BLOCKS = "glibc.malloc.tcache_count=65535"
"""How many freed blocks of a size the C library caches: the maximum, instead of 7.

Valkey's wheel uses the C library's allocator. With 7, changing a large hash takes two to three times as long.
"""


class EmbeddedServer:
    """The server of one data directory, started or attached to; lives in the driver.

    Args:
        data_dir: the directory of the append-only file, the lock, the log and the socket; created if missing. It is
            private to this user: a directory open to others is closed to them if it holds nothing else, or refused.
        syncs_always: makes the server sync every write, even if another process has started it; see
            `RunOptions.durability`.
        program: path of the server program; None finds one.
        start_timeout_s: how long `ensure` tries.
        clock, sleep: in seconds; injected by tests.
    """

    def __init__(
        self,
        data_dir: str | Path = ".txbatch",
        *,
        syncs_always: bool = False,
        program: str | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.data_dir = Path(data_dir).resolve()
        self._syncs_always = syncs_always
        self._program, self._start_timeout_s = program, start_timeout_s
        self._clock, self._sleep = clock, sleep
        self._socket_path = socket_path_of(self.data_dir)
        self._mutex: threading.RLock | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._log_seen = -1
        self._pipe_fd = -1
        self._owner_pid = -1

    @property
    def url(self) -> str:
        """The server's address; restarts do not change it."""
        return f"unix://{quote(str(self._socket_path))}"

    @property
    def is_owned(self) -> bool:
        """Whether this process started the running server, in which case `close` stops it."""
        return self._supervisor is not None and self._owner_pid == os.getpid()

    def start(self) -> Self:
        """Creates the directory and starts its server, or attaches to it; called once, before anything else.

        Raises:
            StateRefusedError: there is no server program, another process holds the directory, or the server does not
                start (the message then quotes its log).
        """
        try:
            is_ours = self.data_dir.name == OWN_FOLDER or (self.data_dir / LOCK_FILE).is_file()
            make_private(self.data_dir, own_names=OWN_NAMES, is_ours=is_ours)
            make_private(self._socket_path.parent, own_names=OWN_NAMES)
        except OSError as error:
            reason = error.strerror or str(error)
            raise StateRefusedError(
                f"data directory {str(self.data_dir)!r} cannot be used: {reason}; or choose another --data-dir"
            ).about(Trouble.EMBEDDED_SERVER) from error
        self._mutex = threading.RLock()
        self.ensure()
        return self

    def ensure(self) -> None:
        """Attaches to the directory's server, or starts it under the lock; may be called from any thread.

        `RedisStore` uses this as its `revive` hook.

        Raises:
            StateRefusedError: as `start`.
        """
        if self._mutex is None:
            raise StateRefusedError("embedded server was used before it was started; call start() first")
        with self._mutex:
            self._attach_or_launch()
            self._await_loaded()
            if self.is_owned:
                self._rewrite_cut_file()
            if self._syncs_always:
                self._sync_always()

    def close(self) -> None:
        """Stops the server if this process started it, and waits until it is gone."""
        if not self.is_owned:
            return
        supervisor, self._supervisor = self._supervisor, None
        os.close(self._pipe_fd)
        if supervisor is not None and supervisor.wait() < 0 and self._attach(orphan=True):
            self._shut_down()  # the supervisor was killed, so this process stops the server

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _attach_or_launch(self) -> None:
        deadline = self._clock() + self._start_timeout_s
        while not self._attach():
            lock_fd = self._try_lock()
            if lock_fd is not None:
                try:
                    if not self._attach():  # another process may have started it meanwhile
                        self._launch(lock_fd)
                finally:
                    os.close(lock_fd)
                return
            if self._clock() > deadline:
                if self._attach(orphan=True):  # its supervisor was killed too, so nothing will stop it
                    return
                holder = self._noted().get("pid", "?")
                raise StateRefusedError(
                    f"data directory {str(self.data_dir)!r} is in use by process {holder}, which does "
                    "not answer; stop that process, or choose another --data-dir"
                ).about(Trouble.EMBEDDED_SERVER)
            self._sleep(POLL_S)

    def _await_loaded(self) -> None:
        """Waits while the server loads its file; it answers INFO meanwhile, so the wait ends if the server dies."""
        with self._client() as client, contextlib.suppress(redis.RedisError, KeyError):
            while client.info("persistence")["loading"]:
                self._sleep(POLL_S)

    def _rewrite_cut_file(self) -> None:
        """Makes the server rewrite its file after it has cut it: Redis 7 may leave half a write at the end.

        That half is not in its memory, but the next restart would apply it. If the rewrite fails, the function library
        finds the half write after that restart, and refuses the state.
        """
        with (self.data_dir / "server.log").open("rb") as log:
            log.seek(self._log_seen)
            is_cut = CUT_MESSAGE in log.read()
            self._log_seen = log.tell()
        if is_cut:
            with self._client() as client, contextlib.suppress(redis.RedisError, KeyError):
                client.bgrewriteaof()
                while client.info("persistence")["aof_rewrite_in_progress"]:
                    self._sleep(POLL_S)

    def _sync_always(self) -> None:
        """Makes the server sync every write; a server that has just died is noticed at its next use."""
        with self._client() as client, contextlib.suppress(redis.RedisError):
            client.config_set("appendfsync", "always")

    def _noted(self) -> dict[str, Any]:
        try:
            noted = json.loads((self.data_dir / "server.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return noted if isinstance(noted, dict) else {}

    def _attach(self, *, orphan: bool = False) -> bool:
        """Returns whether the directory's server answers; one whose owner is gone counts only with `orphan`."""
        noted = self._noted()
        if not orphan and not _is_alive(noted.get("owner")):
            return False
        return "run_id" in noted and self._answers() == noted["run_id"]

    def _answers(self) -> str | None:
        """Returns the run id of the server that listens on the socket, or None."""
        try:
            with self._client() as client:
                return str(client.info("server")["run_id"])
        except (redis.RedisError, KeyError):
            return None

    def _shut_down(self) -> None:
        with self._client() as client, contextlib.suppress(redis.RedisError):
            client.shutdown()
        deadline = self._clock() + self._start_timeout_s
        while (lock_fd := self._try_lock()) is None and self._clock() < deadline:
            self._sleep(POLL_S)
        if lock_fd is not None:
            os.close(lock_fd)

    def _client(self) -> redis.Redis:
        return redis.Redis(
            unix_socket_path=str(self._socket_path),
            retry=Retry(NoBackoff(), 0),
            socket_timeout=5.0,
            protocol=2,
        )

    def _try_lock(self) -> int | None:
        lock_fd = os.open(self.data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock_fd)
            return None
        return lock_fd

    def _launch(self, lock_fd: int) -> None:
        self._forget_supervisor()
        with contextlib.suppress(FileNotFoundError):
            (self.data_dir / "server.json").unlink()
        program = self._program or find_server_program()
        read_fd, write_fd = os.pipe()
        numbers = [str(read_fd), str(lock_fd), str(os.getpid())]
        tunables = ":".join(filter(None, (SPARE_BLOCKS, os.environ.get("GLIBC_TUNABLES"))))  # the last one wins
        with (self.data_dir / "server.log").open("ab") as log:
            self._log_seen = log.tell()
            supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", redis_supervisor.__file__, *numbers, *self._command(program)],
                env={**os.environ, "GLIBC_TUNABLES": tunables},
                pass_fds=(read_fd, lock_fd),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is meant for the driver, which still needs the server
            )
        os.close(read_fd)
        self._supervisor, self._pipe_fd, self._owner_pid = supervisor, write_fd, os.getpid()
        try:
            self._await_answer(supervisor)
        except BaseException:
            self.close()
            raise

    def _await_answer(self, supervisor: subprocess.Popen[bytes]) -> None:
        deadline = self._clock() + self._start_timeout_s
        while (run_id := self._answers()) is None:
            if supervisor.poll() is not None or self._clock() > deadline:
                raise StateRefusedError(
                    f"embedded server did not start in {str(self.data_dir)!r}; its log ends:\n{self._log_tail()}"
                ).about(Trouble.EMBEDDED_SERVER)
            self._sleep(POLL_S)
        note = self.data_dir / f".server.json.{os.getpid()}"
        content = {
            "pid": self._server_pid(),
            "owner": os.getpid(),
            "socket": str(self._socket_path),
            "run_id": run_id,
        }
        note.write_text(json.dumps(content), encoding="utf-8")
        note.replace(self.data_dir / "server.json")

    def _server_pid(self) -> int:
        with self._client() as client:
            return int(client.info("server")["process_id"])

    def _forget_supervisor(self) -> None:
        """Reaps the supervisor of a server that has died."""
        if self._supervisor is not None:
            os.close(self._pipe_fd)
            self._supervisor.wait()
            self._supervisor = None

    def _command(self, program: str) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._socket_path),
            "unixsocketperm": "700",
            "dir": str(self.data_dir),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        return [program, *(part for name, value in options.items() for part in (f"--{name}", value))]

    def _log_tail(self) -> str:
        text = (self.data_dir / "server.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-8:])


def socket_path_of(data_dir: Path) -> Path:
    """Returns the socket path of a resolved directory: inside it, or elsewhere if that is too long for a kernel."""
    digest = hashlib.blake2b(os.fsencode(data_dir), digest_size=8).hexdigest()
    elsewhere = (Path(folder) / f"txbatch-{os.getuid()}-{digest}" for folder in (tempfile.gettempdir(), "/tmp"))
    paths = [folder / "redis.sock" for folder in (data_dir, *elsewhere)]
    return next((path for path in paths if len(os.fsencode(path)) < SOCKET_PATH_LIMIT), paths[-1])


def _is_alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
