"""A record is one line with time, level and fields, in either format, and never a secret."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime

import pytest

from coordinator.watching.log_records import (
    DETAILS,
    LOGGERS,
    JsonLogLines,
    LineFormatter,
    LogFormat,
    TimestampedLines,
    fields,
    formatter_of,
    logs_of,
)
from state.attempt import TransactionAttempt
from state.redis_client.address import secrets_in
from tests.support.case_names import shown
from tests.support.examples.page import ROOT

URL = 'redis://app:p"ss\\wörd@db.example:6379/0'
SECRETS = secrets_in(URL)
FORMS = [JsonLogLines, TimestampedLines]


def record_of(message, *arguments, level=logging.WARNING, error=None, **extra):
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("txbatch", level, "x.py", 1, message, arguments, info)
    record.__dict__.update(extra)
    record.created = 1_795_000_000.25
    return record


def test_json_has_every_field_that_is_known_and_plain_lines_begin_with_a_time_that_knows_its_offset():
    attempt = TransactionAttempt(7, 255)
    record = record_of("attempt %s failed", attempt, topology="lines", **fields(attempt, wave=3, reason="no"))
    told = json.loads(JsonLogLines().format(record))
    assert datetime.fromisoformat(told.pop("time")).timestamp() == 1_795_000_000.25
    assert told == {
        "level": "warning",
        "logger": "txbatch",
        "message": "attempt 7:00000000000000ff failed",
        "topology": "lines",
        "txid": 7,
        "attempt": "7:00000000000000ff",
        "wave": 3,
        "reason": "no",
    }
    record = record_of("txid 7 is replayed: no", topology="lines", **fields(txid=7, wave=3, reason="no"))
    time, level, rest = TimestampedLines().format(record).split(" ", 2)
    assert datetime.fromisoformat(time).utcoffset() is not None
    assert (level, rest) == ("WARNING", "txid 7 is replayed: no [topology=lines txid=7 wave=3]")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_what_a_user_raised_cannot_fake_a_record(form):
    record = record_of(
        "failed: %s", "no\n2026-01-01 INFO all is well\x1b[31m", **{DETAILS: "Traceback\nValueError: \x1b[2J"}
    )
    text = form().format(record)
    assert "\x1b" not in text
    assert [line for line in text.splitlines()[1:] if not line.startswith("  ")] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize(
    "extra",
    [{}, {"reason": f"cannot reach {URL}"}, {DETAILS: f"Traceback\n  {URL}"}],
    ids=["message", "field", "details"],
)
def test_a_password_is_shown_nowhere_even_if_json_would_escape_it(form: type[LineFormatter], extra):
    try:
        raise ValueError(URL)
    except ValueError as error:
        text = form(SECRETS).format(record_of(f"connect to {URL}", error=error, **extra))
    assert "ss\\w" not in text
    assert "wörd" not in text
    assert "redis://db.example:6379/0" in text


@pytest.mark.parametrize(
    ("form", "made"), [(LogFormat.JSON, JsonLogLines), (LogFormat.PLAIN, TimestampedLines)], ids=shown
)
def test_each_form_has_its_formatter(form, made):
    assert type(formatter_of(form)) is made


def test_a_traceback_is_part_of_the_record():
    try:
        raise ValueError("no such line")
    except ValueError as error:
        told = json.loads(JsonLogLines().format(record_of("it raised", error=error)))
    assert told["details"].splitlines()[0] == "Traceback (most recent call last):"
    assert told["details"].splitlines()[-1] == "ValueError: no such line"


def test_every_logger_of_the_product_is_known():
    product = (each for folder in ("coordinator", "state") for each in (ROOT / folder).rglob("*.py"))
    assert {*re.findall(r'^_LOG = .*"(.*)"', "".join(each.read_text() for each in product), re.MULTILINE)} == {*LOGGERS}


@pytest.mark.parametrize("name", LOGGERS)
def test_records_of_a_run_name_its_topology_and_others_do_not(name, caplog):
    log = logging.getLogger(name)
    with logs_of("outer"):
        with logs_of("inner"):
            log.warning("one")
        log.warning("two")
        log.warning("three", extra=fields(topology="own"))
    log.warning("four")
    assert [getattr(record, "topology", None) for record in caplog.records] == ["inner", "outer", "own", None]
