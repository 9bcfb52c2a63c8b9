"""What ``txbatch run`` refuses before Spark is started: nothing written, one sentence, the right code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import redis

from coordinator.cli import main
from tests.conftest import running_server
from tests.support.cli.jobs import JobFolder

FACTORIES = """

import socket


class Pass(BaseBatchBolt):
    output_fields = ("line",)

    def prepare(self, conf, context, collector, attempt): ...

    def execute(self, tup): ...


class Sends(Pass):
    def __init__(self):
        connection = socket.socket()
        self.send = lambda data: connection.send(data)
        connection.close()  # the test leaves nothing open; it pickles no better for that


class Writes(Pass):
    lines = HashState("lines")


def started():
    return TransactionalTopologyBuilder("refused", "lines", TextFiles("input.txt"))


def cycle():
    builder = started()
    builder.set_bolt("one", Pass()).shuffle_grouping("two")
    builder.set_bolt("two", Pass()).shuffle_grouping("one")
    return builder.build()


def unknown_component():
    builder = started()
    builder.set_bolt("one", Pass()).shuffle_grouping("line")
    return builder.build()


def unknown_stream():
    builder = started()
    builder.set_bolt("one", Pass()).shuffle_grouping("lines", "errors")
    return builder.build()


def unknown_field():
    builder = started()
    builder.set_bolt("one", Pass()).fields_grouping("lines", ["word"])
    return builder.build()


def duplicate_id():
    builder = started()
    builder.set_bolt("lines", Pass()).shuffle_grouping("lines")
    return builder.build()


def lambda_over_a_socket():
    builder = started()
    builder.set_bolt("one", Sends()).shuffle_grouping("lines")
    return builder.build()


def state_outside_a_committer():
    builder = started()
    builder.set_bolt("one", Writes()).shuffle_grouping("lines")
    return builder.build()
"""


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        ("cycle", "the topology has a cycle: "),
        ("unknown_component", "component 'one' subscribes to the unknown component 'line'; known: ['lines', 'one']"),
        (
            "unknown_stream",
            "component 'one' subscribes to the unknown stream 'errors' of 'lines'; declared: ['default']",
        ),
        ("unknown_field", "component 'one' cannot subscribe to stream 'default' of 'lines': "),
        ("duplicate_id", "component id 'lines' is used twice"),
        ("lambda_over_a_socket", "component 'one' cannot be shipped to executors: TypeError: cannot pickle 'socket'"),
        ("state_outside_a_committer", "component 'one' declares state ['lines'] but is no committer"),
    ],
)
def test_a_topology_that_could_not_run_correctly(
    folder: JobFolder, capsys: pytest.CaptureFixture[str], factory: str, sentence: str
) -> None:
    folder.write_job(more=FACTORIES)

    assert ended("run", f"job_of_lines:{factory}", "--json") == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    told = [line for line in shown.err.splitlines() if line.startswith("txbatch: ")]
    assert len(told) == 1
    assert sentence in told[0]
    assert "Traceback" not in shown.err
    assert not (folder.path / ".txbatch").exists()


def test_a_missing_input(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    assert ended("run", "job_of_lines:topology", "-p", "input=nothing/*.txt") == 2

    assert capsys.readouterr().err.startswith("txbatch: no file matches 'nothing/*.txt'")


def test_a_file_in_place_of_the_data_directory(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    assert ended("run", "job_of_lines:topology", "--data-dir", "input.txt") == 4

    assert "input.txt' cannot be used: " in capsys.readouterr().err


@pytest.mark.parametrize("url", ["redis://host:port", "http://host", "host:6379", ""])
def test_an_address_that_cannot_be_understood(folder: JobFolder, capsys: pytest.CaptureFixture[str], url: str) -> None:
    folder.write_job()

    assert ended("run", "job_of_lines:topology", "--redis", url) == 2

    assert "txbatch: redis url " in capsys.readouterr().err


@pytest.mark.slow
def test_a_server_that_does_not_answer(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    assert ended("run", "job_of_lines:topology", "--redis", f"unix://{folder.path}/nobody.sock") == 4

    assert "/nobody.sock gave no answer for 10 s, last: " in capsys.readouterr().err


@pytest.mark.redis
@pytest.mark.parametrize("command", [("run", "job_of_lines:topology"), ("status", "lines"), ("drop", "lines", "--yes")])
def test_a_wrong_password_is_refused_and_not_repeated(
    folder: JobFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    folder.write_job()
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server on PATH is missing")
    with running_server(program) as url:
        with redis.Redis.from_url(url) as client:
            client.config_set("requirepass", "right-secret")
        wrong = url.replace("unix://", "unix://:wrong-secret@")

        assert ended(*command, "--redis", wrong, "--debug") == 4
        shown = capsys.readouterr()
        monkeypatch.setenv("TXBATCH_REDIS_URL", wrong)
        assert ended(*command) == 4
        again = capsys.readouterr()

    assert f"server {url} refused the user name or password; check both in the URL" in shown.err
    assert f"server {url} refused the user name or password; check both in the URL" in again.err
    assert "-secret" not in shown.out + shown.err + again.out + again.err


def test_debug_shows_the_traceback(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job(more=FACTORIES)

    assert ended("run", "job_of_lines:cycle", "--debug") == 2

    assert f'File "{Path(folder.path, "job_of_lines.py")}"' in capsys.readouterr().err
