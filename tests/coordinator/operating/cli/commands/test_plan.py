"""``txbatch plan`` as users type it."""

from __future__ import annotations

import json
import sys
from functools import partial

from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import PLAIN_JOB, JobFolder

ended = partial(txbatch, "plan")


def test_it_prints_the_stages_of_both_kinds_of_topologies(folder: JobFolder, output):
    folder.write_job()
    shown = output("plan job_of_lines:topology").splitlines()
    assert shown[0] == "lines: transactional topology, 2 components, 2 tasks"
    assert "  store  committer  Store      1 task  <- lines by global" in shown
    assert any(line.endswith("-> {lines}:lines (hash str -> int)") for line in shown)
    folder.write("plain_job.py", PLAIN_JOB)
    assert output("plan plain_job.py:topology").startswith("lines: plain topology, 2 components, 3 tasks")


def test_it_prints_mermaid_and_json_and_nothing_else(folder: JobFolder, output):
    folder.write_job(more="\nprint('hello')\n")
    assert output("plan job_of_lines:topology --format mermaid").startswith("flowchart LR\n")
    printed = json.loads(output("plan job_of_lines:topology --json -p topology_id=other"))
    assert (printed["topology"], [stage["phase"] for stage in printed["stages"]]) == ("other", ["processing", "commit"])


def test_mistakes_are_usage_errors_without_a_traceback(folder: JobFolder, complaint):
    folder.write_job()
    assert ended("job_of_lines:nothing") == 2
    said = complaint("plan job_of_lines:topology --json --format mermaid")
    assert "has no 'nothing'; it defines: topology" in said
    assert "--json and --format mermaid exclude each other; give one of them" in said
    assert "Traceback" not in said


def test_it_does_not_import_spark(folder: JobFolder, capsys, monkeypatch):
    folder.write_job()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert ended("job_of_lines:topology") == 0
