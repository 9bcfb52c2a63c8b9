"""``--debug`` shows where a refusal was raised, and no output ever shows a password."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import redis

from tests.conftest import running_server
from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import JobFolder

NOT_BUILT = """

def without_input():
    builder = TransactionalTopologyBuilder("refused", "lines", TextFiles("input.txt"))
    builder.set_bolt("alone", BaseBatchBolt())
    return builder.build()
"""


@pytest.mark.redis
@pytest.mark.parametrize("command", [("run", "job_of_lines:topology"), ("status", "lines"), ("drop", "lines", "--yes")])
def test_a_wrong_password_is_refused_and_not_repeated(folder, capsys, monkeypatch, command) -> None:
    folder.write_job()
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server on PATH is missing")
    with running_server(program) as url:
        with redis.Redis.from_url(url) as client:
            client.config_set("requirepass", "right-secret")
        wrong = url.replace("unix://", "unix://:wrong-secret@")
        assert txbatch(*command, "--redis", wrong, "--debug") == 4
        shown = capsys.readouterr()
        monkeypatch.setenv("TXBATCH_REDIS_URL", wrong)
        assert txbatch(*command) == 4
        again = capsys.readouterr()
    assert f"server {url} refused the user name or password; check both in the URL" in shown.err
    assert f"server {url} refused the user name or password; check both in the URL" in again.err
    assert "-secret" not in shown.out + shown.err + again.out + again.err


def test_debug_shows_the_traceback(folder: JobFolder, complaint) -> None:
    folder.write_job(more=NOT_BUILT)
    assert f'File "{Path(folder.path, "job_of_lines.py")}"' in complaint("run job_of_lines:without_input --debug")
