"""With a log format, whatever a run says on standard error is a record: progress, result, refusal, signal."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from typing import Any

import pytest

from coordinator.operating.cli.command import LogOptions, ServerOptions, command_errors
from coordinator.operating.cli.exits import StoppedError
from coordinator.operating.cli.logs import LogLevel
from coordinator.operating.cli.run_command import TypedRun, execute
from coordinator.operating.cli.run_options import ObserverOptions
from coordinator.watching.log_records import LogFormat, name_topology
from coordinator.watching.telemetry.metrics_server import MetricsServer
from coordinator.watching.telemetry.transaction_spans import TransactionSpans
from state.errors import FencedError, ReplayLimitError, UserCodeError
from tests.support.cli.jobs import JobFolder
from tests.support.cli.typed_runs import FakeRunner, typed_run

JSON = LogOptions(log_format=LogFormat.JSON)
LOG = logging.getLogger("txbatch")


BEGUN: dict[str, Any] = {"committed": 3, "attempts": 3, "last_txid": 3, "tuples": 30, "quarantined": [2]}


def request(**changes: Any) -> TypedRun:
    return typed_run(as_json=False, is_logged=True, **changes)


def records(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_progress_and_result_are_records_and_the_result_has_its_figures(folder: JobFolder, capsys) -> None:
    folder.write_job()
    with command_errors(log=JSON):
        assert execute(request(), FakeRunner(**BEGUN)) == 0
    running, done, quarantined = records(capsys)
    assert (running["message"], running["topology"]) == ("running", "lines")
    assert done["message"] == "lines: done"
    assert "3 transactions committed" in done["details"]
    assert done["figures"]["committed"] == 3
    assert (quarantined["level"], quarantined["topology"]) == ("warning", "lines")
    assert quarantined["message"].startswith("QUARANTINED")


def test_where_metrics_are_is_said_and_the_run_is_observed(folder: JobFolder, capsys) -> None:
    folder.write_job()
    runner = FakeRunner(**BEGUN)
    with command_errors(log=JSON):
        execute(request(observed=ObserverOptions(metrics_port=0, traces=True)), runner)
    assert [type(observer) for observer in runner.asked.observers] == [TransactionSpans, MetricsServer]
    assert records(capsys)[0]["message"].startswith("metrics on http://127.0.0.1:")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            UserCodeError(
                component_id="count", traceback_text="Traceback\nValueError: no", task_index=1, attempt="7:0a"
            ),
            {"level": "error", "txid": 7, "attempt": "7:0a", "component": "count", "task": 1, "exit_code": 1},
        ),
        (ReplayLimitError(9, 5, "later"), {"level": "error", "txid": 9, "reason": "later", "exit_code": 1}),
        (FencedError("lines", False), {"level": "error", "exit_code": 3}),
        (StoppedError(signal.SIGTERM), {"level": "warning", "exit_code": 143}),
        (ZeroDivisionError("of ours"), {"level": "error", "exit_code": 1}),
    ],
    ids=["user code", "replay limit", "fenced", "stopped", "unexpected"],
)
def test_the_error_that_ends_a_command_is_a_record_with_what_is_known_of_it(error, expected, capsys) -> None:
    with pytest.raises(SystemExit) as left, command_errors(log=JSON):
        raise error
    (record,) = records(capsys)
    assert left.value.code == expected["exit_code"]
    assert {name: record.get(name) for name in expected} == expected
    assert set(record) <= {*expected, "time", "logger", "message", "details"}


def test_the_password_of_the_server_is_in_no_record(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), command_errors(log=JSON, server=ServerOptions(redis="redis://:hunter22@host:1")):
        _fail_with("hunter22")
    told = json.dumps(records(capsys))
    assert "hunter22" not in told
    assert "redis://host:1" in told


def _fail_with(password: str) -> None:
    LOG.warning("trying redis://:%s@host:1", password)
    raise RuntimeError(f"AUTH {password} refused")


def test_what_anybody_prints_on_standard_error_is_a_record_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with command_errors(log=JSON):
        name_topology("lines")
        sys.stderr.write("said by a bolt\nin two lines\n")
        sys.stderr.write("not ended")
        thread = threading.Thread(target=print, args=("of a thread",), kwargs={"file": sys.stderr})
        thread.start()
        thread.join()
    told = records(capsys)
    assert [record["message"] for record in told] == ["said by a bolt", "in two lines", "not endedof a thread"]
    assert {(record["logger"], record["level"], record["topology"]) for record in told} == {
        ("txbatch.output", "info", "lines")
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LogOptions(log_level=LogLevel.WARNING), [" WARNING slow", " ERROR broken"]),
        (LogOptions(log_level=LogLevel.ERROR), [" ERROR broken"]),
        (LogOptions(), ["txbatch: slow", "txbatch: broken"]),
    ],
    ids=["below its level nothing", "a level alone makes records of plain text", "as to a person"],
)
def test_a_level_makes_records_of_what_is_not_below_it(capsys, options: LogOptions, said: list[str]) -> None:
    with command_errors(log=options):
        LOG.info("running")
        LOG.warning("slow")
        LOG.error("broken")
    shown = capsys.readouterr().err.splitlines()
    assert [line.endswith(end) for line, end in zip(shown, said, strict=True)] == [True] * len(said)
    assert options != LogOptions() or shown == said
