"""Where `run` keeps the state: by the same rule as the command line; and how it shows progress."""

from __future__ import annotations

import gc
import importlib
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import COLLECTOR_THRESHOLDS, ProgressCallback, rare_collections, run
from coordinator.server_choice import choose_server
from coordinator.watching.run_observer import RunBegan, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import TopologyError
from state.redis_owner.reader import URL_VARIABLE
from tests.support.runs.whole_runs import Count0
from tests.support.topologies.components import Lines, build

run_module = importlib.import_module("coordinator.run")  # the package hands on the function of that name
TOPOLOGY = build(("count", Count0(), ["lines"]), spout=Lines(1))


class Reached(Exception):  # noqa: N818 - not an error of anything: the store is asked, and the test knows enough
    """The run has come to its server."""


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Says which server a run would use instead of using it."""

    def server(place: Any, *args: Any, **options: Any) -> Any:
        raise Reached(str(place))

    monkeypatch.setattr(run_module, "open_store", server)
    monkeypatch.setattr("coordinator.server_choice.EmbeddedServer", server)


def place_of(**given: Any) -> str:
    with pytest.raises(Reached) as caught:
        run(TOPOLOGY, **given)
    return str(caught.value)


@pytest.mark.usefixtures("reached")
@pytest.mark.parametrize("environment", ["redis://127.0.0.1:1", "", None])
@pytest.mark.parametrize(
    "given", [{}, {"redis_url": "redis://127.0.0.1:2"}, {"data_dir": "data"}], ids=["nothing", "url", "directory"]
)
def test_run_goes_by_the_environment_as_the_command_line_does(monkeypatch, given, environment):
    if environment is None:
        monkeypatch.delenv(URL_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(URL_VARIABLE, environment)
    data_dir = given.get("data_dir")
    chosen = choose_server(given.get("redis_url"), None if data_dir is None else Path(data_dir))
    assert place_of(**given) == (chosen.redis_url or str(chosen.data_dir))
    expected = given.get("redis_url") or data_dir or environment or ".txbatch"
    assert place_of(**given) == expected


@pytest.mark.usefixtures("reached")
def test_run_refuses_a_server_and_a_directory_together():
    with pytest.raises(TopologyError, match=r"redis_url and data_dir\); leave one of them out"):
        run(TOPOLOGY, redis_url="redis://127.0.0.1:2", data_dir="data")


def test_the_cycle_collector_looks_rarely_during_a_run_and_as_before_afterwards_even_after_an_error():
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == COLLECTOR_THRESHOLDS
    assert gc.get_threshold() == before
    with pytest.raises(ValueError, match="over"), rare_collections():
        raise ValueError("over")
    assert gc.get_threshold() == before


def test_a_turn_in_which_nothing_has_ended_shows_nothing() -> None:
    shown: list[RunStatistics] = []
    progress, statistics = ProgressCallback(shown.append), RunStatistics()
    progress(RunBegan("test", statistics, None))
    progress(TurnEnded(is_idle=True))
    assert shown == []
    progress(TurnEnded(is_idle=False, has_progressed=True))
    assert [each is statistics for each in shown] == [True]


def test_a_callback_that_raised_is_called_again_and_each_time_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[RunStatistics] = []

    def broken(statistics: RunStatistics) -> None:
        calls.append(statistics)
        raise ValueError("mine")

    progress = ProgressCallback(broken)
    for _ in range(2):
        progress(TurnEnded(is_idle=False, has_progressed=True))
    assert (len(calls), len(caplog.records)) == (2, 2)
    assert caplog.messages[0] == "the on_progress callback raised"
