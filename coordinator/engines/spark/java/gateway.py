"""Starts, stops and abandons Spark's Java process.

`log4j2.properties` configures what Spark logs. That alone is not enough: one line of the Java machine comes before any
configuration, workers write to the same pipe, even to complain that it was closed, and of a failed start pyspark only
reports that it failed, since the reason is on the process's standard error. So that process writes into a pipe of ours;
see `java_output`.

pyspark offers no public way to ask for the gateway, or to forget one whose process is gone, so its private names are
used here.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from coordinator.engines.spark.java.java_output import JavaOutput, java_missing, reason_of
from coordinator.engines.spark.java.java_watch import GatewayProcess, JavaWatch
from coordinator.engines.spark.spark_versions import check_spark, java_version_of_spark
from state.errors import EngineError

_LOG = logging.getLogger("txbatch.spark")
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
LOG_LEVEL = "spark.log.level"
DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
"""Come before `spark.driver.extraJavaOptions`, which therefore takes precedence."""
LOCAL_ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1"}
"""Saves Spark the search for an address, which fails if the machine's own name cannot be resolved."""


def start_context(conf: SparkConf, *, is_local: bool) -> SparkContext:
    """Starts a context, and a Java process unless an earlier session of this process has left one.

    Raises:
        EngineError: there is no Java, or its process ends or freezes meanwhile, or its version of Spark is not
            PySpark's.
        RuntimeError: Spark does not start; the message is the reason, in one line.
    """
    gateway, output = running_gateway(), output_of(running_gateway())
    try:
        if gateway is None:
            output, gateway = _launched(conf, is_local=is_local)
        with JavaWatch(GatewayProcess(gateway, is_ours=output is not None)) as watch:
            check_spark(watch.call(lambda: java_version_of_spark(gateway.jvm)))
            context = watch.call(lambda: SparkContext(conf=conf, gateway=gateway))
            if not conf.contains(LOG_LEVEL):
                watch.call(lambda: context.setLogLevel("FATAL"))
        context._accumulatorServer.handle_error = _log_error  # type: ignore[assignment,method-assign] # noqa: SLF001
    except EngineError:
        if output is not None:
            output.show_remaining_output()  # they tell more than its exit code
        forget_java()
        raise
    except Exception as error:
        said = [*(output.take_held() if output is not None else []), *str(error).splitlines(keepends=True)]
        _LOG.debug("Spark said:\n%s", "".join(said))
        if missing := java_missing(said):
            raise EngineError(f"Spark does not start: {missing}") from error
        raise RuntimeError(reason_of(said)) from error
    if output is not None:
        output.show()
    return context


def stop_context(context: SparkContext) -> None:
    """Stops a context of our own; the complaints of its workers are only logged.

    It raises nothing: a Java process that is gone, or no longer answers, has nothing left to stop.
    """
    quieten_java()
    gateway = running_gateway()
    try:
        with JavaWatch(GatewayProcess(gateway, is_ours=output_of(gateway) is not None)) as watch:
            watch.call(context.stop)
    except Exception as error:  # noqa: BLE001 - whatever a broken connection raises
        _LOG.debug("Spark could not be stopped: %s", error)
        forget_java()


def quieten_java() -> None:
    """Sends all output of a Java process of ours and its workers to the debug log from now on."""
    output = output_of(running_gateway())
    if output is not None:
        output.log()


def abandon_context(context: SparkContext) -> None:
    """Abandons a context of our own whose Java process is gone."""
    quieten_java()
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()
    forget_java()


def forget_java() -> None:
    """Forgets a Java process that is gone, so that this process starts another for its next context."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001


def end_java() -> None:
    """Silently kills a Java process of ours; called when this process is about to end abruptly."""
    gateway = running_gateway()
    if output_of(gateway) is not None:
        gateway.proc.kill()


def running_gateway() -> Any:
    """Returns pyspark's gateway to the Java process of this process; None without one."""
    return SparkContext._gateway  # noqa: SLF001 - there is no public question


def output_of(gateway: Any) -> JavaOutput | None:
    """Returns the output of a Java process that txbatch started; None for any other."""
    output = getattr(gateway, "txbatch_output", None)
    return output if isinstance(output, JavaOutput) else None


def _log_error(*_: object) -> None:
    """Logs the end of a connection in place of a traceback on standard error; the watch finds out the cause."""
    _LOG.debug("a connection of Spark's accumulators broke", exc_info=True)


def _launched(conf: SparkConf, *, is_local: bool) -> tuple[JavaOutput, Any]:
    """Starts the Java process, and returns its output and its gateway."""
    if LOG_CONFIGURATION.is_file():  # not if the package is in an archive
        ours = f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
        conf.set(DEFAULT_OPTIONS, f"{ours} {conf.get(DEFAULT_OPTIONS, '')}".rstrip())
    read_fd, write_fd = os.pipe()
    output = JavaOutput(read_fd)
    try:
        try:
            with _environment(LOCAL_ENVIRONMENT if is_local else {}), _signals_deferred():
                gateway = launch_gateway(conf, {"stdout": write_fd, "stderr": write_fd})  # type: ignore[no-untyped-call]
        finally:
            os.close(write_fd)  # else the output would never end
    except Exception as error:  # pyspark only says that the process has ended
        raise RuntimeError("".join([*output.take_held(), str(error)])) from error
    gateway.txbatch_output = output  # next to gateway.proc, which pyspark keeps there
    return output, gateway


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Delivers Ctrl-C and SIGTERM only after the block, unless they come twice.

    If pyspark is interrupted while it waits for the Java process, it forgets that process, which then never ends.
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
    """Sets environment variables that the user has not set, for a process started in the block."""
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
