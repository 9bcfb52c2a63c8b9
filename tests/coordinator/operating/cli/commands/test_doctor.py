"""``txbatch doctor`` as users type it; Spark is left out here and tried in tests/spark."""

from __future__ import annotations

import json
from functools import partial

import pytest

from tests.conftest import redis_program, running_server
from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import JobFolder

pytestmark = pytest.mark.redis


ended = partial(txbatch, "doctor", "--no-spark")


def test_what_is_fit_ends_with_zero_and_counts_its_warnings(folder: JobFolder, valkey_url, output):
    folder.write_job()
    shown = output(f"doctor --no-spark job_of_lines:topology --redis {valkey_url}").splitlines()
    assert shown[0] == "OK    factory: job_of_lines:topology makes topology 'lines' of 2 components"
    assert "WARN  persistence: the server keeps nothing on disk" in shown
    assert shown[shown.index("WARN  persistence: the server keeps nothing on disk") + 2].startswith("      do:  set")
    assert "OK    rights: this user may run every command on keys '{lines}:*'" in shown
    assert shown[-1].endswith("1 warning, 0 failures")


def test_the_local_engine_needs_no_spark(valkey_url, output):
    assert "spark" not in output(f"doctor --engine local --redis {valkey_url}")


def test_what_fails_ends_with_one_and_one_line_of_json_names_it(folder: JobFolder, output):
    with running_server(redis_program(), "--maxmemory-policy", "allkeys-lru") as url:
        said = json.loads(output(f"doctor --no-spark --redis {url} --json", code=1))
    assert said["is_fit"] is False
    (failed,) = [finding for finding in said["findings"] if finding["weight"] == "fail"]
    assert failed["subject"] == "eviction"
    assert failed["remedy"].startswith("set it to noeviction (CONFIG SET maxmemory-policy noeviction, or in its ")


def test_a_factory_that_does_not_load_is_a_finding_and_the_rest_is_examined_all_the_same(folder, valkey_url, output):
    shown = output(f"doctor --no-spark nowhere:topology --redis {valkey_url}", code=1)
    assert "FAIL  factory: module 'nowhere' is neither in" in shown
    assert "OK    version: valkey" in shown


def test_what_a_users_module_prints_does_not_mix_with_the_json(folder: JobFolder, valkey_url, capsys):
    folder.write_job(more="\nprint('hello')\n")
    assert ended("job_of_lines:topology", "--redis", valkey_url, "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["is_fit"]
    assert "hello" in shown.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-p", "a=1"), "-p is for a factory, which was not given"),
        (("--redis", "localhost:6379"), "has no scheme"),
        (("--conf", "nothing"), "does not have the form key=value"),
    ],
)
def test_mistakes_are_usage_errors(folder: JobFolder, complaint, arguments: tuple[str, ...], said: str):
    assert said in complaint("doctor --no-spark", *arguments)
