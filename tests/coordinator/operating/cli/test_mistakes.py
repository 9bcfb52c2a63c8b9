"""Each mistake ends in one sentence that says what happened, whose fault it is and what to do, and in its exit code.

The rows are those that only the whole command meets, and one of each other kind: what a message says exactly is
asserted where it is made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from coordinator.operating.cli.commands import run as run_module
from coordinator.operating.cli.run_command import execute
from coordinator.run_request import RunRequest
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.planning.task_wirings import SPEC_LIMIT_BYTES
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.redis_owner import slot as redis_slot
from tests.conftest import redis_program, running_server
from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import JobFolder

LONGEST = 6_000
ROOT = Path(__file__).parents[4]
JOBS = """
import os

from committers import ICommitter
from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, CustomGrouping
from coordinator import FixedBatchesSpout, ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from coordinator import TextFiles, TransactionalTopologyBuilder
from state import HashState

class Pass(BaseBatchBolt):
    output_fields = ("line",)

    def execute(self, tup):
        self.collector.emit(tup.values)

class Count(BaseBatchBolt, ICommitter):
    lines = HashState("lines")

    def execute(self, tup): ...

    def finish_batch(self): ...

class Writes(Pass):
    lines = HashState("lines")

class Basic(BaseBasicBolt):
    def execute(self, tup, collector): ...

class Huge(Pass):
    def __init__(self):
        self.model = os.urandom(9 * 1024 * 1024)

class Raises(Count):
    def execute(self, tup):
        int(tup["line"])

class Draws(Count):
    def execute(self, tup):
        raise ValueError("\\x1b[2J\\x1b[31mdone\\r" + "x" * 100_000)

class BrokenSpout(ITransactionalSpout):
    output_fields = ("line",)

    def get_coordinator(self, conf, context):
        return BrokenCoordinator()

    def get_emitter(self, conf, context):
        return SpoutEmitter()

    def fingerprint(self):
        return "broken"

class BrokenCoordinator(SpoutCoordinator):
    def is_ready(self):
        return True

    def initialize_transaction(self, txid, previous):
        return open("/no/such/list").read()

def raises():
    return {}["input"]

# a factory whose builder `wire` is given
def wired(wire, spout=lambda: FixedBatchesSpout([[["one"], ["two"]]] * 2, ["line"])):
    def factory():
        builder = TransactionalTopologyBuilder("job", "lines", spout())
        wire(builder)
        return builder.build()
    return factory

def storing(store, *spout):
    return wired(lambda builder: builder.set_bolt("store", store).shuffle_grouping("lines"), *spout)

def sound(input="input.txt"):
    return storing(Count(), lambda: TextFiles(input))()

