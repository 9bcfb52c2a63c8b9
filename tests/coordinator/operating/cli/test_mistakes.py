"""Each mistake ends in one sentence that says what happened, whose fault it is and what to do, and in its exit code."""

from __future__ import annotations

import bz2
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from coordinator.operating.cli import main
from coordinator.operating.cli.commands import run as run_module
from coordinator.operating.cli.run_command import execute
from coordinator.run_request import RunRequest
from coordinator.sources.files.line_files import TextFiles
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.redis_owner import slot as redis_slot
from tests.conftest import running_server
from tests.support.cli.faulty_jobs import OTHER_MODULES
from tests.support.cli.jobs import JobFolder
from tests.support.cli.mistakes import (
    COMMAND_LINE,
    INPUT,
    LOADING,
    REAL_SERVER,
    REAL_SPARK,
    RUNNING,
    SERVER,
    SILENT,
    WIRING,
    Mistake,
)
from tests.support.stores.tls_server import running_tls_server

by_name = partial(pytest.mark.parametrize, "mistake", ids=lambda row: row.typed)
LONGEST = 6_000
ROOT = Path(__file__).parents[4]


@pytest.fixture
def jobs(folder: JobFolder) -> JobFolder:
    for name, text in OTHER_MODULES.items():
        folder.write(name, text)
    folder.write("input.txt", "one\ntwo\nthree\n")
    folder.write("folder/input.txt", "one\n")
    folder.write("shared/report.txt", "not ours")
    (folder.path / "shared").chmod(0o755)
    (folder.path / "lines.bz2").write_bytes(bz2.compress(b"one\n"))
    with zipfile.ZipFile(folder.path / "lines.zip", "w") as archive:
        archive.writestr("lines.txt", "one\n")
    (folder.path / "utf16.txt").write_bytes("one\n".encode("utf-16"))
    (folder.path / "latin1.txt").write_bytes("one\ncaf\xe9\n".encode("latin-1"))
    (folder.path / "endless.txt").write_bytes(b"one\n" + b"x" * (3 * 1024 * 1024))
    os.mkfifo(folder.path / "pipe")
    return folder


def told(mistake: Mistake, capsys: pytest.CaptureFixture[str], **filled: str) -> str:
    """Types it and returns what is said, after what holds for every row."""
    arguments = [word.format(**filled) for word in mistake.typed.split(" ")]
    with pytest.raises(SystemExit) as end:
        main(arguments)
    shown = capsys.readouterr()
    assert end.value.code == mistake.code, shown.err
    assert shown.out == ""
    assert "canary" not in shown.err
    assert all(character.isprintable() or character == "\n" for character in shown.err), "no control characters"
    assert len(shown.err) < LONGEST
    assert "this was not expected" not in shown.err
    place = 0
    for part in mistake.told:
        assert part in shown.err[place:], shown.err
        place = shown.err.index(part, place) + len(part)
    return shown.err


def one_sentence(text: str) -> str:
    said = [line for line in text.splitlines() if line.startswith("txbatch: ")]
    assert len(said) == 1, text
    assert "Traceback" not in text
    return said[0]


