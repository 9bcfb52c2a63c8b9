"""A start that has no chance is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator import LocalCluster, RunOptions, run
from examples.word_count import topology
from state.errors import StateRefusedError
from tests.conftest import Backend

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("no_spark")]


class SparkStartedError(Exception):
    """Raised where Spark would start."""


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_arguments: Any) -> Any:
        raise SparkStartedError

    monkeypatch.setattr("coordinator.engines.spark.session.spark_lease", started)


@pytest.fixture
def words(tmp_path: Path, redis_backend: Backend) -> Path:
    """A folder with two files, of which the first was counted."""
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("a b\na\n")
    with LocalCluster(redis_url=redis_backend.url) as cluster:
        cluster.submit(topology(str(tmp_path / "one.txt"))).run_until_idle()
    return tmp_path


def test_another_input_is_refused_before_spark_starts(words: Path, redis_backend: Backend) -> None:
    with pytest.raises(StateRefusedError, match="was started on another input"):
        run(topology(str(words / "two.txt")), redis_url=str(redis_backend.url))


def test_a_first_run_on_an_empty_input_is_done_before_spark_starts(tmp_path: Path, redis_backend: Backend) -> None:
    (tmp_path / "empty.txt").touch()
    done = run(topology(str(tmp_path / "empty.txt")), redis_url=str(redis_backend.url))
    assert (done.committed, done.last_txid) == (0, 0)


def test_a_first_run_that_cannot_start_spark_leaves_nothing(tmp_path: Path, redis_backend: Backend) -> None:
    (tmp_path / "one.txt").write_text("a b\n")
    with pytest.raises(SparkStartedError):
        run(topology(str(tmp_path / "one.txt")), redis_url=str(redis_backend.url))
    assert redis_backend.client().keys() == []


@pytest.mark.parametrize(("name", "adopt"), [("one.txt", False), ("two.txt", True)], ids=["the same", "adopted"])
def test_what_may_be_accepted_is_compared_once_and_later(
    words: Path, redis_backend: Backend, name: str, adopt: bool
) -> None:
    with pytest.raises(SparkStartedError):
        run(topology(str(words / name)), redis_url=str(redis_backend.url), options=RunOptions(adopt=adopt))
