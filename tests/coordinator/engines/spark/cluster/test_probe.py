"""What the tasks of a job say of their interpreters is put together by interpreter."""

from __future__ import annotations

from pyspark import SparkFiles

from coordinator.engines.spark.cluster.probe import _question, merged
from coordinator.engines.spark.cluster.spark_facts import ExecutorFacts


def test_each_interpreter_is_told_once_with_all_it_lacks_and_the_least_that_was_free():
    answers = [
        ("one", "/python", "3.11.7", "4.1.4", (), (("/scratch", 20),)),
        ("one", "/python", "3.11.7", "4.1.4", (("redis", "gone"),), (("/scratch", 10), ("/more", -1))),
        ("two", "/python", "3.12.0", "4.1.4", (), ()),
    ]
    assert merged(answers) == (
        ExecutorFacts("one", "/python", "3.11.7", "4.1.4", {"redis": "gone"}, {"/scratch": 10, "/more": -1}),
        ExecutorFacts("two", "/python", "3.12.0", "4.1.4", {}, {}),
    )


def test_a_task_names_what_it_cannot_import_and_a_folder_it_cannot_write(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/blockmgr,/none/blockmgr")
    (tmp_path / "blockmgr").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(SparkFiles, "get", lambda name: str(tmp_path / name))
    (tmp_path / "module_that_ends.py").write_text("raise SystemExit(3)")
    ((_, _, _, _, missing, scratch),) = _question("code.zip", ("json", "no_such_module", "module_that_ends"))([])
    assert dict(missing) == {
        "no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
        "module_that_ends": "SystemExit: 3",
    }
    free = dict(scratch)
    assert free[str(tmp_path)] > 0
    assert free["/none"] == -1
