"""A run in the background: watched, drained, waited for, and left alone by whoever leaves the cell."""

from __future__ import annotations

import gc
import inspect
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator import (
    BackgroundRun,
    PlainRunOptions,
    PlainStatistics,
    RunOptions,
    RunStatistics,
    RunStatus,
    exactly_once,
    run,
    start,
)
from state.errors import FailedException, TopologyError
from tests.support.approved import approved, refusals
from tests.support.topologies.example_topologies import EXAMPLES

LONG_S = 30.0
"""A wait that a sound run never reaches the end of."""


class HandRun:
    """The work of a run, moved by the test: it runs until it is drained, or until the test ends it."""

    def __init__(self, *, starts: bool = True) -> None:
        self.statistics = RunStatistics()
        self.may_start, self.has_begun, self.may_end = threading.Event(), threading.Event(), threading.Event()
        self.drained = 0
        self.error: BaseException | None = None
        self.progressed: Any = None
        if starts:
            self.may_start.set()

    def drain(self) -> None:
        self.drained += 1
        self.may_end.set()

    def commit(self, txid: int) -> None:
        """An event of the run, as its own thread would handle it."""
        self.statistics.last_txid = self.statistics.committed = txid
        self.progressed(self.statistics)

    def __call__(self, begun: Any, progressed: Any) -> RunStatistics:
        self.progressed = progressed
        assert self.may_start.wait(LONG_S)
        begun(SimpleNamespace(statistics=self.statistics, drain=self.drain))
        self.has_begun.set()
        assert self.may_end.wait(LONG_S)
        if self.error is not None:
            raise self.error
        return self.statistics


def started(work):
    run = BackgroundRun("lines", work, RunStatistics())
    if work.may_start.is_set():
        assert work.has_begun.wait(LONG_S)
    return run


def test_it_says_how_it_stands_and_what_it_has_done():
    work = HandRun(starts=False)
    run = started(work)
    assert str(run.status) == "starting"
    assert repr(run).startswith("BackgroundRun('lines', starting, RunStatistics(0 committed up to txid 0")
    work.may_start.set()
    assert work.has_begun.wait(LONG_S)
    assert str(run.status) == "running"
    before = run.statistics
    work.commit(3)
    assert (before.committed, run.statistics.committed) == (0, 3)
    assert "lines: running" in run._repr_html_()
    run.drain()
    assert run.result(LONG_S).committed == 3
    assert str(run.status) == "done"


