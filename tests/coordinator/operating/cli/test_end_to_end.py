"""The ``txbatch`` script as users run it: Spark, the private server, signals, two at once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state.records.run_pulse import RunState
from state.redis_admin.topology import RedisTopology
from state.redis_server.embedded import EmbeddedServer
from tests.support.cli.jobs import PLAIN_JOB, JobFolder
from tests.support.cli.processes import ran, started, stored

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LINE_COUNT = 40
RAISING = """

class Raises(Store):
    def execute(self, tup):
        super().execute(tup)
        if tup["line"] == "line 25":
            raise ValueError("no such line")


def raising(topology_id="lines"):
    return _stored_by(Raises(), topology_id=topology_id)
"""


def looked_at(folder: JobFolder, topology_id: str, txid: int, data_dir: str = ".txbatch") -> Any:
    """What the last run has told of itself, and what is known of a transaction."""
    with EmbeddedServer(folder.path / data_dir) as server, closing(RedisTopology(server.url, topology_id)) as topology:
        seen = topology.overview(with_samples=True)
        return None if seen is None else seen.pulse, topology.transaction(txid)


@pytest.fixture
def job(folder: JobFolder) -> JobFolder:
    folder.write_job(more=RAISING)
    folder.write("input.txt", "".join(f"line {number}\n" for number in range(LINE_COUNT)))
    return folder


def test_a_word_count_ends_in_one_line_of_json_and_exact_counts(folder: JobFolder) -> None:
    source = Path(__file__).parents[4] / "examples" / "word_count.py"
    folder.write("jobs/words.py", source.read_text(encoding="utf-8"))
    text = "a rose is\na rose\u2003is a rose\n" * 500
    folder.write("input.txt", text)
    folder.write("state/__init__.py", "raise RuntimeError('a folder of that name must not matter')")

    given = ["-p", "input=input.txt", "-p", "lines_per_batch=100", "--data-dir", "data"]
    code, output, said = ran(folder, "jobs/words.py:topology", *given, "--json")

    assert code == 0, said
    summary = json.loads(output)
    assert output.count("\n") == 1
    assert summary.pop("seconds") > 0
    found = {name: summary[name] for name in ("topology", "committed", "last_txid", "tuples", "attempts")}
    assert found == {"topology": "word_count", "committed": 10, "last_txid": 10, "tuples": 1000, "attempts": 10}
    assert summary["failed_attempts"] == 0
    assert stored(folder, "{word_count}:counts", "data") == Counter(text.split())
    pulse, last = looked_at(folder, "word_count", 10, "data")
    assert (pulse.now.state, pulse.now.committed, pulse.run.master) == (RunState.DONE, 10, "local[2]")
    assert pulse.now.components["count"].tuples_in == 1000
    assert pulse.samples[-1].last_txid == 10
    assert (last.is_committed, last.story.tuples, last.receipt.last_txid) == (True, 100, 10)
    assert last.story.components["store"].tuples_in == {
        "count/default": last.story.components["count"].tuples_out["default"]
    }
    assert [line for line in said.splitlines() if not line.startswith("word_count: ")] == []


@pytest.mark.nightly
def test_a_bolt_that_raises_ends_with_1_and_its_traceback(job: JobFolder) -> None:
    code, output, said = ran(job, "job_of_lines:raising", "--json")
    figures = json.loads(output)
    assert (code, figures["committed"], figures["error"]["exit_code"]) == (1, 2, 1), said
    assert "txbatch: component 'store', task 0, attempt 3:" in said
    assert 'raise ValueError("no such line")' in said
    pulse, third = looked_at(job, "lines", 3)
    assert (pulse.now.state, pulse.now.last_failure.kind) == (RunState.FAILED, "user code")
    assert "ValueError: no such line" in pulse.now.last_failure.reason
    assert (third.is_committed, bool(third.metadata)) == (False, True)
    assert stored(job, "{lines}:lines") == {"all": 20}


def test_a_plain_topology_runs_until_its_spouts_are_idle(folder: JobFolder) -> None:
    folder.write("job_of_plain_lines.py", PLAIN_JOB)
    code, output, _ = ran(folder, "job_of_plain_lines:topology", "--stop-when-idle", "--json")
    found = json.loads(output)
    assert (code, found["emitted"], found["acked"], found["failed"]) == (0, 20, 20, 0)
    assert not (folder.path / ".txbatch").exists()


@pytest.mark.nightly
def test_a_plain_topology_runs_until_it_is_told_to_end(folder: JobFolder) -> None:
    folder.write("job_of_plain_lines.py", PLAIN_JOB)
    with started(folder, "job_of_plain_lines:topology", "--json") as command:
        command.await_words("lines: running")
        command.process.send_signal(signal.SIGTERM)
        code, output = command.ended()
    assert (code, json.loads(output)["failed"]) == (0, 0)
