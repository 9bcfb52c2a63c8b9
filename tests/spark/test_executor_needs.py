"""What executors lack is told in one sentence, at the first try."""

from __future__ import annotations

import subprocess

import pytest

from coordinator.engines.spark.shipping import packed_code
from tests.support.chaos.jobs import Site
from tests.support.spark.installed import python_with

TIMEOUT_S = 120.0
JOB = """
from coordinated_bolt import BaseBatchBolt
from coordinator import FixedBatchesSpout, TransactionalTopologyBuilder


class Grows(BaseBatchBolt):
    output_fields = ("x",)

    def execute(self, tup):
        self.collector.emit_all([str(number) * 20] for number in range(tup["x"]))


class Sinks(BaseBatchBolt):
    def execute(self, tup):
        pass


def topology(size: int = 1):
    builder = TransactionalTopologyBuilder("needs", "in", FixedBatchesSpout([[[size]]] * 6, ["x"]))
    builder.set_bolt("grow", Grows()).shuffle_grouping("in")
    builder.set_bolt("sink", Sinks()).shuffle_grouping("grow")
    return builder.build()
"""

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def site(tmp_path):
    (tmp_path / "needing_job.py").write_text(JOB, encoding="utf-8")
    site = Site(tmp_path, "needs", [f"{tmp_path}/needing_job.py:topology"])
    yield site
    site.close()


def refusal(site: Site, *more: str) -> str:
    """The sentence a job ends with; there is no second try, and no Java stack."""
    job = site.start(*more)
    assert job.wait(TIMEOUT_S) == 5, job.complaint()
    told = [line for line in job.complaint().splitlines() if line.startswith("txbatch: ")]
    assert "\tat " not in job.complaint()
    assert len(told) == 2, told
    assert told[0].startswith("txbatch: wave 1 of ")
    return " ".join(job.complaint().partition(told[1])[1:]).replace("\n  ", "; ")


@pytest.mark.nightly
def test_a_library_that_executors_lack_is_named_first(site, tmp_path, monkeypatch):
    python = python_with(tmp_path, "msgpack", "raise ModuleNotFoundError(\"No module named 'msgpack'\")\n")
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))

    sentence = refusal(site)

    assert sentence.startswith("txbatch: Spark cannot run txid 1: ModuleNotFoundError: No module named 'msgpack'")
    assert "name the right interpreter in PYSPARK_PYTHON; `txbatch explain spark` says what executors need" in sentence


@pytest.mark.nightly
def test_a_python_that_executors_do_not_find_is_named_first(site, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/none/python")

    sentence = refusal(site)

    assert sentence.startswith('txbatch: Spark cannot run txid 1: Cannot run program "/none/python"')
    assert "name one that is there in PYSPARK_PYTHON" in sentence


@pytest.mark.nightly
def test_a_full_disk_is_named_with_the_setting(site, tmp_path):
    """It has room for one copy of the code, and Spark makes a second one."""
    small, size = tmp_path / "small", len(packed_code([])) * 3 // 2
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(small)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk can only be made by root")
    try:
        job = site.start("-p", "size=400000", "--conf", f"spark.local.dir={small}")
        assert job.wait(TIMEOUT_S) == 5, job.complaint()
    finally:
        subprocess.run(["umount", str(small)], check=True)

    (sentence,) = (line for line in job.complaint().splitlines() if line.startswith("txbatch: "))
    assert "\tat " not in job.complaint()
    assert sentence.startswith("txbatch: Spark could not copy a file: ")
    assert "No space left on device; the disk below spark.local.dir is full" in sentence
    assert "--conf spark.local.dir=DIR" in sentence
