"""What is logged is one line in the command's form, whatever is in it."""

from __future__ import annotations

import logging

import pytest

from coordinator.cli.logs import logging_to_stderr

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
