"""What a Java process says is shown when it dies while Spark starts, and its death is told as such."""

from __future__ import annotations

import logging
import os
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.engines.spark.java import gateway as module
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
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Has a Java process launched that dies at once; the settings of each."""
    seen: list[Settings] = []

    def launch_gateway(conf: Settings, popen_kwargs: dict[str, int]) -> Any:
        seen.append(conf)
        os.write(popen_kwargs["stderr"], LAST_WORDS.encode())
        return SimpleNamespace(
            jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(nanoTime=broken)))),
            proc=SimpleNamespace(pid=7, returncode=3, wait=lambda timeout: 3, poll=lambda: 3),
        )

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
    conf: Any = Settings({module.DEFAULT_OPTIONS: "-Dtheirs=1"})
    with pytest.raises(EngineError):
        module.start_context(conf, is_local=False)

    ours, theirs = launched[0][module.DEFAULT_OPTIONS].split()
    assert ours == f"-Dlog4j2.configurationFile={module.LOG_CONFIGURATION.as_uri()}"
    assert theirs == "-Dtheirs=1"


def test_an_error_of_the_accumulators_server_is_in_the_debug_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="txbatch"):
        try:
            raise ValueError("a bug")
        except ValueError:
            module._log_error("request", "address")

    assert "a bug" in caplog.text
