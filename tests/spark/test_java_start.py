"""What a user sees of Spark's Java process: nothing while all is well, and why it does not start when it does not."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from coordinator.engines.spark.java.gateway import stop_context
from coordinator.engines.spark.session import open_context
from state.errors import EngineError, TopologyError

def work(number):
    print(f"bolt {number}", file=sys.stderr)
    return 1 // number

settings = dict(setting.split("=", 1) for setting in sys.argv[2:])
try:
    context = open_context("quiet", sys.argv[1], settings)
except TopologyError as error:
    sys.exit(f"refused: {error}")
except EngineError as error:
    sys.exit(f"ended: {error}")
print("started", file=sys.stderr)
for numbers in ([1], [0]):
    try:
        context.parallelize(numbers, 1).map(work).collect()
    except Exception as error:
        print("raised", file=sys.stderr)
stop_context(context)
print("stopped", file=sys.stderr)
"""


def said(master: str, *settings: str, files: int | None = None, **environment: str) -> list[str]:
    """Lines on standard error of a process that starts Spark, runs a good job and one that raises, and stops it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, master, *settings],
        preexec_fn=None if files is None else lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


@pytest.mark.nightly
def test_a_run_shows_what_its_tasks_write_and_not_a_line_of_sparks_own():
    assert said("local[1]") == ["started", "bolt 1", "bolt 0", "raised", "stopped"]


@pytest.mark.nightly
def test_a_user_who_asks_for_sparks_log_gets_it():
    lines = said("local[1]", "spark.log.level=ERROR")

    assert any(" ERROR Executor: Exception in task 0.0" in line for line in lines), lines


def test_an_error_of_java_before_spark_begins_reaches_the_user():
    (line,) = said("local[1]", "spark.driver.memory=900000g", JAVA_TOOL_OPTIONS="-Dnothing=wrong")

    assert line.startswith("refused: spark does not start with master 'local[1]': Error occurred during initialization")
    assert "Could not reserve enough space" in line


@pytest.mark.nightly
def test_an_error_of_spark_while_it_begins_reaches_the_user():
    (line,) = said("local[x]")

    assert line == (
        "refused: spark does not start with master 'local[x]': Could not parse Master URL: 'local[x]'; check master "
        "and conf"
    )


def test_a_java_that_is_missing_is_no_fault_of_the_command():
    (line,) = said("local[1]", JAVA_HOME="/none")

    assert line.startswith("ended: Spark does not start: ")
    assert line.endswith("set JAVA_HOME to it; `--engine local` runs small inputs without Java")


def test_a_process_that_may_open_too_few_files_is_told_of_its_limit():
    (line,) = said("local[1]", files=128)

    assert line.startswith(
        "ended: Spark does not start, since this process and its children may open only 128 files each: raise the limit"
    )


@pytest.mark.nightly
@pytest.mark.redis
def test_no_batch_is_quarantined_where_spark_can_start_no_worker(tmp_path: Path, redis_backend):
    program = f"""
from coordinator import RunOptions
from coordinator.run import run
from tests.support.spark.bolts import numbers_topology
run(
    numbers_topology(4), redis_url={redis_backend.url!r}, master="local[2]",
    conf={{"spark.python.daemon.module": "none"}}, options=RunOptions(on_poison="quarantine", max_attempts=2),
)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    last = done.stderr.splitlines()[-1]
    assert "EngineError: Spark failed 2 times at txid 1, where no batch is to blame: " in last
    assert "; a job that does nothing fails " in last
