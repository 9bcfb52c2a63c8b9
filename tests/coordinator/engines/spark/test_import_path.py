"""A file next to the job that Spark's workers would import in place of a module they need is refused by name."""

from __future__ import annotations

import msgpack
import pytest

from coordinator.engines.spark.import_path import refuse_shadowed
from state.errors import TopologyError


@pytest.mark.parametrize("place", ["msgpack.py", "redis/__init__.py", "json.py"])
def test_a_file_in_the_way_of_a_module_that_workers_need_is_refused(place, tmp_path, monkeypatch):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    refuse_shadowed()
    with monkeypatch.context() as patched:
        patched.chdir(tmp_path)
        with pytest.raises(TopologyError, match=rf"{tmp_path / place} would be imported by Spark's workers"):
            refuse_shadowed()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TopologyError, match="rename it, or run from another folder"):
        refuse_shadowed()


def test_other_files_stand_in_nobodys_way(tmp_path, monkeypatch):
    for name in ("job.py", "msgpack.txt", "antigravity.py"):  # the last one is Python's, but nobody has imported it
        (tmp_path / name).touch()
    (tmp_path / "redis").mkdir()  # a folder of data
    monkeypatch.chdir(tmp_path)
    refuse_shadowed()
    assert msgpack.__file__
