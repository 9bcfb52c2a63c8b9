"""``txbatch archive-classes``: what it makes is what the next Java process takes Spark's classes from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.engines.spark.java import archive_maker
from coordinator.engines.spark.java.archive_maker import make_archive
from coordinator.engines.spark.java.class_archive import archive_folder, find_archive
from state.errors import EngineError
from tests.spark.conftest import Cluster

pytestmark = [pytest.mark.nightly, pytest.mark.spark]

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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "txbatch"


def ending(monkeypatch: pytest.MonkeyPatch, *, is_well: bool, written: int) -> None:
    """Has Java write that many bytes, and then end."""

    def end(_: str) -> bool:
        if written:
            (archive_folder() / f"unfinished-{os.getpid()}.jsa").write_bytes(bytes(written))
        return is_well

    monkeypatch.setattr(archive_maker, "_java_ended_well", end)


@pytest.mark.parametrize(("is_well", "written"), [(True, 0), (False, 3)])
def test_a_java_that_writes_no_whole_archive_is_named_and_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, is_well: bool, written: int
) -> None:
    ending(monkeypatch, is_well=is_well, written=written)
    with pytest.raises(EngineError, match="Java wrote no archive"):
        make_archive()
    assert find_archive() is None
    assert list(cache.iterdir()) == []


def test_a_new_archive_takes_the_place_of_an_earlier_one(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for written in (3, 5):
        ending(monkeypatch, is_well=True, written=written)
        assert make_archive() == find_archive()
    assert [file.stat().st_size for file in cache.iterdir()] == [5]


def test_a_cache_that_cannot_be_written_is_named_and_no_java_of_others_is_ended(cluster: Cluster, cache: Path) -> None:
    cache.write_bytes(b"a file")
    with pytest.raises(EngineError, match="name another cache by XDG_CACHE_HOME"):
        make_archive()
    cache.unlink()
    with pytest.raises(EngineError, match="this process has a Java process of Spark already"):
        make_archive()
    assert cluster.context.parallelize([1, 2], 2).count() == 2
