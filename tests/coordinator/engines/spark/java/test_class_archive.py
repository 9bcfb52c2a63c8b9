"""The archive of Spark's classes: Java is given it only if it is whole and of just this Java and Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark import SparkConf

from coordinator.engines.spark.java import class_archive
from coordinator.engines.spark.java.class_archive import (
    CLASS_PATH,
    DEFAULT_OPTIONS,
    JAVA_OPTIONS,
    archive_options,
    find_archive,
)

CONTENT = b"classes"


def conf(**settings: str) -> SparkConf:
    made = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        made.set(key, value)
    return made


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, java = tmp_path / "spark home", tmp_path / "java"
    for file in (java / "bin" / "java", home / "jars" / "a.jar", home / "jars" / "b.jar"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "the cache"))
    monkeypatch.setattr(class_archive, "_find_spark_home", lambda: str(home))
    class_archive.archive_folder().mkdir(parents=True)
    return home


@pytest.fixture
def archive(spark_home: Path) -> Path:
    made = class_archive.archive_folder() / f"{class_archive.archive_name()}-{len(CONTENT)}.jsa"
    made.write_bytes(CONTENT)
    return made


def test_java_is_given_the_archive_in_quotes_since_a_path_may_have_spaces(archive: Path) -> None:
    assert archive_options(conf()).startswith(f'"-XX:SharedArchiveFile={archive}" ')
    assert " " in str(archive)


@pytest.mark.parametrize("named", ["", "cache"])
def test_a_cache_that_is_no_whole_path_is_not_made_where_a_run_happens_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert class_archive.archive_folder() == tmp_path / ".cache" / "txbatch"


def test_without_an_archive_java_is_given_nothing(spark_home: Path) -> None:
    assert archive_options(conf()) == ""


def test_an_archive_that_was_cut_short_is_left_alone_because_java_would_crash(archive: Path) -> None:
    archive.write_bytes(CONTENT[:-1])
    assert archive_options(conf()) == ""


def test_an_archive_of_somebody_else_is_left_alone(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: archive.stat().st_uid + 1)
    assert archive_options(conf()) == ""


@pytest.mark.parametrize("changed", ["new jar", "older jar", "longer jar", "another java", "no jar"])
def test_an_archive_of_another_spark_or_java_is_left_alone(archive: Path, spark_home: Path, changed: str) -> None:
    jar, java = spark_home / "jars" / "b.jar", Path(os.environ["JAVA_HOME"], "bin", "java")
    if changed == "new jar":
        jar.with_name("c.jar").write_bytes(b"")
    elif changed == "older jar":
        os.utime(jar, (1, 1))
    elif changed == "longer jar":
        before = jar.stat()
        jar.write_bytes(b"x")
        os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif changed == "another java":
        os.utime(java, (1, 1))
    else:
        jar.unlink()
    assert archive_options(conf()) == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (JAVA_OPTIONS, "-Xshare:off"),
        (JAVA_OPTIONS, "-XX:SharedArchiveFile=theirs.jsa"),
        (DEFAULT_OPTIONS, "-XX:ArchiveClassesAtExit=theirs.jsa"),
        (CLASS_PATH, "theirs.jar"),
    ],
)
def test_what_the_user_has_decided_wins(archive: Path, key: str, value: str) -> None:
    assert archive_options(conf(**{key: value})) == ""


@pytest.mark.parametrize("name", [*class_archive.CLASS_PATH_VARIABLES, *class_archive.OPTION_VARIABLES])
def test_what_the_environment_says_of_class_path_and_archives_wins(
    archive: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "-Xshare:off" if "OPTIONS" in name else "/theirs")
    assert archive_options(conf()) == ""


def test_a_path_that_java_would_take_for_two_is_not_given(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = archive.parent.parent.with_name("a:b") / "txbatch"
    other.mkdir(parents=True)
    (other / archive.name).write_bytes(CONTENT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(other.parent))
    assert find_archive() is not None
    assert archive_options(conf()) == ""


@pytest.mark.parametrize("error", [PermissionError("/root"), FileNotFoundError(), RuntimeError("no home")])
def test_a_cache_that_cannot_be_looked_into_keeps_no_run_from_starting(
    archive: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def folder() -> Path:
        raise error

    monkeypatch.setattr(class_archive, "archive_folder", folder)
    assert archive_options(conf()) == ""