def test_a_notebook_shows_the_run_until_it_has_ended(monkeypatch):
    pictures: list[str] = []
    shown = SimpleNamespace(update=lambda run: pictures.append(run._repr_html_()))
    display = SimpleNamespace(display=lambda run, display_id: shown if display_id else None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    work = HandRun()
    run = started(work)
    work.statistics.fraction = 0.43
    work.commit(3)
    assert not run.watch(0.01)
    assert "lines: running" in pictures[-1]
    assert '<progress max="1" value="0.430"></progress> 43%' in pictures[-1]
    run.drain()
    assert run.watch(LONG_S)
    assert "lines: done" in pictures[-1]
    work = HandRun()
    work.error = FailedException("no such word")
    failing = started(work)
    failing.drain()
    with pytest.raises(FailedException, match="no such word"):
        failing.watch(LONG_S)
    assert ": failed" in pictures[-1]


def test_figures_once_read_do_not_change():
    work = HandRun()
    run = started(work)
    work.statistics.component("count").work.batches = 1
    work.commit(1)
    read = run.statistics
    work.statistics.component("count").work.batches = 2
    work.statistics.component("store")
    work.statistics.wave_ended(1.0, 0.5, 1)
    assert {name: done.work.batches for name, done in read.components.items()} == {"count": 1}
    assert read.history.waves.points() == []
    run.drain()
    assert run.wait(LONG_S)


def test_a_wait_that_is_too_short_leaves_the_run_alone():
    work = HandRun()
    run = started(work)
    assert run.wait(0) is False
    with pytest.raises(TimeoutError, match="topology 'lines' has not ended within 0 s; it continues: wait again"):
        run.result(0)
    assert (work.drained, run.status) == (0, RunStatus.RUNNING)
    run.drain()
    assert run.wait(LONG_S) is True


def test_a_run_that_is_drained_before_it_has_started_ends_once_it_has():
    work = HandRun(starts=False)
    run = started(work)
    run.drain()
    assert str(run.status) == "draining"
    work.may_start.set()
    assert run.wait(LONG_S)
    assert work.drained == 1


def test_its_error_is_raised_by_every_wait_and_logged_once(caplog):
    work = HandRun()
    work.error = FailedException("no such account")
    run = started(work)
    work.may_end.set()
    for ask in (run.wait, run.result, run.wait):
        with pytest.raises(FailedException, match="no such account"):
            ask(LONG_S)
    assert run.status is RunStatus.FAILED
    assert caplog.messages == ["the run of topology 'lines' failed, wait() and result() raise it: no such account"]


def test_a_block_drains_the_run_and_raises_what_the_run_raised():
    work = HandRun()
    work.error = FailedException("no")
    with pytest.raises(FailedException), started(work):
        pass
    assert work.drained == 1


def test_an_error_in_the_block_drains_the_run_and_is_the_one_that_is_raised():
    work = HandRun()
    work.error = FailedException("no")
    run = started(work)
    with pytest.raises(KeyError, match="mine"), run:
        raise KeyError("mine")
    assert (work.drained, run.status) == (1, RunStatus.FAILED)


def test_ctrl_c_leaves_the_wait_and_not_the_run():
    work = HandRun()
    run = started(work)
    ctrl_c = threading.Thread(target=signal.pthread_kill, args=(threading.get_ident(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may arrive before the wait
        ctrl_c.start()
        run.wait(LONG_S)
    assert (work.drained, run.status) == (0, RunStatus.RUNNING)
    run.drain()
    assert run.result(LONG_S) == work.statistics


def test_a_run_that_has_ended_holds_neither_its_coordinator_nor_its_thread():
    work = HandRun()
    run = started(work)
    run.drain()
    run.wait(LONG_S)
    gc.collect()
    held = [type(each).__name__ for each in gc.get_referents(run)]
    assert "SimpleNamespace" not in held


def test_the_end_of_the_process_drains_the_run_before_what_the_run_has_opened_is_closed():
    program = """
import atexit
import threading
from types import SimpleNamespace
from coordinator import BackgroundRun, RunStatistics

drained = threading.Event()
begun_once = threading.Event()

def work(begun, progressed):
    atexit.register(print, "Spark's folder was removed")
    begun(SimpleNamespace(statistics=RunStatistics(), drain=drained.set))
    begun_once.set()
    assert drained.wait(30)
    print("drained")
    return RunStatistics()

BackgroundRun("lines", work, RunStatistics())
begun_once.wait(30)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "drained\nSpark's folder was removed\n"


def test_a_plain_topology_runs_in_the_background_by_the_runner_of_its_kind(monkeypatch):
    given: dict[str, Any] = {}
    begun: list[Any] = []
    seen: list[Any] = []

    def runs_plain(topology, *, on_start, on_progress, **arguments):
        given.update(arguments)
        statistics = PlainStatistics()
        drained = threading.Event()
        on_start(SimpleNamespace(statistics=statistics, drain=drained.set))
        statistics.acked = 7
        on_progress(statistics)
        assert drained.wait(LONG_S)
        return statistics

    monkeypatch.setattr(sys.modules["coordinator.start"], "run_plain", runs_plain)
    options = PlainRunOptions(stop_when_idle=True)
    topology = EXAMPLES["plain_word_count"]()
    with start(topology, master="local[2]", options=options, on_start=begun.append, on_progress=seen.append) as run:
        assert run.topology_id == "plain_word_count"
    assert (run.result().acked, run.status, given["options"], given["master"]) == (
        7,
        RunStatus.DONE,
        options,
        "local[2]",
    )
    assert ([type(each) for each in seen], len(begun)) == ([PlainStatistics], 1)
    assert "acked" in run._repr_html_()


def test_what_does_not_fit_the_topology_or_itself_is_refused_at_once():
    plain, words = EXAMPLES["plain_word_count"](), EXAMPLES["word_count"]()
    cases = {
        "a server": lambda: start(plain, redis_url="redis://h"),
        "plain options": lambda: start(plain, options=RunOptions()),
        "transactional options": lambda: start(words, options=PlainRunOptions()),
        "two servers": lambda: start(words, redis_url="redis://h", data_dir="d"),
        "no topology": lambda: start("words"),  # type: ignore[call-overload]
    }
    approved(refusals(cases, TopologyError), "starts-that-are-refused")


def test_the_arguments_of_an_entrance_are_shown_one_by_one_and_no_others_are_taken():
    shown = inspect.signature(start).parameters
    assert [*inspect.signature(run).parameters] == [*shown]
    assert shown.keys() - inspect.signature(exactly_once).parameters.keys() >= {"spark", "engine", "republish"}
    assert (shown["master"].default, shown["options"].default, shown["master"].annotation) == ("local[*]", None, "str")
    for entrance in (run, start):
        with pytest.raises(TypeError, match="unexpected keyword argument 'redis'"):
            entrance(EXAMPLES["word_count"](), redis="redis://h")  # type: ignore[call-overload, call-arg]


def test_what_run_refuses_is_raised_by_wait():
    run = start(EXAMPLES["word_count"](), redis_url="localhost:6379")
    with pytest.raises(TopologyError, match="has no scheme"):
        run.wait(LONG_S)
