"""Watches Spark's Java process: a call into it may take as long as it needs, but ends if that process is lost.

Calls into the Java process have no timeout of their own, and must not have one: a job may take minutes, and is
cancelled by other means. So the process is pinged every few seconds, which it answers within a millisecond. Once a ping
is not answered, or the process or the application is gone, every waiting call ends with an `EngineError`. A process
that belongs to us is killed, which frees whatever else hangs on it.
"""

from __future__ import annotations

import errno
import logging
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from coordinator.engines.spark.lane import Lane
from state.errors import EngineError
from state.troubles import Trouble

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger("txbatch.spark")
PING_S = 2.0
SILENCE_MAX_S = 30.0
SILENCE_PARTS = 6
"""The number of parts in which a ping is waited for: a suspended machine or terminal loses one of them, not all."""
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
FULL_DISK_TEXT = re.compile(r"No space left on device|Disk quota exceeded")
MAKE_ROOM = "the disk below spark.local.dir is full: make room, or name another folder by --conf spark.local.dir=DIR"
ADVICE = "nothing that was committed is lost; run again"
END_TIMEOUT_S = 2.0
OUT_OF_MEMORY_CODES = (3, 52)
"""The exit codes of Spark and the Java machine when memory runs out."""
NO_FOLDER_CODE = 53
"""The exit code of Spark when no local folder can be made."""
Result = TypeVar("Result")


class GatewayProcess:
    """The Java process at the other end of a gateway.

    Args:
        gateway: py4j's gateway.
        is_ours: whether this package has started the process, and so may end it.
        context: the application to ask about; None asks the process only.
    """

    def __init__(self, gateway: Any, *, is_ours: bool, context: SparkContext | None = None) -> None:
        self._system = gateway.jvm.java.lang.System
        self._popen: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
        self._is_ours = is_ours
        self._application = None if context is None else context._jsc.sc()  # noqa: SLF001 - its only name

    def ping(self) -> bool:
        """Returns whether the application runs; raises any error if the process is gone, blocks while it is frozen."""
        if self._application is None:
            self._system.nanoTime()
            return True
        return not self._application.isStopped()

    def name(self) -> str:
        """Returns the name of the process in messages."""
        return "Spark's Java process" + (f" (pid {self._popen.pid})" if self._popen is not None else "")

    def how_it_ended(self) -> str:
        """Returns how the process ended, as far as that is known after a ping that raised an error."""
        if self._popen is None:
            return "its connection is broken"
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(END_TIMEOUT_S)
        code = self._popen.returncode
        if code is None:
            return "its connection is broken, though it runs"
        if code == -signal.SIGKILL:
            return "it was killed by signal 9, as the kernel does when the machine's memory runs out"
        if code < 0:
            return f"it was killed by signal {-code} ({signal.Signals(-code).name})"
        if code == NO_FOLDER_CODE:
            return f"exit code {code}, it could make no folder: name a usable one by --conf spark.local.dir=DIR"
        if code in OUT_OF_MEMORY_CODES:
            return f"exit code {code}, its memory ran out: raise spark.driver.memory, or cut smaller transactions"
        return f"exit code {code}"

    def end(self) -> None:
        """Kills the process if it is ours."""
        if self._is_ours and self._popen is not None and self._popen.poll() is None:
            self._popen.kill()
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(END_TIMEOUT_S)


class JavaWatch:
    """Watches one Java process; `with` begins and ends the watch (driver, once a run).

    Args:
        process: the process to watch.
        ping_s: seconds between two pings.
        silence_max_s: how long a ping may go unanswered, in seconds.
    """

    def __init__(
        self, process: GatewayProcess, *, ping_s: float = PING_S, silence_max_s: float = SILENCE_MAX_S
    ) -> None:
        self._process = process
        self._ping_s, self._silence_max_s = ping_s, silence_max_s
        self._pings, self._calls = Lane("txbatch-java-ping"), Lane("txbatch-java-call")
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._listeners: list[Callable[[EngineError], None]] = []
        self._closed = threading.Event()
        self._may_stop = False
        self.lost: EngineError | None = None
        self._thread = threading.Thread(target=self._look, name="txbatch-java-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._calls.close(0)
        self._pings.close(0)

    def call(self, function: Callable[[], Result]) -> Result:
        """Runs a call into the Java process, and waits for it for as long as that process answers pings.

        Raises:
            EngineError: the process or the application is gone, or the process gives no answer.
        """
        if self.lost is not None:
            raise self.lost
        return self.wait(self._calls.submit(function))

    def wait(self, future: Future[Result], timeout_s: float | None = None) -> Result:
        """Waits for a job of another lane.

        Raises:
            EngineError: as `call`.
            TimeoutError: the job takes longer than `timeout_s`.
        """
        with self._lock:
            self._waiting.add(future)
            lost = self.lost
        try:
            if lost is not None:
                raise lost
            return future.result(timeout_s)
        except EngineError:
            raise
        except Exception as error:
            if future.done():  # else the time is up
                self.check()
            if isinstance(error, OSError) and error.errno in FULL_DISK:
                raise EngineError(f"{error}; {MAKE_ROOM}").about(Trouble.DISK_FULL) from error
            full = FULL_DISK_TEXT.search(str(error))
            if full is not None:
                raise EngineError(f"Spark could not copy a file: {full[0]}; {MAKE_ROOM}").about(
                    Trouble.DISK_FULL
                ) from error
            raise
        finally:
            with self._lock:
                self._waiting.discard(future)

    def check(self) -> None:
        """Pings at once; called after a call has failed.

        Raises:
            EngineError: the process or the application is lost, which is why the call failed.
        """
        self._ask()
        if self.lost is not None:
            raise self.lost

    def tell(self, listener: Callable[[EngineError], None]) -> None:
        """Registers a listener, which is called on the watch's thread once the process is lost."""
        with self._lock:
            self._listeners.append(listener)
            lost = self.lost
        if lost is not None:
            listener(lost)

    def let_stop(self) -> None:
        """Watches only the process from now on: the application is about to be stopped by us."""
        self._may_stop = True

    def _look(self) -> None:
        while self.lost is None and not self._closed.wait(self._ping_s):
            self._ask()

    def _ask(self) -> None:
        if self.lost is not None:
            return
        answer = self._pings.submit(self._process.ping)
        for part in range(SILENCE_PARTS):
            try:
                is_running = answer.result(self._silence_max_s / SILENCE_PARTS)
            except FutureTimeoutError:
                if part == SILENCE_PARTS - 1 and not self._closed.is_set():
                    self._lose(
                        f"{self._process.name()} has not answered for {self._silence_max_s:g} s: it is stopped, "
                        "swapped out, or short of memory"
                    )
            except Exception as error:  # noqa: BLE001 - whatever a broken connection raises
                _LOG.debug("the Java process cannot be asked: %r", error)
                if not self._closed.is_set():
                    self._lose(f"{self._process.name()} has ended: {self._process.how_it_ended()}")
                return
            else:
                if not is_running and not self._may_stop and not self._closed.is_set():
                    self._lose(
                        "Spark's application was stopped from outside, for instance by its master; the "
                        "master's page or log tells why"
                    )
                return

    def _lose(self, story: str) -> None:
        with self._lock:
            if self.lost is not None:
                return
            self.lost = EngineError(f"{story}; {ADVICE}")
            waiting, listeners = list(self._waiting), list(self._listeners)
        for future in waiting:
            with suppress(InvalidStateError):
                future.set_exception(self.lost)
        for listener in listeners:
            listener(self.lost)
        self._process.end()
