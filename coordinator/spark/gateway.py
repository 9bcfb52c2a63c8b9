"""Starts Spark's Java process with its output in our hands, so that what says nothing is not shown.

What is left out is a closed list of lines that every start prints and nobody can act on. What else a
start prints is held back until it has succeeded; if it fails, the line that tells why becomes the reason.
From then on all that Java and the tasks write is passed on to standard error as it comes.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from coordinator.spark.java_process import GatewayProcess
from coordinator.spark.java_watch import JavaWatch
from state.errors import EngineError

_LOG = logging.getLogger("txbatch")
NOISE = re.compile(
    r"WARNING: Using incubator modules: jdk\.incubator\.vector$"
    r"|Using Spark's default log4j profile: "
    r"|Setting default log level to "
    r"|To adjust logging level use sc\.setLogLevel"
    r"|Setting Spark log level to "
    r"|\S+ \S+ WARN Utils: (Your hostname, .* resolves to|Set SPARK_LOCAL_IP if you need)"
    r"|\S+ \S+ WARN NativeCodeLoader: Unable to load native-hadoop library"
)
RAISED = re.compile(r"\b[\w.$]+(?:Exception|Error): (?P<text>.+)")
JAVA_MISSING = re.compile(r"JAVA_HOME is not set|bin/java: |java: (command )?not found")
LOCAL_ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1"}
"""Spares Spark the search for an address, which it warns about and nobody needs."""
LAST_WORDS_TIMEOUT_S = 2.0
HELD_LINES = 500


class Showing(Enum):
    """What becomes of a line."""

    HELD = "held"
    PASSED_ON = "passed on"
    MUTED = "muted"
    """The context stops, and its workers complain of closed pipes."""


class JavaOutput:
    """Reads what the Java process and the tasks write, in a thread that ends with that process."""

    def __init__(self, read_fd: int) -> None:
        self._read_fd = read_fd
        self._showing = Showing.HELD
        self._held: deque[str] = deque(maxlen=HELD_LINES)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="txbatch-spark-output", daemon=True)
        self._thread.start()

    def show(self, showing: Showing) -> None:
        """Says what becomes of lines from now on; those held so far are passed on if these are."""
        with self._lock:
            self._showing = showing
            if showing is Showing.PASSED_ON:
                for line in self._held:
                    _write(line)
            self._held.clear()

    def take_held(self) -> list[str]:
        """The lines of a start that failed; waits a little for the last words of a process that has ended."""
        self._thread.join(LAST_WORDS_TIMEOUT_S)
        with self._lock:
            held = list(self._held)
            self._held.clear()
        return held

    def _read(self) -> None:
        with os.fdopen(self._read_fd, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if NOISE.match(line) is None:
                    with self._lock:
                        self._take(line)

    def _take(self, line: str) -> None:
        if self._showing is Showing.HELD:
            self._held.append(line)
        elif self._showing is Showing.PASSED_ON:
            _write(line)


def start_context(conf: SparkConf, *, is_local: bool) -> SparkContext:
    """Starts a context, and the Java process unless an earlier session of this process has left it.

    Raises:
        EngineError: the Java process ends or freezes meanwhile.
        RuntimeError: Spark does not start; the message is the reason, in one line.
    """
    output = output_of(SparkContext._gateway)  # noqa: SLF001 - there is no public question
    try:
        if SparkContext._gateway is None:  # noqa: SLF001
            output, write_fd = _piped_output()
            try:
                gateway = _launch(conf, write_fd, is_local=is_local)
            finally:
                os.close(write_fd)
            gateway.txbatch_output = output  # beside gateway.proc, which pyspark keeps there
        else:
            gateway = SparkContext._gateway  # noqa: SLF001
        with JavaWatch(GatewayProcess(gateway, is_ours=output is not None)) as watch:
            context = watch.call(lambda: SparkContext(conf=conf, gateway=gateway))
        context._accumulatorServer.handle_error = _say_nothing  # type: ignore[assignment,method-assign] # noqa: SLF001
    except EngineError:
        forget_java()
        raise
    except Exception as error:
        held = output.take_held() if output is not None else []
        _LOG.debug("Spark said:\n%s", "".join(held))
        raise RuntimeError(reason_of([*held, *str(error).splitlines()])) from error
    if output is not None:
        output.show(Showing.PASSED_ON)
    return context


def stop_context(context: SparkContext) -> None:
    """Stops a context of our own; what its workers say about that is not shown.

    It raises nothing: a Java process that is gone, or does not answer any more, has nothing left to stop.
    """
    mute_java()
    gateway = SparkContext._gateway  # noqa: SLF001 - there is no public question
    try:
        with JavaWatch(GatewayProcess(gateway, is_ours=output_of(gateway) is not None)) as watch:
            watch.call(context.stop)
    except Exception as error:  # noqa: BLE001 - whatever a broken connection raises
        _LOG.debug("Spark could not be stopped: %s", error)
        forget_java()


def mute_java() -> None:
    """Shows nothing more of what a Java process of ours, its workers and its connections say."""
    output = output_of(SparkContext._gateway)  # noqa: SLF001 - there is no public question
    if output is not None:
        output.show(Showing.MUTED)


def abandon_context(context: SparkContext) -> None:
    """Lets go of a context of our own whose Java process is gone."""
    mute_java()
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()
    forget_java()


def forget_java() -> None:
    """Has the next context of this process start a Java process of its own: the one there was is gone."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001


def end_java() -> None:
    """Ends a Java process of ours without a word; called when this process is about to end as it stands."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - there is no public question
    if output_of(gateway) is not None:
        gateway.proc.kill()


def output_of(gateway: Any) -> JavaOutput | None:
    """The output of a Java process that we started; None for anybody else's."""
    output = getattr(gateway, "txbatch_output", None)
    return output if isinstance(output, JavaOutput) else None


def reason_of(lines: list[str]) -> str:
    """The line of a failed start that tells why."""
    telling = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("at ")]
    for line in telling:
        if JAVA_MISSING.search(line):
            return f"{line}; install Java 17 or newer, or set JAVA_HOME to it"
    for line in telling:
        raised = RAISED.search(line)
        if raised is not None:
            return raised["text"][:500]
    return telling[0][:500] if telling else "it does not say why"


def _say_nothing(*_: object) -> None:
    """In place of a traceback for a connection that ends with the Java process: that is told by the watch."""


def _piped_output() -> tuple[JavaOutput, int]:
    read_fd, write_fd = os.pipe()
    return JavaOutput(read_fd), write_fd


def _launch(conf: SparkConf, output_fd: int, *, is_local: bool) -> Any:
    with _environment(LOCAL_ENVIRONMENT if is_local else {}), _signals_deferred():
        return launch_gateway(conf, {"stdout": output_fd, "stderr": output_fd})  # type: ignore[no-untyped-call]


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Delivers Ctrl-C and SIGTERM only after the block, unless they come twice.

    pyspark, interrupted while it waits for the Java process, forgets that process, which then never ends.
    """
    if threading.current_thread() is not threading.main_thread():  # signals interrupt the main thread only
        yield
        return
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            restore()
            signal.raise_signal(number)

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()
    if received:
        signal.raise_signal(received[0])


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Environment variables for a process that is started now, where the user has not set them."""
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _write(line: str) -> None:
    stream = sys.stderr  # asked each time: a progress bar or a test puts another one there
    try:
        stream.write(line)
        stream.flush()
    except (OSError, ValueError, AttributeError):  # closed or gone; Java must not block on a full pipe
        return
