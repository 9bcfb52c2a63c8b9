"""A folder to run jobs from, as the current directory, and forgotten afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import JobFolder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobFolder]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("TXBATCH_REDIS_URL", raising=False)
    before = set(sys.modules)
    yield JobFolder(tmp_path)
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(
            getattr(sys.modules[name], "__file__", "") or getattr(sys.modules[name], "__path__", "")
        ):
            del sys.modules[name]


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command as it is typed, which ends with `code`, and returns what it has printed."""

    def printed(line: str, *more: str, code: int = 0) -> str:
        assert txbatch(*line.split(), *more) == code
        return capsys.readouterr().out

    return printed


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command as it is typed, which ends with `code`, and returns what it has said on standard error."""

    def said(line: str, *more: str, code: int = 2) -> str:
        assert txbatch(*line.split(), *more) == code
        return capsys.readouterr().err

    return said


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are shown as those of Greenwich."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
