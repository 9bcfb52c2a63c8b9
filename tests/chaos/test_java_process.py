"""`txbatch run` whose Java process is killed or frozen, or that is told to end while nothing answers."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.support.chaos.jobs import FORBIDDEN_WORDS, Job, Site, await_true
from tests.support.chaos.nemesis.processes import java_of
from tests.support.cli.jobs import PLAIN_JOB

TIMEOUT_S = 120.0
STOP_S = 12
HANGING_JOB = """
import time

from coordinated_bolt import BaseBatchBolt
from coordinator import FixedBatchesSpout, TransactionalTopologyBuilder


class Hangs(BaseBatchBolt):
    def execute(self, tup):
        open(tup["marker"], "w").close()
        time.sleep(600)


def topology(marker):
    builder = TransactionalTopologyBuilder("hanging", "in", FixedBatchesSpout([[[marker]]], ["marker"]))
    builder.set_bolt("work", Hangs()).shuffle_grouping("in")
    builder.set_message_timeout_s(600)
    return builder.build()
"""

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


@pytest.fixture
def hanging(tmp_path):
    """A site whose job hangs in a bolt, and the file that says that it has begun to."""
    (tmp_path / "hanging_job.py").write_text(HANGING_JOB, encoding="utf-8")
    marker = tmp_path / "hangs"
    site = Site(tmp_path, "hanging", [f"{tmp_path}/hanging_job.py:topology", "-p", f"marker={marker}"])
    yield site, marker
    site.close()


def java_below(job: Job) -> int:
    java = java_of(job.pid)
    assert java is not None, f"job {job.pid} has no Java process"
    return java


def start_hanging(site: Site, marker: Path, *more: str) -> tuple[Job, int]:
    job = site.start(*more)
    assert await_true(marker.exists, TIMEOUT_S), job.complaint()
    return job, java_below(job)


SAID_BESIDES = re.compile(r"^hanging: (starting|preparing|comparing|running)|durability memory\)$|^`txbatch explain ")
"""What a run says at its start, and the last line of every error."""


def told(job: Job) -> list[str]:
    """What the job wrote to standard error after its start, none of it a stack."""
    lines = [line for line in job.complaint().splitlines() if not SAID_BESIDES.search(line)]
    assert not any(word in line for word in (*FORBIDDEN_WORDS, "\tat ", "EOFError") for line in lines), lines
    return lines


def test_a_java_process_that_is_killed_ends_the_run_at_once_with_one_sentence_and_a_code_of_its_own(hanging):
    site, marker = hanging
    job, java = start_hanging(site, marker)
    os.kill(java, signal.SIGKILL)

    assert job.wait(20) == 5
    assert told(job) == [
        f"txbatch: Spark's Java process (pid {java}) has ended: it was killed by signal 9, as the kernel does when the "
        "machine's memory runs out; nothing that was committed is lost; run again"
    ]
    assert await_true(lambda: not site.leftovers(), TIMEOUT_S)


@pytest.mark.nightly
def test_a_java_process_that_is_frozen_ends_the_run_within_a_bound(hanging):
    site, marker = hanging
    job, java = start_hanging(site, marker)
    began = time.monotonic()
    os.kill(java, signal.SIGSTOP)

    assert job.wait(60) == 5
    assert time.monotonic() - began < 45
    assert told(job) == [
        f"txbatch: Spark's Java process (pid {java}) has not answered for 30 s: it is stopped, swapped out, or short "
        "of memory; nothing that was committed is lost; run again"
    ]
    assert await_true(lambda: not site.leftovers(), TIMEOUT_S)


@pytest.mark.nightly
def test_sigterm_ends_a_run_whose_java_process_is_frozen(hanging):
    site, marker = hanging
    job, java = start_hanging(site, marker, "--stop-timeout", str(STOP_S))
    os.kill(java, signal.SIGSTOP)
    began = time.monotonic()
    os.kill(job.pid, signal.SIGTERM)

    assert job.wait(3 * STOP_S) == 143
    assert time.monotonic() - began < STOP_S + 3
    assert await_true(lambda: not site.leftovers(), TIMEOUT_S)


@pytest.mark.nightly
def test_sigterm_ends_a_run_whose_bolt_does_not_return(hanging):
    site, marker = hanging
    job, _ = start_hanging(site, marker, "--stop-timeout", str(STOP_S))
    began = time.monotonic()
    os.kill(job.pid, signal.SIGTERM)

    assert job.wait(3 * STOP_S) == 143
    assert time.monotonic() - began < STOP_S + 3
    assert told(job)[-1] == "txbatch: stopped; run again to continue after the last commit"
    assert await_true(lambda: not site.leftovers(), TIMEOUT_S)


@pytest.mark.nightly
def test_two_signals_end_a_run_whose_java_process_is_frozen(hanging):
    site, marker = hanging
    job, java = start_hanging(site, marker)
    os.kill(java, signal.SIGSTOP)
    os.kill(job.pid, signal.SIGINT)
    assert await_true(lambda: "a second signal stops at once" in job.complaint(), TIMEOUT_S)
    began = time.monotonic()
    os.kill(job.pid, signal.SIGINT)

    assert job.wait(40) == 130
    assert time.monotonic() - began < 13
    assert await_true(lambda: not site.leftovers(), TIMEOUT_S)


@pytest.mark.nightly
def test_a_plain_run_is_told_too_when_its_java_process_is_killed(tmp_path):
    text = PLAIN_JOB.replace("        pass\n", "        import time\n\n        time.sleep(600)\n")
    (tmp_path / "plain_job.py").write_text(text, encoding="utf-8")
    site = Site(tmp_path, "lines", [f"{tmp_path}/plain_job.py:topology"])
    try:
        job = site.start()
        assert await_true(lambda: "running" in job.complaint(), TIMEOUT_S)
        java = java_below(job)
        os.kill(java, signal.SIGKILL)

        assert job.wait(20) == 5
        (sentence,) = [line for line in told(job) if line.startswith("txbatch: ")]
        assert sentence.startswith(f"txbatch: Spark's Java process (pid {java}) has ended: it was killed by signal 9")
        assert await_true(lambda: not site.leftovers(), TIMEOUT_S)
    finally:
        site.close()


@pytest.mark.nightly
def test_a_dead_master_is_one_sentence(hanging):
    site, _ = hanging
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        job = site.start("--master", master)
        assert job.wait(30) == 5
    assert [line for line in told(job) if "cannot be reached" not in line] == []
    assert await_true(lambda: not site.leftovers(), TIMEOUT_S)
