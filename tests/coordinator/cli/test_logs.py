"""What other people's loggers say is shown as ever, but not the tracebacks of a connection that broke."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coordinator.cli.logs import logging_to_stderr


@contextmanager
def bare_root() -> Iterator[logging.Logger]:
    """The root logger as a process begins with it; pytest has given it handlers."""
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    try:
        yield root
    finally:
        root.handlers = handlers


def record_of(module: str, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord("root", level, f"/site-packages/py4j/{module}.py", 1, f"said by {module}", (), None)


def test_a_broken_connection_is_not_told_by_py4j_a_users_warning_is(capsys: pytest.CaptureFixture[str]) -> None:
    with bare_root() as root:
        with logging_to_stderr(debug=False):
            for module in ("java_gateway", "clientserver", "users_spout"):
                root.handle(record_of(module))
            root.handle(record_of("users_info", logging.INFO))
        assert root.handlers == []

    assert capsys.readouterr().err == "said by users_spout\n"


def test_handlers_of_the_users_are_kept() -> None:
    own = logging.NullHandler()
    with bare_root() as root:
        root.addHandler(own)
        with logging_to_stderr(debug=False):
            assert root.handlers == [own]


def test_with_debug_nothing_is_left_out() -> None:
    with bare_root() as root, logging_to_stderr(debug=True):
        assert root.handlers == []
