"""One line that every start prints is left out; everything else is shown or logged, and a failed start says why."""

from __future__ import annotations

import io
import logging
import os
import sys
from types import SimpleNamespace

import pytest

from coordinator.engines.spark.java.gateway import output_of
from coordinator.engines.spark.java.java_output import JavaOutput, reason_of

INSTALL = "install Java 17 or newer, or set JAVA_HOME to it; `--engine local` runs small inputs without Java"
STARTING = "WARNING: Using incubator modules: jdk.incubator.vector\n"
TELLING = """\
:: loading settings
26/11/20 13:53:14 WARN Utils: Service 'SparkUI' could not bind on port 4040.
26/11/20 13:53:15 ERROR Executor: Exception in task 0.0 in stage 0.0
Setting Spark log level to "ERROR", says a bolt that prints
"""


class Java:
    """Something that writes as the Java process does."""

    def __init__(self) -> None:
        read_fd, self._write_fd = os.pipe()
        self.output = JavaOutput(read_fd)

    def write(self, text: str | bytes) -> None:
        os.write(self._write_fd, text if isinstance(text, bytes) else text.encode())

    def end(self) -> list[str]:
        """Ends, and gives what was held and not shown."""
        os.close(self._write_fd)
        return self.output.take_held()


def test_only_what_tells_something_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    java = Java()
    java.output.show()
    java.write(STARTING + TELLING + STARTING)

    assert java.end() == []
    assert capsys.readouterr().err == TELLING


def test_a_start_is_held_back(capsys: pytest.CaptureFixture[str]) -> None:
    java = Java()
    java.write(STARTING + TELLING)

    assert "".join(java.end()) == TELLING
    assert capsys.readouterr().err == ""


def test_what_was_held_is_shown_after_a_good_start(capsys: pytest.CaptureFixture[str]) -> None:
    java = Java()
    java.output._held.extend(TELLING.splitlines(keepends=True))
    java.output.show()
    java.write("and so on\n")

    assert java.end() == []
    assert capsys.readouterr().err == TELLING + "and so on\n"


def test_what_is_said_while_the_context_stops_is_in_the_debug_log(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    java = Java()
    java.output.log()
    with caplog.at_level(logging.DEBUG, logger="txbatch"):
        java.write(TELLING)
        assert java.end() == []

    assert capsys.readouterr().err == ""
    assert caplog.messages == [f"Spark said: {line}" for line in TELLING.splitlines()]


def test_bytes_that_are_no_text_do_not_stop_it(capsys: pytest.CaptureFixture[str]) -> None:
    java = Java()
    java.output.show()
    java.write(b"\xff\nnext\n")
    java.end()

    assert capsys.readouterr().err == "\ufffd\nnext\n"


def test_a_closed_standard_error_does_not_block_java(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    java = Java()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", closed)
        java.output.show()
        for _ in range(20):
            java.write("a line\n" * 1000)  # more than a pipe holds: it returns because somebody reads
        java.end()


def test_only_a_process_of_ours_has_an_output() -> None:
    assert output_of(None) is None
    assert output_of(SimpleNamespace(txbatch_output="else")) is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            'Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn\n'
            "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)\n"
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "Master must either be yarn",
        ),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'\n\tat a.b(c:1)",
            "Could not parse Master URL: 'local[x]'",
        ),
        ("JAVA_HOME is not set", f"JAVA_HOME is not set; {INSTALL}"),
        (
            "spark-class: line 71: /none/bin/java: No such file or directory\nspark-class: line 97: CMD: bad array",
            f"spark-class: line 71: /none/bin/java: No such file or directory; {INSTALL}",
        ),
        ("Cannot run multiple SparkContexts at once", "Cannot run multiple SparkContexts at once"),
        (
            "Picked up JAVA_TOOL_OPTIONS: -Xmx900g\n"
            "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory failed\n"
            "Error occurred during initialization of VM\n"
            "Could not reserve enough space for 943718400KB object heap\n"
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "Error occurred during initialization of VM | Could not reserve enough space for 943718400KB object heap",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Failed to make a folder\n'
            "\tat a.b(c:1)\n"
            "Caused by: java.io.IOException: No space left on device\n"
            "\t... 7 more",
            "Failed to make a folder; caused by No space left on device",
        ),
        (
            'Exception in thread "main" java.lang.ExceptionInInitializerError\n'
            "\tat a.b(c:1)\n"
            "Caused by: java.lang.IllegalArgumentException: unknown codec",
            "unknown codec",
        ),
        ("", "it does not say why"),
    ],
)
def test_a_failed_start_tells_its_reason_in_one_line(said: str, reason: str) -> None:
    assert reason_of(said.splitlines()) == reason
