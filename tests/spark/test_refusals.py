"""What is refused before a txid is issued, each with a sentence that says what to do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.run import run
from coordinator.spark.shipping import SPEC_LIMIT_BYTES
from state.errors import TopologyError
from tests.support.spark.bolts import Pass, exact_counts, numbers_topology

REPOSITORY = Path(__file__).resolve().parents[2]


class Holding(Pass):
    """Keeps what it is given, on the driver."""

    def __init__(self, held):
        self.held = held


def refusal(topology, redis_url, **more):
    with pytest.raises(TopologyError) as caught:
        run(topology, redis_url=redis_url, **more)
    return str(caught.value)


@pytest.mark.redis
def test_a_bolt_that_holds_a_lambda_over_a_socket_is_refused_before_anything_is_written(redis_backend):
    with socket.socket() as connection:
        held = Holding(lambda: connection.recv(1))
        text = refusal(numbers_topology(1, work=held), redis_backend.url)

    assert text.startswith("component 'work' cannot be shipped to executors: ")
    assert "socket" in text
    assert text.endswith("open sockets, files, locks and clients in prepare, not in __init__")
    assert redis_backend.client().keys("*") == []


@pytest.mark.redis
def test_a_bolt_that_is_too_large_is_refused_before_anything_is_written(redis_backend):
    text = refusal(numbers_topology(1, work=Holding(os.urandom(SPEC_LIMIT_BYTES))), redis_backend.url)

    assert text.startswith("component 'work' pickles to ")
    assert text.endswith(f"the limit is {SPEC_LIMIT_BYTES}; load large data in prepare, or ship it as a file")
    assert redis_backend.client().keys("*") == []


@pytest.mark.redis
def test_a_spark_connect_session_is_refused_before_anything_is_written(redis_backend):
    connect_session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    text = refusal(numbers_topology(1), redis_backend.url, spark=connect_session)

    assert text.startswith("a Spark Connect session cannot run txbatch: it has no RDDs")
    assert redis_backend.client().keys("*") == []


@pytest.mark.redis
def test_something_else_than_a_session_is_refused(redis_backend):
    assert "give a SparkSession or a SparkContext" in refusal(numbers_topology(1), redis_backend.url, spark="local")


@pytest.mark.redis
def test_settings_beside_a_session_are_refused(redis_backend):
    text = refusal(numbers_topology(1), redis_backend.url, spark=object(), conf={"spark.cores.max": "1"})

    assert text == "conf is for a session of our own; set it on the session you pass as spark=…"


@pytest.mark.spark
@pytest.mark.redis
def test_a_second_context_in_one_process_is_refused_and_the_first_one_goes_on(cluster):
    assert "pass it as spark=" in refusal(numbers_topology(1), cluster.redis_url, master="local[1]")
    assert cluster.client.keys("*") == []

    cluster.run(numbers_topology(1))
    assert cluster.hash("{numbers}:counts") == exact_counts(1)


@pytest.mark.parametrize("shape", ["module", "package", "folder"])
@pytest.mark.parametrize("imported", ["coordinated_bolt", "committers", "coordinator", "examples.word_count"])
def test_another_package_called_state_is_named_in_a_sentence(tmp_path, shape, imported):
    other = tmp_path / "state"
    if shape == "module":
        other = tmp_path / "state.py"
        other.write_text("OURS = False\n", encoding="utf-8")
    else:
        other.mkdir()
    if shape == "package":
        (other / "__init__.py").write_text("OURS = False\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import {imported}"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path + os.pathsep + os.pathsep.join(p for p in sys.path if "site-pack" in p)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if shape == "folder":  # a folder without __init__.py gives way to a package further down the path
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert done.returncode == 1
    sentence = done.stderr.rstrip().splitlines()[-1]
    assert sentence.startswith(f"ImportError: import state finds {other}")
    assert f"not txbatch's own package in {REPOSITORY / 'state'}" in sentence
    assert sentence.endswith("rename it, or take its folder off sys.path and PYTHONPATH")
