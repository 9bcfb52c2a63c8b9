"""The output of Spark's Java process and the tasks, and the reason of a failed start, which is found in it.

What is not shown goes to the debug log, except one line that every start prints, and the output of a start before its
last `HELD_LINES` lines.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence

_LOG = logging.getLogger("txbatch.spark")
NOISE = "WARNING: Using incubator modules: jdk.incubator.vector\n"
"""The Java machine prints it before anything can be configured, since Spark's launcher always asks for the module."""
RAISED = re.compile(r"(?P<caused>Caused by: )?\b[\w.$]+(?:Exception|Error): (?P<text>.+)")
JAVA_MISSING = re.compile(r"JAVA_HOME is not set|bin/java: |java: (command )?not found")
ASIDE = re.compile(
    r"\s+at |\s*\.\.\. \d+ more|Picked up |NOTE: |WARNING: |.* warning: |\S+ \S+ (WARN|INFO) |\[JAVA_GATEWAY"
)
"""The beginnings of lines that do not explain why a start failed."""
LAST_WORDS_TIMEOUT_S = 2.0
HELD_LINES = 500
REASON_LINES = 5
REASON_CHARS = 500


class JavaOutput:
    """Reads the output of the Java process and the tasks, on a thread that ends with that process (driver).

    It holds lines back until it is decided where they go.

    Args:
        read_fd: the reading end of a pipe; closed by the thread.
    """

    def __init__(self, read_fd: int) -> None:
        self._read_fd = read_fd
        self._held: deque[str] = deque(maxlen=HELD_LINES)
        self._pass_on: Callable[[str], None] = self._held.append
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="txbatch-spark-output", daemon=True)
        self._thread.start()

    def show(self) -> None:
        """Sends lines to standard error from now on, those held so far first."""
        self._send_to(_write)

    def show_remaining_output(self) -> None:
        """Shows the output of a process that has ended during its start; waits a little for the end of that output."""
        self.show()
        self._thread.join(LAST_WORDS_TIMEOUT_S)

    def log(self) -> None:
        """Sends lines to the debug log from now on, since the process ends and its workers complain of closed pipes."""
        self._send_to(lambda line: _LOG.debug("Spark said: %s", line.rstrip()))

    def take_held(self) -> list[str]:
        """Returns the lines of a failed start; waits a little for the last lines of a process that has ended."""
        self._thread.join(LAST_WORDS_TIMEOUT_S)
        with self._lock:
            held = list(self._held)
            self._held.clear()
        return held

    def _send_to(self, pass_on: Callable[[str], None]) -> None:
        with self._lock:
            self._pass_on = pass_on
            for line in self._held:
                pass_on(line)
            self._held.clear()

    def _read(self) -> None:
        with os.fdopen(self._read_fd, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line != NOISE:
                    with self._lock:
                        self._pass_on(line)


def java_missing(lines: Sequence[str]) -> str:
    """Returns what to do if Java was not found; "" if it was."""
    line = next((line for line in lines if JAVA_MISSING.search(line)), "")
    if not line:
        return ""
    advice = "install Java 17 or newer, or set JAVA_HOME to it; `--engine local` runs small inputs without Java"
    return f"{line.strip()}; {advice}"


def reason_of(lines: Sequence[str]) -> str:
    """Returns why a start failed, in one line of at most `REASON_CHARS` characters.

    Args:
        lines: the output of Java and Python, in order.
    """
    if missing := java_missing(lines):
        return missing
    raised = [found for line in lines if (found := RAISED.search(line)) is not None]
    if raised:
        first, last = raised[0]["text"], raised[-1]["text"]
        is_cause = raised[-1]["caused"] is not None and last not in first
        return f"{first}; caused by {last}"[:REASON_CHARS] if is_cause else first[:REASON_CHARS]
    telling = [line.strip() for line in lines if line.strip() and ASIDE.match(line) is None]
    return " | ".join(telling[:REASON_LINES])[:REASON_CHARS] or "it does not say why"


def _write(line: str) -> None:
    stream = sys.stderr  # looked up each time: a progress bar or a test may replace it
    try:
        stream.write(line)
        stream.flush()
    except (OSError, ValueError, AttributeError):  # closed or gone; Java must not block on a full pipe
        _LOG.debug("Spark said: %s", line.rstrip())
