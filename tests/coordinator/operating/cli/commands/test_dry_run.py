"""``txbatch dry-run`` as users type it."""

from __future__ import annotations

import json
import sys
from functools import partial

from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import PLAIN_JOB, JobFolder

BAD_STORE = """

class BadStore(Store):
    def execute(self, tup):
        print("hello")
        raise ValueError("no such line")


def bad(input="input.txt"):
    return _stored_by(BadStore(), input, 2)
"""


PARTS = """

class StoreParts(Store):
    by_line = HashState("by_line", value=int).per("line")

    def prepare(self, conf, context, collector, attempt):
        self.found = []

    def execute(self, tup):
        self.found.append(tup["line"])

    def finish_batch(self):
        for line in self.found:
            self.by_line[line].put_many({"a": 1, "b": 2})


def parts(input="input.txt"):
    return _stored_by(StoreParts(), input, 9)
"""
ended = partial(txbatch, "dry-run")


def test_it_shows_the_first_batch_and_touches_no_server(folder: JobFolder, output, monkeypatch):
    folder.write_job()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert output("dry-run job_of_lines:topology -p lines_per_batch=2").splitlines() == [
        "lines: batch 1, not committed",
        "  lines (spout TextFiles): 2 tuples emitted",
        "    line='one'",
        "    line='two'",
        "  store (committer Store): 0 tuples emitted",
        "  would write",
        "    {lines}:lines (hash), by store: 1 change",
        "      'all' += 2",
    ]
    assert not (folder.path / ".txbatch").exists()


def test_it_shows_as_many_batches_and_tuples_as_it_is_told(folder: JobFolder, output):
    folder.write_job()
    shown = output("dry-run job_of_lines:topology -p lines_per_batch=2 --batches 5 --limit 1").splitlines()
    assert [line for line in shown if "batch" in line] == [
        "lines: batch 1, not committed",
        "lines: batch 2, not committed",
    ]
    assert "    … 1 more" in shown


def test_a_limit_is_for_all_parts_of_a_state_together(folder: JobFolder, output):
    folder.write_job(more=PARTS)
    shown = output("dry-run job_of_lines:parts --limit 3").splitlines()
    assert shown[shown.index("  would write") + 1 :] == [
        "    {lines}:by_line:one (hash), by store: 2 changes",
        "      'a' = 1",
        "      'b' = 2",
        "    {lines}:by_line:three (hash), by store: 2 changes",
        "      'a' = 1",
        "      … 1 more",
        "    … 1 part more of state by_line, by store: 2 changes",
    ]
    (batch,) = json.loads(output("dry-run job_of_lines:parts --limit 1 --json"))["batches"]
    assert [(each["count"], len(each["changes"])) for each in batch["writes"]] == [(2, 1)]
    assert batch["left_out"] == [{"component": "store", "state": "by_line", "parts": 2, "changes": 4}]


def test_with_json_there_is_one_line_of_it_even_after_an_error(folder: JobFolder, output):
    folder.write_job(more=BAD_STORE)
    printed = json.loads(output("dry-run job_of_lines:topology --json --limit 2"))
    (batch,) = printed["batches"]
    assert batch["components"][0]["emitted"] == 3
    assert batch["components"][0]["tuples"][0] == {"stream": "default", "values": {"line": "one"}}
    assert batch["writes"] == [
        {
            "component": "store",
            "key": "{lines}:lines",
            "type": "hash",
            "count": 1,
            "changes": [{"operation": "increment", "field": "all", "value": 3}],
        }
    ]
    assert json.loads(output("dry-run job_of_lines:bad --json", code=1))["batches"][0]["writes"] is None


def test_an_error_of_user_code_names_component_and_tuple_after_what_was_emitted(folder: JobFolder, capsys):
    folder.write_job(more=BAD_STORE)
    assert ended("job_of_lines:bad") == 1
    shown = capsys.readouterr()
    assert "    line='one'" in shown.out.splitlines()
    assert "hello" not in shown.out
    assert "component 'store'" in shown.err or "store[0]" in shown.err
    assert "ValueError: no such line" in shown.err
    assert "'one'" in shown.err


def test_what_cannot_be_run_dry_and_an_empty_input_say_so(folder: JobFolder, capsys, output):
    folder.write("plain_job.py", PLAIN_JOB)
    assert ended("plain_job.py:topology", "--json") == 2
    shown = capsys.readouterr()
    assert (shown.out, "is a plain one" in shown.err) == ("", True)
    folder.write_job()
    folder.write("empty.txt", "")
    assert output("dry-run job_of_lines:topology -p input=empty.txt") == "lines: the input has no batch for now\n"
    assert output("dry-run job_of_lines:topology -p input=empty.txt --json") == '{"topology": "lines", "batches": []}\n'
