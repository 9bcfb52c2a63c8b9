"""The line that a user sets is that of the cluster in hand."""

from __future__ import annotations

import pytest

from coordinator.engines.spark.cluster.spark_facts import DATAPROC_FILE, EMR_FILE, interpreter_line, missing_modules


@pytest.mark.parametrize(
    ("master", "files", "line"),
    [
        ("spark://a:7077", (), "export PYSPARK_PYTHON=/PATH/ON/ALL/WORKERS/python3.11 where the driver starts"),
        ("yarn", (), "on YARN: export PYSPARK_PYTHON=./env/bin/python3.11, and --conf spark.archives=ENV.tar.gz#env"),
        ("yarn", (EMR_FILE,), "on EMR: export PYSPARK_PYTHON=/usr/bin/python3.11, installed on all nodes by a "),
        ("yarn", (DATAPROC_FILE,), "on Dataproc: export PYSPARK_PYTHON=/opt/conda/default/bin/python3.11"),
        ("k8s://https://a", (), "on Kubernetes: export PYSPARK_PYTHON=/usr/bin/python3.11, a path in the image of "),
    ],
    ids=["standalone", "yarn", "emr", "dataproc", "kubernetes"],
)
def test_each_cluster_has_its_own_line_with_the_drivers_version(master, files, line):
    assert interpreter_line(master, "3.11.7", files).startswith(line)


def test_a_module_that_several_hosts_lack_is_named_once_with_the_reason():
    found = missing_modules([("a", {"redis": "No module"}), ("b", {"redis": "No module", "msgpack": "too old"})])
    assert found == "executors cannot import redis on a (No module); msgpack on b (too old)"
    assert missing_modules([("a", {})]) == ""
