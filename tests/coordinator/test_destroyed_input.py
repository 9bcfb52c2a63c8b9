"""A run that destroys input waits for the server's disk unless its user names a level; other servers are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.run import run
from coordinator.sources.files.follow import Follow
from coordinator.sources.files.line_files import TextFiles
from coordinator.sources.redis_streams.redis_streams import RedisStreams
from coordinator.spouts.committing import ICommitterTransactionalSpout
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.errors import StateRefusedError
from state.records.durability import Durability, DurabilityLevel, DurabilityReport
from tests.conftest import redis_program, running_server
from tests.support.runs.whole_runs import Count0
from tests.support.topologies.components import Lines, build


class Acknowledging(Lines, ICommitterTransactionalSpout):
    """Whatever a user's spout does when it is told."""

    def get_committer(self, conf, context):
        raise NotImplementedError


def files(done: str, folder: Path | str = "/nowhere") -> TextFiles:
    done_path = f"{folder}/done" if done in ("move", "list") else ""
    return TextFiles(f"{folder}/*.txt", follow=Follow(complete="rename", done=done, done_path=done_path))  # type: ignore[arg-type]


def counted(spout: Any) -> Topology:
    return build(("count", Count0(), ["lines"]), spout=spout)


@pytest.mark.parametrize(
    ("spout", "because"),
    [
        (files("delete"), "done files are deleted"),
        (files("move"), "done files are moved away"),
        (files("list"), ""),
        (files("keep"), ""),
        (RedisStreams("numbers", fields=["line"], trim=True), "its streams are trimmed"),
        (RedisStreams("numbers", fields=["line"]), ""),
        (Acknowledging(1), "its spout's committer releases input"),
        (Lines(1), ""),
    ],
    ids=lambda value: value or "nothing" if isinstance(value, str) else type(value).__name__,
)
def test_the_level_is_fsync_if_input_is_destroyed_and_memory_if_not(spout: Any, because: str) -> None:
    destruction = SpoutKind(counted(spout).spout.spec).destruction
    level = DurabilityLevel.FSYNC if because else DurabilityLevel.MEMORY
    assert RunOptions().asked_durability(destruction) == Durability(level, because=because)
    for named in DurabilityLevel:
        assert RunOptions(durability=named).asked_durability(destruction) == Durability(named)
    assert RunOptions(notifies_spout=False).asked_durability(destruction) == Durability()


@pytest.mark.redis
@pytest.mark.parametrize(
    ("settings", "lacking"),
    [((), "appendonly no"), (("--appendonly", "yes"), "appendfsync everysec")],
    ids=["none", "aof"],
)
def test_a_server_that_cannot_is_refused_by_name_before_anything_is_read(tmp_path, settings, lacking) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    with (
        running_server(redis_program(), *settings) as url,
        pytest.raises(
            StateRefusedError, match=r"durability fsync: it .*; this run needs it because done files are deleted"
        ) as refused,
    ):
        run(counted(files("delete", tmp_path)), redis_url=url)
    assert lacking in str(refused.value)
    assert "--durability memory" in str(refused.value)
    assert (tmp_path / "a.txt").exists()


class Reached(Exception):  # noqa: N818 - not an error of anything: the server is asked for, and the test knows enough
    """The run has come to its server."""


@pytest.mark.parametrize(("durability", "syncs"), [(None, True), ("memory", False), ("fsync", True)])
def test_the_private_server_syncs_every_write_of_a_run_that_destroys_input(tmp_path, monkeypatch, durability, syncs):
    def server(place: Path, *, syncs_always: bool) -> Any:
        raise Reached(syncs_always)

    monkeypatch.setattr("coordinator.server_choice.EmbeddedServer", server)
    with pytest.raises(Reached) as reached:
        run(counted(files("delete")), data_dir=tmp_path, options=RunOptions(durability=durability))
    assert reached.value.args == (syncs,)


def test_the_first_line_says_why() -> None:
    report = DurabilityReport(Durability(DurabilityLevel.FSYNC, because="done files are deleted"), "nothing")
    assert report.first_line().endswith("waits for its disk (durability fsync, because done files are deleted)")
