"""``txbatch archive-classes``: what it makes is what the next Java process takes Spark's classes from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.engines.spark.archive_maker import make_archive
from coordinator.engines.spark.class_archive import archive_folder, find_archive
from state.errors import EngineError

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
START = """
import sys
from coordinator.engines.spark.session import open_context
open_context("archived", "local[1]", {"spark.driver.extraJavaOptions": "-Xlog:class+load:file=" + sys.argv[1]})
"""


def test_java_takes_the_classes_of_spark_from_the_archive_and_says_nothing_of_it(tmp_path: Path) -> None:
    environment, loaded = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}, tmp_path / "loaded.txt"
    made = [
        subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        for arguments in (["-m", "coordinator.operating.cli", "archive-classes"], ["-c", START, str(loaded)])
    ]

    (archive,) = (tmp_path / "cache" / "txbatch").iterdir()
    assert str(archive) in made[0].stdout
    classes = [line for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    sources = [line.partition(" source: ")[2].partition(" ")[0] for line in classes if "Lambda" not in line]
    assert sources.count("shared") > 500
    assert not [source for source in sources if source.startswith(("jar:", "file:"))]
    assert made[1].stdout + made[1].stderr == ""


@pytest.mark.parametrize(("ends_well", "written"), [(True, 0), (False, 3)])
def test_a_java_that_writes_no_whole_archive_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_well: bool, written: int
) -> None:
    def end(_: float) -> bool:
        if written:
            (archive_folder() / f"unfinished-{os.getpid()}.jsa").write_bytes(bytes(written))
        return ends_well

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("coordinator.engines.spark.archive_maker.open_context", lambda *_: _Context())
    monkeypatch.setattr("coordinator.engines.spark.archive_maker.stop_context", lambda _: None)
    monkeypatch.setattr("coordinator.engines.spark.archive_maker.let_java_end", end)
    with pytest.raises(EngineError, match="Java wrote no archive"):
        make_archive()
    assert find_archive() is None
    assert list(archive_folder().iterdir()) == []


class _Context:
    def __getattr__(self, name: str) -> object:
        return lambda *_: self
