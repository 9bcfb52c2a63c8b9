"""What Spark's start says and nobody needs is left out; everything else is passed on as it comes."""

from __future__ import annotations

import io
import os
import sys
from types import SimpleNamespace

import pytest

from coordinator.spark.gateway import JavaOutput, Showing, output_of, reason_of

STARTING = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/20 13:53:11 WARN Utils: Your hostname, vm, resolves to a loopback address: 127.0.0.1; using 192.0.2.2 instead
26/11/20 13:53:11 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
26/11/20 13:53:14 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...
Setting Spark log level to "ERROR".
"""
TELLING = """\
:: loading settings
26/11/20 13:53:14 WARN Utils: Service 'SparkUI' could not bind on port 4040.
26/11/20 13:53:15 ERROR Executor: Exception in task 0.0 in stage 0.0
a bolt that prints: Setting Spark log level to "ERROR".
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
    java.output.show(Showing.PASSED_ON)
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
    java.write(TELLING)
    java.end()
    java = Java()
    java.output._held.extend(TELLING.splitlines(keepends=True))
    java.output.show(Showing.PASSED_ON)
    java.write("and so on\n")

    assert java.end() == []
    assert capsys.readouterr().err == TELLING + "and so on\n"


def test_nothing_is_shown_while_the_context_stops(capsys: pytest.CaptureFixture[str]) -> None:
    java = Java()
    java.output.show(Showing.MUTED)
    java.write(TELLING)

    assert java.end() == []
    assert capsys.readouterr().err == ""


def test_bytes_that_are_no_text_do_not_stop_it(capsys: pytest.CaptureFixture[str]) -> None:
    java = Java()
    java.output.show(Showing.PASSED_ON)
    java.write(b"\xff\nnext\n")
    java.end()

    assert capsys.readouterr().err == "\ufffd\nnext\n"


def test_a_closed_standard_error_does_not_block_java(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    java = Java()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", closed)
        java.output.show(Showing.PASSED_ON)
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
        ("JAVA_HOME is not set", "JAVA_HOME is not set; install Java 17 or newer, or set JAVA_HOME to it"),
        (
            "spark-class: line 71: /none/bin/java: No such file or directory\nspark-class: line 97: CMD: bad array",
            "spark-class: line 71: /none/bin/java: No such file or directory; install Java 17 or newer, or set "
            "JAVA_HOME to it",
        ),
        ("Cannot run multiple SparkContexts at once", "Cannot run multiple SparkContexts at once"),
        ("", "it does not say why"),
    ],
)
def test_a_failed_start_tells_its_reason_in_one_line(said: str, reason: str) -> None:
    assert reason_of(said.splitlines()) == reason
