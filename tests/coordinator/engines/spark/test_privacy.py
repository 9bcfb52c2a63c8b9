"""Spark's scratch files are the user's alone, and an open cluster is said to be one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.engines.spark.privacy import _private_folder, keep_scratch_private, warn_of_open_cluster
from state.errors import TopologyError


class Conf(dict[str, str]):
    """The part of SparkConf that is used; the real one starts Java."""

    def set(self, key, value):
        self[key] = value


def context_on(master, **settings):
    conf = Conf({key.replace("_", "."): value for key, value in settings.items()})
    return SimpleNamespace(master=master, getConf=lambda: conf)


@pytest.fixture(autouse=True)
def forgotten():
    yield
    _private_folder.cache_clear()


def test_scratch_files_lie_in_a_folder_of_the_users_own(tmp_path):
    roots = [tmp_path / "one", tmp_path / "two"]
    conf: Any = Conf({"spark.local.dir": f"{roots[0]}, {roots[1]}"})

    keep_scratch_private(conf, {})

    folders = [Path(name) for name in conf["spark.local.dir"].split(",")]
    assert [folder.parent for folder in folders] == roots
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]


def test_the_systems_temporary_folder_is_used_without_a_setting(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    conf: Any = Conf()

    keep_scratch_private(conf, {})

    assert Path(conf["spark.local.dir"]).parent == tmp_path


def test_a_second_start_in_the_same_process_uses_the_same_folder(tmp_path):
    first: Any = Conf({"spark.local.dir": str(tmp_path)})
    second: Any = Conf({"spark.local.dir": str(tmp_path)})
    keep_scratch_private(first, {})
    keep_scratch_private(second, {})
    default_of_the_next: Any = Conf(first)
    keep_scratch_private(default_of_the_next, {})
    assert first == second == default_of_the_next


def test_a_folder_that_cannot_be_made_is_a_mistake_of_usage(tmp_path):
    (tmp_path / "file").touch()
    conf: Any = Conf({"spark.local.dir": str(tmp_path / "file")})
    with pytest.raises(TopologyError, match=r"cannot be made in '.*file': File exists; give --conf spark\.local\.dir="):
        keep_scratch_private(conf, {})


def test_the_environments_folders_are_left_and_told_of_if_others_can_open_them(tmp_path, caplog):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    conf: Any = Conf()

    keep_scratch_private(conf, {"SPARK_LOCAL_DIRS": f"{tmp_path}/open,{tmp_path}/closed"})

    assert conf == {}
    assert len(caplog.messages) == 1
    assert f"SPARK_LOCAL_DIRS names '{tmp_path}/open', which other users can open" in caplog.text


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, ["spark.authenticate=true", "spark.acls.enable=true"]),
        ({"spark_authenticate": "true"}, ["spark.acls.enable=true"]),
        ({"spark_authenticate": "true", "spark_ui_enabled": "false"}, []),
        ({"spark_authenticate": "true", "spark_acls_enable": "true"}, []),
        ({"spark_ui_enabled": "false"}, ["spark.authenticate=true"]),
    ],
)
def test_an_open_cluster_is_told_in_one_sentence(settings, told, caplog):
    warn_of_open_cluster(context_on("spark://far:7077", **settings))

    assert len(caplog.messages) == bool(told)
    for remedy in ("spark.authenticate=true", "spark.acls.enable=true"):
        assert (remedy in caplog.text) == (remedy in told)


@pytest.mark.parametrize("master", ["local", "local[2]", "local-cluster[2,1,1024]"])
def test_a_local_master_is_not_a_cluster(master, caplog):
    warn_of_open_cluster(context_on(master))
    assert caplog.messages == []
