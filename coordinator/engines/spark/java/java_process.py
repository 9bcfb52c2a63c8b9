"""Spark's Java process as py4j knows it: asked, named, and ended if it is ours."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from typing import Any

from pyspark import SparkContext

END_TIMEOUT_S = 2.0
OUT_OF_MEMORY_CODES = (3, 52)
"""What Spark and the Java machine exit with when memory runs out."""
NO_FOLDER_CODE = 53
"""What Spark exits with when no local folder can be made."""


class GatewayProcess:
    """The Java process at the other end of a gateway.

    Args:
        gateway: py4j's.
        is_ours: whether this package has started it, so that it may end it.
        context: the application to ask for; None asks the process only.
    """

    def __init__(self, gateway: Any, *, is_ours: bool, context: SparkContext | None = None) -> None:
        self._system = gateway.jvm.java.lang.System
        self._popen: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
        self._is_ours = is_ours
        self._application = None if context is None else context._jsc.sc()  # noqa: SLF001 - its only name

    def ping(self) -> bool:
        if self._application is None:
            self._system.nanoTime()
            return True
        return not self._application.isStopped()

    def name(self) -> str:
        return "Spark's Java process" + (f" (pid {self._popen.pid})" if self._popen is not None else "")

    def how_it_ended(self) -> str:
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
        if self._is_ours and self._popen is not None and self._popen.poll() is None:
            self._popen.kill()
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(END_TIMEOUT_S)
