"""What a Java process says is shown when it dies while Spark starts, and its death is told as such."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from coordinator.engines.spark.java import gateway as module
from coordinator.engines.spark.java.class_archive import DEFAULT_OPTIONS
from state.errors import EngineError

LAST_WORDS = "Terminating due to java.lang.OutOfMemoryError: Metaspace\n"


class Context:
    """Stands in for pyspark's class: the Java process dies while it is made."""

    _gateway = _jvm = _active_spark_context = None

    def __init__(self, conf: Any, gateway: Any) -> None:
        raise ConnectionError("the connection is broken")


class Settings(dict[str, str]):
    """Stands in for SparkConf."""

    def contains(self, key: str) -> bool:
        return key in self

    def set(self, key: str, value: str) -> None:
        self[key] = value


def broken() -> int:
    raise ConnectionError("the connection is broken")


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Has a Java process launched that dies at once; the settings of each."""
    seen: list[Settings] = []

    def launch_gateway(conf: Settings, popen_kwargs: dict[str, int]) -> Any:
        seen.append(conf)
        os.write(popen_kwargs["stderr"], LAST_WORDS.encode())
        return SimpleNamespace(
            jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(nanoTime=broken)))),
            proc=SimpleNamespace(pid=7, returncode=3, wait=lambda timeout: 3, poll=lambda: 3),
        )

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # a cache without an archive of classes
    monkeypatch.setattr(module, "SparkContext", Context)
    monkeypatch.setattr(module, "launch_gateway", launch_gateway)
    return seen


def test_the_last_words_of_a_java_process_that_dies_while_spark_starts_are_shown(
    launched: list[Settings], capsys: pytest.CaptureFixture[str]
) -> None:
    conf: Any = Settings()
    with pytest.raises(EngineError, match=r"Spark's Java process \(pid 7\) has ended: exit code 3, its memory ran out"):
        module.start_context(conf, is_local=True)

    assert capsys.readouterr().err == LAST_WORDS


def test_a_java_options_setting_of_the_user_comes_after_ours(launched: list[Settings]) -> None:
    conf: Any = Settings({DEFAULT_OPTIONS: "-Dtheirs=1"})
    with pytest.raises(EngineError):
        module.start_context(conf, is_local=False)

    ours, theirs = launched[0][DEFAULT_OPTIONS].split()
    assert ours == f"-Dlog4j2.configurationFile={module.LOG_CONFIGURATION.as_uri()}"
    assert theirs == "-Dtheirs=1"


def test_an_error_of_the_accumulators_server_is_in_the_debug_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="txbatch"):
        try:
            raise ValueError("a bug")
        except ValueError:
            module._log_error("request", "address")

    assert "a bug" in caplog.text


@pytest.mark.parametrize(("code", "is_well"), [(0, True), (1, False), (None, False)])
def test_a_java_process_that_is_to_end_is_killed_if_it_does_not(
    monkeypatch: pytest.MonkeyPatch, code: int | None, is_well: bool
) -> None:
    did: list[str] = []

    def wait(timeout_s: float) -> int:
        if code is None:
            raise subprocess.TimeoutExpired("java", timeout_s)
        return code

    proc = SimpleNamespace(
        stdin=SimpleNamespace(close=lambda: did.append("closed")), wait=wait, kill=lambda: did.append("killed")
    )
    gateway = SimpleNamespace(shutdown=lambda: did.append("shut down"), proc=proc)
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr(module, "forget_java", lambda: did.append("forgotten"))
    assert module.let_java_end(1.0) is is_well
    assert did == ["forgotten", "shut down", "closed", *(["killed"] if code is None else [])]
