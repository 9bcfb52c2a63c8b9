"""``txbatch dry-run`` as users type it."""

from __future__ import annotations

import json
import sys
from functools import partial

from tests.support.approved import approved
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


def test_it_shows_batches_and_what_they_would_write_and_touches_no_server(folder: JobFolder, output, monkeypatch):
    folder.write_job(more=PARTS + BAD_STORE)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    commands = [
        *("topology -p lines_per_batch=2", "topology -p lines_per_batch=2 --batches 5 --limit 1"),
        *("topology --json --limit 2", "parts --limit 3", "parts --limit 1 --json"),
    ]
    shown = [f"$ txbatch dry-run job:{each}\n{output(f'dry-run job_of_lines:{each}')}" for each in commands]
    approved("".join(shown), "dry-run")
    assert not (folder.path / ".txbatch").exists()
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
