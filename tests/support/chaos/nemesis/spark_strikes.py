"""What the nemesis does to Spark's processes: the driver's Java process, its Python workers, a cluster's executors."""

from __future__ import annotations

import signal

from tests.support.chaos.jobs import await_true
from tests.support.chaos.nemesis.battle import Battle
from tests.support.chaos.nemesis.driver_spec import Fate
from tests.support.chaos.nemesis.drivers import Driver
from tests.support.chaos.nemesis.processes import java_of, python_workers_of, send
from tests.support.chaos.nemesis.standalone_cluster import StandaloneCluster
from tests.support.chaos.nemesis.strikes import wait
from tests.support.chaos.nemesis.verifier import Complaint

NOTICE_TIMEOUT_S = 60.0
START_TIMEOUT_S = 120.0
FREEZE_TIMEOUT_S = 2.0
BETWEEN_JOBS = 3
"""Most executors that one strike kills between the two jobs of a wave, one after another."""
STOPS_BETWEEN_JOBS = Fate("group.submitting", 2, signal.SIGSTOP, repeats=True)
"""The fate of every driver on a cluster; it sleeps until a strike wakes it."""


def working_owner(battle: Battle) -> Driver | None:
    """A driver that has committed something, so that there is something to strike; None if it ends before."""
    driver = battle.owner()
    is_due = await_true(lambda: not driver.is_running() or "committed" in driver.notes().all(), START_TIMEOUT_S)
    return driver if is_due and driver.is_running() else None


def kill_java(battle: Battle) -> None:
    """kill -9 of the driver's Java process; the driver has to notice and end."""
    driver = working_owner(battle)
    java = None if driver is None else java_of(driver.pid)
    if driver is None or java is None:
        return
    battle.allow("engine")
    wait(battle, 0.5)
    battle.count("kill -9 of the driver's Java process")
    send(java, signal.SIGKILL)
    if not driver.wait(NOTICE_TIMEOUT_S):
        battle.complain(Complaint("stuck", "a driver does not notice that its Java process is gone"))
        driver.kill()
    battle.collect()


def freeze_java(battle: Battle) -> None:
    """SIGSTOP of the Java process, and SIGCONT before the driver gives it up."""
    driver = working_owner(battle)
    java = None if driver is None else java_of(driver.pid)
    if java is not None:
        battle.count("SIGSTOP, SIGCONT of the driver's Java process")
        send(java, signal.SIGSTOP)
        wait(battle, 2.0)
        send(java, signal.SIGCONT)


def kill_worker(battle: Battle, top: int | None = None) -> None:
    """kill -9 of a Python worker, whatever it is doing.

    Args:
        battle: where.
        top: process below which to look for workers; the driver by default.
    """
    _strike_worker(battle, top, "kill -9 of a Python worker", (signal.SIGKILL,))


def freeze_worker(battle: Battle, top: int | None = None) -> None:
    """SIGSTOP of a Python worker, and SIGCONT; with speculation, its task runs a second time meanwhile."""
    _strike_worker(battle, top, "SIGSTOP, SIGCONT of a Python worker", (signal.SIGSTOP, signal.SIGCONT))


def _strike_worker(battle: Battle, top: int | None, what: str, signals: tuple[signal.Signals, ...]) -> None:
    driver = working_owner(battle)
    if driver is None:
        return
    wait(battle, 0.4)
    workers = python_workers_of(driver.pid if top is None else top)
    if not workers:
        return
    worker = battle.draw.choice(workers)
    battle.count(what)
    send(worker, signals[0])
    for number in signals[1:]:
        wait(battle, 1.0)
        send(worker, number)


def _runs_on(driver: Driver) -> bool:
    """Sees to it that a driver does not stay stopped; never true, since it may stop once more until it is calm."""
    if driver.is_frozen():
        driver.thaw()
    return False


class ClusterStrikes:
    """What may happen to the executors of a standalone cluster.

    Args:
        cluster: ours.
    """

    def __init__(self, cluster: StandaloneCluster) -> None:
        self._cluster = cluster

    def kill_mid_wave(self, battle: Battle) -> None:
        """kill -9 of an executor at any time; its shuffle files are lost too."""
        if working_owner(battle) is not None:
            wait(battle, 0.5)
            self._kill_one(battle, "kill -9 of an executor at a random time")

    def kill_between_jobs(self, battle: Battle) -> None:
        """kill -9 of executors when job 1 has ended and job 2 has not begun: what job 2 reads is computed again.

        The driver stops itself there, so that nothing is left to chance; see `STOPS_BETWEEN_JOBS`.
        """
        driver = working_owner(battle)
        if driver is None:
            return
        driver.notes().stir()
        for _ in range(battle.draw.randint(1, BETWEEN_JOBS)):
            is_due = await_true(lambda: driver.is_frozen() or not driver.is_running(), START_TIMEOUT_S)
            if not is_due or not driver.is_running():
                break
            self._kill_one(battle, "kill -9 of an executor between the two jobs of a wave")
            driver.thaw()
            await_true(lambda: not driver.is_frozen(), START_TIMEOUT_S)
        driver.notes().calm()
        await_true(lambda: _runs_on(driver), FREEZE_TIMEOUT_S)

    def kill_worker(self, battle: Battle) -> None:
        """kill -9 of a Python worker of an executor."""
        kill_worker(battle, battle.draw.choice(self._cluster.worker_pids))

    def freeze_worker(self, battle: Battle) -> None:
        """SIGSTOP of a Python worker of an executor, and SIGCONT."""
        freeze_worker(battle, battle.draw.choice(self._cluster.worker_pids))

    def freeze_executor(self, battle: Battle) -> None:
        """SIGSTOP of an executor, and SIGCONT: its tasks become stragglers, and speculation runs them twice."""
        if working_owner(battle) is None:
            return
        executors = self._cluster.executors()
        if executors:
            executor = battle.draw.choice(executors)
            battle.count("SIGSTOP, SIGCONT of an executor")
            send(executor, signal.SIGSTOP)
            wait(battle, 3.0)
            send(executor, signal.SIGCONT)

    def _kill_one(self, battle: Battle, what: str) -> None:
        executors = self._cluster.executors()
        if executors:
            battle.count(what)
            send(battle.draw.choice(executors), signal.SIGKILL)