@pytest.fixture(autouse=True)
def no_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is refused is refused before Spark is started."""
    if request.node.get_closest_marker("spark") is None:

        def started(*arguments: Any, **options: Any) -> Any:
            raise AssertionError("Spark was started")

        monkeypatch.setattr("coordinator.engines.spark.session.spark_lease", started)


@by_name(argvalues=COMMAND_LINE)
def test_a_mistake_of_the_command_line(jobs: JobFolder, capsys: pytest.CaptureFixture[str], mistake: Mistake) -> None:
    assert told(mistake, capsys).startswith("Usage: txbatch")


@by_name(argvalues=[*LOADING, *WIRING, *INPUT, *SERVER])
def test_a_mistake_that_is_refused_before_anything_is_written(jobs, capsys, monkeypatch, mistake) -> None:
    if mistake.redis_url:
        monkeypatch.setenv("TXBATCH_REDIS_URL", mistake.redis_url)
    one_sentence(told(mistake, capsys))
    assert not (jobs.path / ".txbatch").exists()


@by_name(argvalues=SILENT)
def test_a_server_that_is_silent(jobs: JobFolder, capsys, monkeypatch: pytest.MonkeyPatch, mistake: Mistake) -> None:
    be_impatient(monkeypatch)
    one_sentence(told(mistake, capsys))


@by_name(argvalues=RUNNING)
def test_a_mistake_of_a_job_that_runs(jobs: JobFolder, capsys, monkeypatch, mistake: Mistake) -> None:
    monkeypatch.setattr(run_module, "execute", partial(execute, runner=on_local_cluster))
    defaults = {**(TextFiles.__init__.__kwdefaults__ or {}), "line_bytes_max": 2**20}
    monkeypatch.setattr(TextFiles.__init__, "__kwdefaults__", defaults)
    text = told(mistake, capsys)
    assert text.count("txbatch: ") == text.count("\ntxbatch: ")
    assert text.count("Traceback (most recent call last)") <= 1, "the user's own, and only where his code raised"
    assert text.splitlines()[-1].strip()


@pytest.mark.redis
@by_name(argvalues=REAL_SERVER)
def test_a_mistake_about_a_real_server(jobs, capsys, monkeypatch, servers, mistake) -> None:
    be_impatient(monkeypatch)
    one_sentence(told(mistake, capsys, **servers))


@pytest.mark.spark
@by_name(argvalues=REAL_SPARK)
def test_a_mistake_that_spark_has_to_find(jobs: JobFolder, mistake: Mistake) -> None:
    # in a process of its own: pyspark leaves files open when it does not start
    (jobs.path / "json.py").unlink()  # it would hide the library's, as `-m` looks here first
    command = [sys.executable, "-m", "coordinator.operating.cli", *mistake.typed.split(" ")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=jobs.path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == mistake.code, ended.stderr
    assert ended.stdout == ""
    for part in mistake.told:
        assert part in ended.stderr, ended.stderr
    one_sentence(ended.stderr)


def test_the_table_has_sixty_rows_and_no_two_alike() -> None:
    rows = [*COMMAND_LINE, *LOADING, *WIRING, *INPUT, *SERVER, *SILENT, *RUNNING, *REAL_SERVER, *REAL_SPARK]
    assert len({(row.typed, row.redis_url) for row in rows}) == len(rows) >= 60


def on_local_cluster(topology: Any, request: RunRequest) -> RunStatistics:
    """Stands in for `run_as`: the same coordinator and tasks, in this process."""
    with LocalCluster() as cluster:
        run = cluster.submit(topology, options=request.options)
        assert request.on_start is not None
        request.on_start(run._coordinator)
        return run.run_until_idle()


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_slot, "FIRST_CONTACT_TIMEOUT_S", 0.1)
    monkeypatch.setattr("state.redis_client.connection.CONNECT_TIMEOUT_S", 0.3)
    monkeypatch.setattr("coordinator.server_choice.LOOK_TIMEOUT_S", 0.1)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """A server with a password that evicts, and one with a plain and a TLS port."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server on PATH is missing")
    with running_server(program) as url, running_tls_server() as tls:
        with redis.Redis.from_url(url) as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
            client.config_set("requirepass", "right-canary")
        yield {
            "url": url,
            "right": url.replace("unix://", "unix://:right-canary@"),
            "wrong": url.replace("unix://", "unix://:wrong-canary@"),
            "tls_to_plain": f"rediss://127.0.0.1:{tls.plain_port}",
            "plain_to_tls": f"redis://127.0.0.1:{tls.tls_port}",
            "untrusted": f"rediss://127.0.0.1:{tls.tls_port}",
        }
