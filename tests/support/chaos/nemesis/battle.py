"""One topology under fire, from its first start to its last transaction: what strikes act on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Protocol

import redis

from tests.support.chaos.jobs import POLL_S, await_true
from tests.support.chaos.nemesis.driver_spec import DriverSpec, Fate
from tests.support.chaos.nemesis.drivers import Driver
from tests.support.chaos.nemesis.history import History, Verdict
from tests.support.chaos.nemesis.ledger_job import TAKE
from tests.support.chaos.nemesis.onlooker import Onlooker
from tests.support.chaos.nemesis.record import Record
from tests.support.chaos.nemesis.verifier import Complaint, Receipts, Verifier, atomic_read, receipts_of

SLACK_TRANSACTIONS = 4
SENTENCES_MAX = 50
FINISH_LOOK_S = 0.5


class Starter(Protocol):
    """Starts drivers: a `Nursery` or `Programs`."""

    def start(self, spec: DriverSpec) -> Driver:
        """Starts one."""


class Battle:
    """One topology, its drivers, and everything that has to hold of them.

    Args:
        folder: for what drivers note, and for the end of the input.
        starter: starts drivers.
        spec: of every driver; what differs from one to the next is drawn.
        draw: the only source of chance.
        connect: makes a client of the server, as any user would; it never retries.
        record: where everything is counted.
        verifier: says what is wrong with what was read.
        next_fate: draws where the next driver is killed, None for nowhere.
        patience_s: how long a run may take to commit something new; a longer wait is a complaint.
        fate_timeout_s: how long a strike waits for a driver to reach its fault point.

    Attributes:
        drivers: those not known to have ended, in the order of their starts.
        is_closed: whether the end of the input is known.
        end: rows of each partition, once it is.
        found: everything that was wrong so far.
    """

    def __init__(
        self,
        folder: Path,
        starter: Starter,
        spec: DriverSpec,
        draw: Random,
        *,
        connect: Callable[[], Any],
        record: Record,
        verifier: Verifier,
        next_fate: Callable[[Battle], Fate | None],
        patience_s: float,
        fate_timeout_s: float = 0.7,
    ) -> None:
        self.folder, self.spec, self.draw, self.record = folder, spec, draw, record
        self.drivers: list[Driver] = []
        self.is_closed = False
        self.end = 0
        self._starter, self._verifier, self._next_fate = starter, verifier, next_fate
        self._connect, self.patience_s = connect, patience_s
        self.fate_timeout_s = fate_timeout_s
        self._allowed = {"killed"}
        self._receipts = Receipts()
        self._numbers = 0
        self._has_killed = False
        self.found: list[Complaint] = []
        self._history = history = History(folder / f"{spec.topology_id}.history")
        self.onlooker = Onlooker(
            connect,
            spec.topology_id,
            verifier,
            has_order=spec.reads,
            complain=self.complain,
            reads=history.onlooker,
        )
        self.onlooker.start()

    # What strikes use ------------------------------------------------------------------------------------------

    def allow(self, *endings: str) -> None:
        """Drivers of this battle may end so from now on."""
        self._allowed.update(endings)

    def complain(self, complaint: Complaint) -> None:
        """Counts something that must never be; any thread."""
        self.found.append(complaint)
        self.record.complaints[complaint.kind] += 1
        if len(self.record.sentences) < SENTENCES_MAX:
            spec = self.spec
            where = f"{spec.topology_id}, {spec.kind}{', reads' if spec.reads else ''}, {spec.master or 'in process'}"
            self.record.sentences.append(f"{complaint.kind} ({where}): {complaint.sentence}")

    def start_driver(self, fate: Fate | None = None, *, is_rival: bool = False, **changes: Any) -> Driver:
        """Starts one more driver; unless a fate is given, one is drawn."""
        self._numbers += 1
        drawn = self.draw
        fate = fate or self._next_fate(self)
        repeats = fate is not None and fate.repeats
        limits: dict[str, Any] = {
            "seed": drawn.getrandbits(32),
            "max_pending": drawn.choice((1, 4, 8, 16)) if not self.spec.master else self.spec.max_pending,
            "commit_group_max": drawn.choice((1, 3, 16)),
            "early_commit": drawn.random() < 0.5 and not repeats,  # between two jobs, if that is where it stops
        }
        notes_path = str(self.folder / f"{self.spec.topology_id}-{self._numbers}")
        history_path = str(self._history.folder / f"driver-{self._numbers}.jsonl")
        spec = replace(self.spec, notes_path=notes_path, history_path=history_path, fate=fate, **(limits | changes))
        for other in self.drivers:
            other.may_be_fenced |= is_rival
        driver = self._starter.start(spec)
        driver.recovers, self._has_killed = self._has_killed, False
        self.drivers.append(driver)
        return driver

    def owner(self) -> Driver:
        """A driver that runs, started if there is none."""
        self.collect()
        alive = [driver for driver in self.drivers if not driver.is_zombie]
        return alive[-1] if alive else self.start_driver(is_rival=bool(self.drivers))

    def committed(self) -> int | None:
        """Last committed txid; None while nobody answers."""
        call_ns = time.monotonic_ns()
        try:
            with self._connect() as client:
                committed = int(client.hget(f"{{{self.spec.topology_id}}}:txbatch:control", "committed") or 0)
        except redis.RedisError:
            return None
        self._history.position.add(call_ns, committed)
        return committed

    def await_progress(self) -> None:
        """Waits until something new is committed, with as many restarts as that takes."""
        before = None
        deadline = time.monotonic() + self.patience_s
        while time.monotonic() < deadline and not self.found:
            _keep_awake(self.owner())
            now = self.committed()
            before = now if before is None else before
            if now is not None and before is not None and now > before:
                return
            if self.is_closed and not self.drivers:
                return
            time.sleep(POLL_S)
        if not self.found:
            self.complain(
                Complaint("stuck", f"nothing new was committed for {self.patience_s:g} s after txid {before}")
            )

    @contextmanager
    def going_back(self) -> Iterator[None]:
        """A block in which the server may lose writes; a driver that notices stops."""
        self.allow("regressed", "overtaken")
        with self.onlooker.going_back(), self._history.losing():
            yield
            self._receipts.forget()

    def count(self, strike: str, number: int = 1) -> None:
        """Counts a strike, before it strikes; what it holds up is not a recovery to be measured."""
        self.record.strikes[strike] += number
        for driver in self.drivers:
            driver.recovers = driver.recovers and "committed" in driver.notes().all()

    def kill_driver(self, driver: Driver) -> None:
        """kill -9, counted unless the driver had ended by itself."""
        if driver.is_running():
            driver.kill()
        self.collect()

    def collect(self) -> None:
        """Looks which drivers have ended, and whether they may have."""
        for driver in [driver for driver in self.drivers if not driver.is_running()]:
            self.drivers.remove(driver)
            self._judge(driver)

    def check(self) -> None:
        """Looks at everything that a single read does not show."""
        try:
            with self._connect() as client:
                committed, receipts = receipts_of(client, self.spec.topology_id)
        except redis.RedisError:
            return
        for complaint in self._receipts.complaints(committed, receipts):
            self.complain(complaint)

    # The end ---------------------------------------------------------------------------------------------------

    def close_input(self) -> None:
        """Decides how long the input is: a little longer than what may have been cut by now."""
        for driver in self.drivers:
            driver.freeze()
        view = self._view()
        slack = SLACK_TRANSACTIONS + 2 * 2 * max(16, self.spec.max_pending)
        self.end = max((*view.hashes["seen"].values(), 0)) + slack * TAKE
        path = Path(self.spec.end_path)
        path.with_suffix(".new").write_text(str(self.end), encoding="ascii")
        path.with_suffix(".new").rename(path)
        self.is_closed = True
        self.allow("done")
        for driver in self.drivers:
            driver.thaw()

    def finish(self) -> None:
        """Lets a run come to its end, and looks whether all of the input is in, once."""
        deadline = time.monotonic() + self.patience_s
        is_done = False
        while not is_done and time.monotonic() < deadline:
            driver = self.owner()
            _keep_awake(driver)
            driver.wait(FINISH_LOOK_S)
            is_done = not driver.is_running() and driver.ending() == "done"
            self.collect()
        if not is_done:
            self.complain(Complaint("stuck", f"the run did not come to its end within {self.patience_s:g} s"))
        for driver in self.drivers:
            driver.kill()
        self.collect()
        self._verify_whole()
        self.check()

    def close(self) -> None:
        """Ends the onlooker and whatever still runs, and adds up what was seen."""
        for driver in self.drivers:
            driver.kill()
        self.onlooker.stop()
        seen = self.onlooker.sightings
        totals = self.record.totals
        totals["atomic reads"] += seen.reads
        totals["states seen by them"] += seen.states
        totals["topologies"] += 1
        verdict = self._history.verdict()
        if verdict is not None:
            totals[f"histories {verdict}"] += 1
        if verdict is Verdict.REJECTED:
            sentence = f"no order of whole transactions explains what clients saw; {self._history.shown()}"
            self.complain(Complaint("not linearizable", sentence))

    def _verify_whole(self) -> None:
        view = self._view()
        self.record.totals["transactions"] += view.committed
        wrong = self._verifier.complaints(view, has_order=self.spec.reads)
        for complaint in [*wrong, *self._verifier.complaints_at_end(view, self.end)]:
            self.complain(complaint)

    def _view(self) -> Any:
        views: list[Any] = []

        def look() -> bool:
            try:
                with self._connect() as client:
                    views.append(atomic_read(client, self.spec.topology_id))
            except redis.RedisError:
                return False
            return True

        if not await_true(look, self.patience_s):
            raise RuntimeError("the server does not answer")
        return views[-1]

    def _judge(self, driver: Driver) -> None:
        ending = driver.ending()
        noted = driver.notes().all()
        self.record.endings[ending if len(ending) < 20 else "otherwise"] += 1
        if ending == "killed":
            self._has_killed = True
            where = "a driver on Spark" if driver.spec.master else "a driver"
            is_fate = "fate" in noted and not driver.was_killed
            self.record.strikes[f"kill -9 of {where} at a {'fault point' if is_fate else 'random time'}"] += 1
            if is_fate:
                self.record.points[noted["fate"]["point"]] += 1
        if driver.recovers and "committed" in noted:
            engine = "with Spark" if driver.spec.master else "without Spark"
            committed_s = noted["committed"]["at_s"]
            self.record.recovered(f"the process, {engine}", committed_s - driver.asked_s)
            if driver.spec.master:
                self.record.recovered("the run, once Spark is up", committed_s - noted["owned"]["at_s"])
        is_allowed = ending in self._allowed or (driver.may_be_fenced and ending in ("fenced", "overtaken"))
        if not is_allowed:
            self.complain(Complaint("ending", f"a driver ended otherwise than it may: {ending}"))
        elif ending == "done" and not driver.spec.drops:
            wrong = self._verifier.complaints_at_end(self._view(), self.end)
            for complaint in wrong:
                self.complain(complaint)


def _keep_awake(driver: Driver) -> None:
    """Wakes a driver that nobody holds: one that was to stop itself may do so long after its strike."""
    if driver.is_frozen():
        driver.thaw()
