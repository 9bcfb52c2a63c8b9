"""A poisoned input on Spark: quarantined, the rest counted, republished with fixed code; as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from state.redis_server.embedded import EmbeddedServer
from tests.support.cli.jobs import JobFolder

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

JOB = """

class Parse(BaseBatchBolt):
    output_fields = ("line",)

    def __init__(self, is_fixed):
        self.is_fixed = is_fixed

    def execute(self, tup):
        if tup["line"].startswith("poison") and not self.is_fixed:
            raise ValueError(tup["line"])
        self.collector.emit([tup["line"]])


def parsed(input="input.txt", is_fixed: bool = False):
    builder = TransactionalTopologyBuilder("lines", "lines", TextFiles(input, 10), parallelism=2)
    builder.set_bolt("parse", Parse(is_fixed), 2).shuffle_grouping("lines")
    builder.set_committer_bolt("store", Store()).global_grouping("parse")
    return builder.build()
"""


def txbatch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("txbatch")), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def counted(folder: Path) -> int:
    with EmbeddedServer(folder / ".txbatch") as server, redis.Redis.from_url(server.url) as client:
        return int(client.hget("{lines}:lines", "all") or 0)


@pytest.mark.nightly
def test_poison_is_quarantined_and_republished_with_fixed_code(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    folder.write_job(more=JOB)
    lines = [f"line {number}" for number in range(200)]
    lines[57] = lines[123] = "poison"
    folder.write("input.txt", "\n".join(lines))
    spark = ("job_of_lines:parsed", "--master", "local[2]")
    run = txbatch(tmp_path, "run", *spark, "--on-poison", "quarantine", "--max-attempts", "2", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["quarantined"] == [6, 13]
    assert run.stderr.splitlines()[-1] == (
        "txbatch: QUARANTINED, and therefore not in the state: the batches of txid 6, 13; see `txbatch quarantine list "
        "lines`"
    )
    assert counted(tmp_path) == 180
    still = txbatch(tmp_path, "quarantine", "republish", *spark, "--txid", "6")
    assert (still.returncode, "ValueError: poison" in still.stderr) == (1, True)
    assert counted(tmp_path) == 180
    again = txbatch(tmp_path, "quarantine", "republish", *spark, "--all", "-p", "is_fixed=true", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["republished"] == [{"quarantined": 6, "txid": 21}, {"quarantined": 13, "txid": 22}]
    assert counted(tmp_path) == 200
    assert txbatch(tmp_path, "quarantine", "list", "lines").stdout == "topology 'lines' has no quarantined batches\n"
    again = txbatch(tmp_path, "run", *spark, "--json")
    assert (again.returncode, json.loads(again.stdout)["committed"]) == (0, 0)
