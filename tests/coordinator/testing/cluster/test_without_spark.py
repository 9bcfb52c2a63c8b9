"""Testing a topology in one process does not import Spark."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coordinated_bolt import BaseBatchBolt
from coordinator import LocalCluster, run_bolt
from state.errors import TopologyError

ROOT = Path(__file__).parents[4]
WORD_COUNT = """
import json, sys
from coordinator import LocalCluster
from examples.plain_word_count import topology as plain_topology
from examples.word_count import topology

with LocalCluster(seed=7) as cluster:
    run = cluster.submit(topology(sys.argv[1]))
    run.run_until_idle()
    counts = run.state("counts")
    plain = cluster.submit(plain_topology(output=sys.argv[2]))
    plain.run_until_idle()
    acked = len(plain.acked("sentences"))
spark = sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j"})
print(json.dumps([counts, acked, spark]))
"""


class Doubled(BaseBatchBolt):
    """Travels by reference: an import finds it."""

    def execute(self, tup):
        """Ignores it."""


def message_of(*arguments: str) -> str:
    """What a Python process of its own prints."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_word_counts_run_in_one_process_without_an_import_of_spark(tmp_path):
    (tmp_path / "input.txt").write_text("to be or\nnot to be\n", encoding="utf-8")
    said = message_of("-c", WORD_COUNT, str(tmp_path / "input.txt"), str(tmp_path / "counts.txt"))
    assert json.loads(said) == [{"to": 2, "be": 2, "or": 1, "not": 1}, 5, []]


def test_the_command_line_is_there_without_an_import_of_spark():
    program = "import sys, coordinator.operating.cli.app; print('pyspark' in sys.modules)"
    assert message_of("-c", program) == "False\n"


def test_a_class_that_only_this_function_knows_runs_in_one_process():
    factor = 2

    class Times(BaseBatchBolt):
        output_fields = ("number",)

        def prepare(self, conf, context, collector, attempt):
            self.collector = collector

        def execute(self, tup):
            self.collector.emit([factor * tup["number"]])

    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(Times())
    assert run_bolt(Times(), [[1], [2]], fields=["number"]).emitted() == [[2], [4]]


def test_a_class_of_a_script_or_notebook_runs_in_one_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from coordinated_bolt import BaseBatchBolt\n"
        "from coordinator import run_bolt\n"
        "class Silent(BaseBatchBolt):\n    def execute(self, tup): pass\n"
        "first = Silent()\n"
        "class Silent(BaseBatchBolt):\n    def execute(self, tup): pass\n"
        "print([run_bolt(bolt, [[1]], fields=['n']).emitted() for bolt in (first, Silent())])\n",
        encoding="utf-8",
    )
    assert message_of(str(script)) == "[[], []]\n"


def test_a_run_without_spark_does_not_import_it_for_a_lambda_either(tmp_path):
    (tmp_path / "input.txt").write_text("to be or\nnot to be\n", encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from coordinator import TextFiles, run, stream\n"
        "from state import HashState\n"
        "words = stream(TextFiles('input.txt', 1)).flat_map(lambda line: line.split(), to='word')\n"
        "words.count_by('word', into=HashState('counts'))\n"
        "done = run(words.topology('counted'), engine='local')\n"
        "print(done.committed, 'pyspark' in sys.modules)\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "2 False\n", done.stderr


def test_a_component_that_no_pickler_takes_is_refused_by_a_cluster_in_one_process():
    bolt = Doubled()
    vars(bolt)["lock"] = threading.Lock()

    with LocalCluster(), pytest.raises(TopologyError, match="cannot be shipped to executors: TypeError"):
        run_bolt(bolt, [[1]], fields=["number"])
