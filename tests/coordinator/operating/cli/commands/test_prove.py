"""``txbatch prove`` as users type it."""

from __future__ import annotations

import json
from functools import partial

import pytest

from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import PLAIN_JOB, JobFolder

KEEPING = """

class KeepingStore(Store):
    known = 0

    def finish_batch(self):
        KeepingStore.known += 1
        self.lines.increment("all", self.known)


def keeping(input="input.txt", lines_per_batch=2):
    return _stored_by(KeepingStore(), input, lines_per_batch)


class KeepsAll(Store):
    found = HashState("found", value=str)

    def execute(self, tup):
        self.line = tup["line"]

    def finish_batch(self):
        self.found.put(self.line, "")


class OnePerTask(BaseBatchBolt):
    output_fields = ("line",)

    def execute(self, tup):
        pass

    def finish_batch(self):
        self.collector.emit(["of this task"])


class FirstOfSet(OnePerTask):
    def execute(self, tup):
        self.first = " ".join([*{f"{tup['line']} {number}" for number in range(50)}][:5])  # never alike by chance

    def finish_batch(self):
        self.collector.emit([self.first])


def hashes(input="input.txt", lines_per_batch=2):
    return _stored_by(KeepsAll(), input, lines_per_batch, each=FirstOfSet())


def tasks(input="input.txt", lines_per_batch=2):
    return _stored_by(Store(), input, lines_per_batch, each=OnePerTask(), tasks=2)
"""
ended = partial(txbatch, "prove")


@pytest.mark.nightly
def test_a_topology_that_bears_everything_ends_with_0_and_a_sentence(folder: JobFolder, output) -> None:
    folder.write_job()
    said = output("prove job_of_lines:topology -p lines_per_batch=1 --seeds 5")
    assert said == "lines: the same state under every schedule; 3 transactions, 5 seeds\n"
    assert not (folder.path / ".txbatch").exists()


def test_a_mistake_ends_with_1_and_its_line(folder: JobFolder, output) -> None:
    folder.write_job(more=KEEPING)
    shown = output("prove job_of_lines.py:keeping", code=1).splitlines()
    assert shown[0] == "lines: not proved; 2 transactions, 0 seeds"
    assert "KeepingStore.known has changed (certain)" in shown[2]
    file, line = shown[3].removeprefix("  at ").rsplit(":", 1)
    assert folder.path.joinpath(file).read_text().splitlines()[int(line) - 1] == "    known = 0"


@pytest.mark.parametrize(
    "target", [pytest.param("job_of_lines:hashes", marks=pytest.mark.nightly), "job_of_lines.py:hashes"]
)
def test_a_result_that_depends_on_the_hash_seed_is_found(folder: JobFolder, output, target: str) -> None:
    folder.write_job(more=KEEPING)
    assert "\nhashes 'each': with another hash seed, txid 1 emits [" in output(f"prove {target}", code=1)
    assert ended(target, "--keep-hashes", "--seeds", "2") == 0


def test_a_failing_schedule_is_printed_with_the_command_that_plays_it_again(folder: JobFolder, output) -> None:
    folder.write_job(more=KEEPING)
    printed = json.loads(output("prove job_of_lines:tasks -p lines_per_batch=3 --json", code=1))
    assert (printed["holds"], printed["failing_seed"] is None, bool(printed["story"])) == (False, False, True)
    assert [found["mistake"] for found in printed["mistakes"]] == ["tasks"]
    assert printed["again"].startswith("txbatch prove job_of_lines:tasks -p lines_per_batch=3 --seeds 1 --seed ")
    _, _, *arguments = printed["again"].split()
    assert f"again: {printed['again']}" in output("prove", *arguments, code=1)


@pytest.mark.parametrize(("target", "why"), [("plain_job:topology", "is a plain one"), ("job_of_lines:none", "has no")])
def test_what_cannot_be_proved_ends_with_2(folder: JobFolder, complaint, target: str, why: str) -> None:
    folder.write_job()
    folder.path.joinpath("plain_job.py").write_text(PLAIN_JOB)
    assert why in complaint(f"prove {target}")


def test_an_error_of_a_quiet_run_is_that_of_a_run(folder: JobFolder, complaint) -> None:
    folder.write_job(more="\n\ndef raising(input='input.txt'):\n    raise KeyError('no such key')\n")
    assert "no such key" in complaint("prove job_of_lines:raising")


@pytest.mark.nightly
def test_no_more_batches_than_asked_for_are_run_and_the_rest_is_named(folder: JobFolder, output) -> None:
    folder.write_job()
    assert "2 transactions (the input has more), 2 seeds" in output(
        "prove job_of_lines:topology -p lines_per_batch=1 --batches 2 --seeds 2"
    )
