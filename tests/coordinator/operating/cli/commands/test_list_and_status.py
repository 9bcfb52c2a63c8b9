"""``txbatch list`` and what `status` says of a run, on a real server, with what a run would have told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from coordinator.operating.cli.commands.status import lines, plain, view, watch_status
from coordinator.operating.cli.run_lines import moment, watch_line
from coordinator.server_choice import choose_server
from state.errors import StateUnreachableError
from state.records import run_pulse
from state.records.topology_overview import TopologyOverview
from state.redis_admin.pulse import PulseSender
from state.redis_owner.store import RedisStore
from tests.conftest import Backend
from tests.support.approved import approved
from tests.support.dashboard import stored
from tests.support.dashboard.stored import NOW
from tests.support.stores.builders import acquire, attempt, commit_of, counts

RUN = replace(stored.RUN, started_at=NOW - 200, versions={"python": "3.12.1", "pyspark": "4.1.0"})
FIGURES = replace(
    stored.FIGURES,
    wave_s=run_pulse.Spread(),
    failed_attempts=0,
    dead_letters=0,
    components={"count": run_pulse.ComponentFigures(1_000, 500, 3, 0, 1.5)},
    last_failure=run_pulse.LastFailure(17, "17:00ff", "worker lost", "an executor is gone", NOW - 65),
)
STORED = TopologyOverview("words", NOW, 42, "g", "1:ab", "graph", "files", 3)


def seen(now: run_pulse.RunFigures = FIGURES, at: float = NOW + 1, *, connected: int = 1) -> TopologyOverview:
    return replace(STORED, pulse=run_pulse.RunPulse(RUN, now, now.at), connected=connected, at=at)


def test_a_time_is_shown_in_the_readers_zone_with_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-05:30")  # in this form the sign is that of UTC seen from there
    time.tzset()
    try:
        assert moment(1_764_000_000.9) == "2025-11-24 21:30:00+05:30"
    finally:
        monkeypatch.undo()
        time.tzset()


GONE = replace(seen(connected=0), pulse=run_pulse.RunPulse(RUN, FIGURES, NOW, is_gone=True))
WAITING = replace(
    FIGURES,
    state=run_pulse.RunState.WITHOUT_EXECUTORS,
    cluster="waiting for executors: 0 registered, asked for 2 of 8 GiB",
)
FAILED = replace(FIGURES, state=run_pulse.RunState.FAILED, error="disk full\x1b[2J")
STATUSES = {
    "running": seen(),
    "waits for executors": seen(WAITING),
    "silent": seen(at=NOW + 100, connected=0),
    "killed": GONE,
    "done": seen(replace(FIGURES, state=run_pulse.RunState.DONE), at=NOW + 60),
    "failed": seen(FAILED),
    "no pulse": replace(seen(), pulse=None, connected=0),
    "no pulse, but connected": replace(seen(), pulse=None),
}


@pytest.mark.usefixtures("utc")
def test_how_a_run_stands_is_shown_to_people_and_programs() -> None:
    shown = [
        "\n".join([f"== {name}", *lines(found, choose_server("redis://h:1", None)), json.dumps(plain(found))])
        for name, found in STATUSES.items()
    ]
    approved("\n".join(shown), "status")


def test_what_is_watched_says_for_how_many_executors_a_run_waits() -> None:
    found = seen(WAITING)
    assert watch_line(found.pulse, found.standing, 42, NOW).startswith(f"{WAITING.cluster} · txid 42")


class TestWatch:
    def watched(self, *looks: TopologyOverview | Exception, as_json: bool = False) -> list[float]:
        left, slept = list(looks), list[float]()

        def look() -> TopologyOverview:
            found = left.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        watch_status("words", look, as_json=as_json, sleep=slept.append)
        assert not left
        return slept

    def test_off_a_terminal_it_prints_lines_until_the_run_ends(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.watched(seen(), seen(replace(FIGURES, state=run_pulse.RunState.DONE))) == [5.0]
        first, last = capsys.readouterr().out.splitlines()
        assert first.startswith("words: running · txid 42 · 12.5 transactions/s, 12,500 tuples/s, commit lag 0.4 s")
        assert first.endswith("1 waiting, 2 processing, 3 processed, 4 committing")
        assert last.startswith("words: txid 42 · done 1.0 s ago")

    def test_as_json_it_prints_a_line_a_second(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.watched(seen(), seen(replace(FIGURES, state=run_pulse.RunState.DONE)), as_json=True) == [1.0]
        states = [json.loads(line)["run"]["now"]["state"] for line in capsys.readouterr().out.splitlines()]
        assert states == ["running", "done"]

    def test_a_server_that_is_away_is_waited_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        away = StateUnreachableError("server redis://h did not answer")
        self.watched(seen(), away, away, seen(replace(FIGURES, state=run_pulse.RunState.DONE)))
        told = capsys.readouterr().err.splitlines()
        assert told == ["txbatch: server redis://h did not answer; still watching, Ctrl-C ends it"] * 2

    def test_a_terminal_shows_the_components_too(self) -> None:
        console = Console(width=100, record=True, file=None, force_terminal=False)
        with console.capture() as captured:
            console.print(view(seen()))
        shown = captured.get()
        assert "words  running  3 min 21 s on node7, pid 4711, as ann" in shown
        row = next(line for line in shown.splitlines() if line.startswith("count"))
        assert row.split() == ["count", "1,000", "500", "3", "0", "1.5", "s"]


@pytest.mark.redis
class TestOnAServer:
    @pytest.fixture
    def url(self, redis_backend: Backend) -> Iterator[str]:
        assert redis_backend.url is not None
        store = RedisStore(redis_backend.url, "words")
        store.check_server()
        acquire(store, topology="graph", source_fingerprint="files")
        store.commit(commit_of(counts(a=1), attempt(1)))
        sender = PulseSender(store)
        run = replace(RUN, fence=sender.fence)
        figures = replace(FIGURES, at=time.time())
        sender.send({"run": run_pulse.to_json(run), "now": run_pulse.to_json(figures), "seen": str(time.time())})
        yield redis_backend.url
        store.close()

    def test_list_shows_a_row_for_each_topology_as_json_too(self, url: str, output) -> None:
        heading, row = output(f"list --redis {url}").splitlines()
        assert heading.split() == ["TOPOLOGY", "COMMITTED", "RUN", "SINCE", "LAG", "TRANSACTIONS/S", "WHERE"]
        assert row.split()[:3] == ["words", "1", "running"]
        assert row.endswith("12.5  node7:4711")
        (found,) = json.loads(output(f"list --redis {url} --json"))
        assert (found["topology_id"], found["committed_txid"], found["standing"]) == ("words", 1, "running")
        assert (found["host"], found["pid"], found["lag_s"], found["ended_at"]) == ("node7", 4711, 0.4, None)

    def test_an_empty_server(self, redis_backend: Backend, output) -> None:
        assert output(f"list --redis {redis_backend.url}") == f"no topology is stored on {redis_backend.url}\n"

    def test_status_is_watched_until_the_run_has_ended(self, url: str, output, redis_backend: Backend) -> None:
        ended = replace(FIGURES, state=run_pulse.RunState.DONE)
        redis_backend.client().hset("{words}:txbatch:pulse", "now", run_pulse.to_json(ended))
        (line,) = output(f"status words --watch --redis {url}").splitlines()
        assert line.startswith("words")
        assert "done" in line

    def test_status_of_a_run_says_whose_word_level_service_is(self, url: str, output, redis_backend: Backend) -> None:
        assert "run               running on node7, pid 4711, as ann" in output(f"status words --redis {url}")
        redis_backend.client().hset("{words}:txbatch:control", "durable_service", "1")
        shown = output(f"status words --redis {url}")
        assert "durability service (the service's contract, as the run's user said)" in shown
        assert "confirmed         up to txid 1 by the service's contract, as the run's user said" in shown
