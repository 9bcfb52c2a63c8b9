"""Whatever is logged is one line in the command's form; warnings of other loggers are still shown."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coordinator.operating.cli.logs import logging_to_stderr

LOG = logging.getLogger("txbatch")


def test_a_record_is_one_line_of_printable_text(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr(debug=False):
        LOG.warning("attempt failed: %s", "no\ntxbatch: done\x1b[31m" + "x" * 10_000)
        LOG.info("not shown")
    shown = capsys.readouterr().err
    assert shown.startswith("txbatch: attempt failed: no\\ntxbatch: done\\x1b[31mxxx")
    assert shown.count("\n") == 1
    assert len(shown) < 5_000


def test_a_password_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr(debug=True, hidden={"hunter22": "…"}):
        LOG.debug("AUTH hunter22")
        try:
            raise ValueError("hunter22")
        except ValueError:
            LOG.exception("it raised")
    shown = capsys.readouterr().err
    assert "hunter22" not in shown
    assert "txbatch: AUTH …\ntxbatch: it raised\nTraceback (most recent call last)" in shown


@contextmanager
def bare_root() -> Iterator[logging.Logger]:
    """The root logger as a process begins with it; pytest has given it handlers."""
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    filters, root.filters = root.filters, []
    try:
        yield root
    finally:
        root.handlers, root.filters = handlers, filters


def record_of(module: str, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord("root", level, f"/site-packages/py4j/{module}.py", 1, f"said by {module}", (), None)


def test_a_broken_connection_is_never_told_by_py4j_and_a_users_warning_is(capsys) -> None:
    with bare_root() as root:
        with logging_to_stderr(debug=False):
            for module in ("java_gateway", "clientserver", "users_spout"):
                root.handle(record_of(module))
            root.handle(record_of("users_info", logging.INFO))
        assert root.handlers == []
    assert capsys.readouterr().err == "said by users_spout\n"
    with bare_root() as root:
        with logging_to_stderr(debug=False):
            pass
        for module in ("clientserver", "users_spout"):
            root.handle(record_of(module))
    assert capsys.readouterr().err == "said by users_spout\n"


def test_handlers_of_the_users_are_kept_and_with_debug_nothing_is_left_out() -> None:
    own = logging.NullHandler()
    with bare_root() as root:
        root.addHandler(own)
        with logging_to_stderr(debug=False):
            assert root.handlers == [own]
    with bare_root() as root, logging_to_stderr(debug=True):
        assert root.handlers == []