cycle = wired(lambda builder: builder.set_bolt("one", Pass()).shuffle_grouping("one"))
grouping_class = wired(lambda builder: builder.set_bolt("one", Pass()).custom_grouping("lines", CustomGrouping))
basic_committer = wired(lambda builder: builder.set_committer_bolt("one", Basic()).shuffle_grouping("lines"))
no_spout = storing(Count(), lambda: ["a line"])
state_outside_a_committer = storing(Writes())
huge_bolt = storing(Huge())
execute_raises = storing(Raises())
message_draws = storing(Draws())
spout_raises = storing(Count(), BrokenSpout)
"""

COMMAND_LINE = [
    ("start x", 2, ["No such command 'start'"]),
    ("run jobs:sound --paralellism 3", 2, ["No such option", "--paralellism"]),
    ("run jobs:sound --max-pending 0", 2, ["--max-pending", "greater than or equal to 1"]),
]
REFUSED = [
    ("run jobs:raises", 2, ["factory 'jobs:raises' raised KeyError: 'input' (", "jobs.py, line "]),
    ("run leaving:x", 2, ["importing 'leaving' raised SystemExit: usage: leaving (", "3)"]),
    ("run jobs:sound --adopt=everything", 2, ["option adopt is 'everything'", "give True, or one or more of these"]),
    ("run jobs:cycle", 2, ["the topology has a cycle: ", "remove a subscription"]),
    ("run jobs:grouping_class", 2, ["custom_grouping got the class CustomGrouping, not an"]),
    ("run jobs:basic_committer", 2, ["has no finish_batch to commit in; make it an"]),
    ("run jobs:no_spout", 2, ["spout 'lines' is ['a line'] of type list; give an instance"]),
    ("run jobs:state_outside_a_committer", 2, ["is not a committer, and only committers"]),
    ("run jobs:huge_bolt", 2, ["component 'store' pickles to 9,4", f"more than {SPEC_LIMIT_BYTES:,}; load large data"]),
    ("run jobs:sound -p input=nothing/*.txt", 2, ["no file matches 'nothing/*.txt'", "give the path"]),
    ("run jobs:sound -p input=pipe", 2, ["is not a regular file: a replay has to read it again", "copy it"]),
    ("run jobs:sound --redis http://u:canary@h", 2, ["'http://h' begins with http://; give"]),
    ("run jobs:sound --redis redis://:can/ary@h", 2, ["'redis://h'", "write it as %2F"]),
    ("status job --redis redis://u:canary", 2, ["'redis://u:?'", "put it before an '@'"]),
    ("run jobs:sound --redis redis://:canary@192.0.2.1", 2, ["in plain text", "use rediss://"]),
    ("run jobs:sound --data-dir input.txt", 4, ["cannot be used: File exists; or choose"]),
    ("run jobs:sound --data-dir shared", 4, ["open to other users (mode 755) and holds"]),
    ("drop job --yes --data-dir nowhere", 2, ["data directory 'nowhere' holds no state"]),
]
OF_THE_ENVIRONMENT = [
    ("redis://:c@n/ary@h", ["'redis://h'", "'@' as %40"]),
    ("redis://:can?ary@h", ["'redis://?'", "as %3F"]),
]
RUNNING = [
    (
        "run jobs:execute_raises",
        1,
        [
            "component 'store', task 0, attempt 1:",
            "at tuple Tuple(",
            "ValueError: invalid literal for int() with base 10",
        ],
    ),
    ("run jobs:message_draws", 1, ["ValueError: \\x1b[2J\\x1b[31mdone\\rxxx", "more)"]),
    (
        "run jobs:spout_raises",
        1,
        ["initialize_transaction of txid 1 of component 'lines' failed:", "No such file or directory: '/no/such/list'"],
    ),
]


@pytest.fixture
def jobs(folder: JobFolder) -> JobFolder:
    folder.write("jobs.py", JOBS)
    folder.write("leaving.py", "import sys\n\nsys.exit('usage: leaving')\n")
    folder.write("input.txt", "one\ntwo\nthree\n")
    folder.write("shared/report.txt", "not ours")
    (folder.path / "shared").chmod(0o755)
    os.mkfifo(folder.path / "pipe")
    return folder


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is refused is refused before Spark is started."""

    def started(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("coordinator.engines.spark.session.spark_lease", started)


def said(capsys: pytest.CaptureFixture[str], typed: str, code: int, parts: list[str]) -> str:
    """Types it and returns what is said, after what holds for every mistake."""
    assert txbatch(*typed.split(" ")) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "canary" not in shown.err
    assert all(character.isprintable() or character == "\n" for character in shown.err), "no control characters"
    assert len(shown.err) < LONGEST
    place = 0
    for part in parts:
        assert part in shown.err[place:], shown.err
        place = shown.err.index(part, place) + len(part)
    return shown.err


def is_one_sentence(text: str) -> bool:
    return text.count("txbatch: ") == 1 and "Traceback" not in text


@pytest.mark.parametrize("mistake", COMMAND_LINE, ids=lambda row: row[0])
def test_a_mistake_of_the_command_line(jobs, capsys, mistake) -> None:
    assert said(capsys, *mistake).startswith("Usage: txbatch")


@pytest.mark.parametrize("mistake", REFUSED, ids=lambda row: row[0])
def test_a_mistake_that_is_refused_before_anything_is_written(jobs, capsys, mistake) -> None:
    assert is_one_sentence(said(capsys, *mistake))
    assert not (jobs.path / ".txbatch").exists()


@pytest.mark.parametrize(("url", "parts"), OF_THE_ENVIRONMENT)
def test_a_mistake_in_the_environment(jobs, capsys, monkeypatch, url, parts) -> None:
    monkeypatch.setenv("TXBATCH_REDIS_URL", url)
    assert is_one_sentence(said(capsys, "run jobs:sound", 2, parts))


def test_a_server_that_is_silent(jobs: JobFolder, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_slot, "FIRST_CONTACT_TIMEOUT_S", 0.1)
    monkeypatch.setattr("state.redis_client.connection.CONNECT_TIMEOUT_S", 0.3)
    silent = "run jobs:sound --redis redis://127.0.0.1:1"
    assert is_one_sentence(said(capsys, silent, 4, ["did not answer for", "start it or check"]))


@pytest.mark.redis
@pytest.mark.parametrize("command", [("run", "jobs:sound"), ("status", "job"), ("drop", "job", "--yes")])
def test_a_wrong_password_is_refused_and_not_repeated(jobs, capsys, monkeypatch, command) -> None:
    with running_server(redis_program()) as url:
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


def on_local_cluster(topology: Any, request: RunRequest) -> RunStatistics:
    """Stands in for `run_as`: the same coordinator and tasks, in this process."""
    with LocalCluster() as cluster:
        run = cluster.submit(topology, options=request.options)
        assert request.on_start is not None
        request.on_start(run._coordinator)
        return run.run_until_idle()


@pytest.mark.parametrize("mistake", RUNNING, ids=lambda row: row[0])
def test_a_mistake_of_a_job_that_runs(jobs, capsys, monkeypatch, mistake) -> None:
    monkeypatch.setattr(run_module, "execute", partial(execute, runner=on_local_cluster))
    text = said(capsys, *mistake)
    assert text.count("txbatch: ") == text.count("\ntxbatch: ")
    assert text.count("Traceback (most recent call last)") <= 1, "the user's own, and only where his code raised"


@pytest.mark.spark
def test_a_mistake_that_spark_has_to_find(jobs: JobFolder) -> None:
    # in a process of its own: pyspark leaves files open when it does not start
    spark = ["--master", "local[1]", "--conf", "spark.local.dir=input.txt"]
    command = [sys.executable, "-m", "coordinator.operating.cli", "run", "jobs:sound", *spark]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=jobs.path, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert "File exists; give" in ended.stderr
    assert is_one_sentence(ended.stderr)
