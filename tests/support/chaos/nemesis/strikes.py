"""What the nemesis does to drivers and to a single server; each strike returns once the world can heal.

A strike says what it has done (`Battle.count`) and what drivers may say of it when they end (`Battle.allow`); anything
else that they say is a complaint.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import redis

from tests.support.chaos.jobs import POLL_S, await_true
from tests.support.chaos.nemesis.battle import Battle
from tests.support.chaos.nemesis.drivers import Driver
from tests.support.chaos.nemesis.fates import draw_fate, running_points
from tests.support.chaos.nemesis.servers import ALWAYS, Server
from tests.support.chaos.nemesis.verifier import Complaint

Strike = Callable[[Battle], None]
FREEZE_TIMEOUT_S = 5.0
ZOMBIES = "zombies: SIGSTOP of a driver, a second one takes over, SIGCONT"
NOTICE_TIMEOUT_S = 20.0


def wait(battle: Battle, longest_s: float) -> None:
    """Lets a drawn time pass; that is what makes the moment of a strike random."""
    time.sleep(battle.draw.uniform(0.0, longest_s))


# Drivers -------------------------------------------------------------------------------------------------------


def kill_driver(battle: Battle) -> None:
    """kill -9: at the driver's fault point, if it reaches it soon, or wherever it is then."""
    driver = battle.owner()
    longest_s = battle.fate_timeout_s if driver.spec.fate else battle.draw.uniform(0.0, 0.15)
    driver.wait(longest_s)
    battle.kill_driver(driver)
    battle.owner()


def freeze_driver(battle: Battle) -> None:
    """SIGSTOP, and SIGCONT some time later."""
    driver = battle.owner()
    battle.count("SIGSTOP, SIGCONT of a driver")
    driver.freeze()
    wait(battle, 0.3)
    driver.thaw()


def raise_zombie(battle: Battle) -> None:
    """SIGSTOP of a driver, anywhere or at a fault point; a second one takes over; SIGCONT of the first.

    The first has to notice that it was fenced, whatever it was about to do. Unless it had not yet taken over when it
    was stopped: then it is the newer one, and the second has to notice.
    """
    zombie = _stopped_driver(battle)
    if zombie is None:
        return
    zombie.is_zombie = True
    battle.await_progress()
    rivals = [*battle.drivers]
    for rival in rivals:
        rival.may_be_fenced = True
    battle.count(ZOMBIES)
    if not await_true(lambda: _one_has_ended(zombie, rivals), battle.patience_s):
        battle.complain(Complaint("stuck", f"of two drivers, none has ended within {battle.patience_s:g} s"))
        zombie.kill()
    if zombie.is_running():
        battle.count(ZOMBIES, -1)
        battle.count("SIGSTOP of a driver before it takes over, SIGCONT after another one did")
        zombie.is_zombie = False
    battle.collect()


def _one_has_ended(zombie: Driver, rivals: list[Driver]) -> bool:
    if zombie.is_frozen():
        zombie.thaw()  # it may have a fault point to stop at before it
    return not all(rival.is_running() for rival in rivals)


def _stopped_driver(battle: Battle) -> Driver | None:
    if battle.draw.random() < 0.5:
        driver = battle.owner()
        wait(battle, 0.1)
    else:
        battle.kill_driver(battle.owner())
        points = running_points(on_spark=bool(battle.spec.master))
        driver = battle.start_driver(draw_fate(battle.draw, points, {}, signal.SIGSTOP))
        await_true(lambda: driver.is_frozen() or not driver.is_running(), battle.fate_timeout_s)
    driver.freeze()
    if await_true(lambda: driver.is_frozen() or not driver.is_running(), FREEZE_TIMEOUT_S) and driver.is_running():
        return driver
    battle.kill_driver(driver)
    return None


# A server ------------------------------------------------------------------------------------------------------


class ServerStrikes:
    """What may happen to a server that keeps an append-only file.

    Args:
        server: the one that the battle's drivers use.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def kill(self, battle: Battle) -> None:
        """kill -9 and a restart: if every write was on disk before it was answered, every driver has to survive it."""
        battle.owner()
        battle.count(f"kill -9 of the server, {self._server.fsync}")
        with nullcontext() if self._server.fsync == ALWAYS else battle.going_back():
            before = battle.committed() or 0
            self._server.kill()
            wait(battle, 0.1)
            self._server.start()
            if (battle.committed() or 0) < before:
                battle.record.totals["kills of a server, everysec, that lost answered commits"] += 1

    def freeze(self, battle: Battle) -> None:
        """SIGSTOP, and SIGCONT some time later: calls time out, and were applied all the same."""
        battle.owner()
        battle.count("SIGSTOP, SIGCONT of the server")
        self._server.freeze()
        wait(battle, 0.6)
        self._server.thaw()

    def cut(self, battle: Battle) -> None:
        """kill -9, and the end of the append-only file is gone, as after a power failure."""
        battle.owner()
        battle.count(f"kill -9 of the server, {self._server.fsync}")
        with battle.going_back():
            self._server.kill()
            battle.count("append-only file cut, bytes", self._server.cut(battle.draw))
            battle.count("append-only file cut")
            self._server.start()
            if self._server.keeps_halves:
                self._server.rewrite()

    def restore(self, battle: Battle) -> None:
        """kill -9, and a copy of some commits ago in the place of its data, as after a restored backup."""
        battle.owner()
        self._server.keep()
        battle.await_progress()
        battle.count(f"kill -9 of the server, {self._server.fsync}")
        with battle.going_back():
            self._server.kill()
            battle.count("older copy restored")
            self._server.go_back()
            self._server.start()

    def flush_functions(self, battle: Battle) -> None:
        """The function library is gone."""
        battle.owner()
        battle.count("FUNCTION FLUSH")
        self._tell("FUNCTION", "FLUSH")

    def kill_clients(self, battle: Battle) -> None:
        """Every connection ends, several times in a row."""
        battle.owner()
        battle.count("CLIENT KILL")
        for _ in range(battle.draw.randint(1, 4)):
            self._tell("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            wait(battle, 0.05)

    def squeeze_memory(self, battle: Battle) -> None:
        """No write is taken for want of memory, until somebody notices."""
        battle.allow("out of memory")
        driver = battle.owner()
        battle.count("memory squeeze")
        self._tell("CONFIG", "SET", "maxmemory", "1mb")
        driver.wait(battle.draw.choice((0.1, NOTICE_TIMEOUT_S)))
        self._tell("CONFIG", "SET", "maxmemory", "0")

    def _tell(self, *command: Any) -> None:
        with self._server.client() as client, contextlib.suppress(redis.ConnectionError):
            client.execute_command(*command)


class DiskStrikes:
    """What may happen to a server whose disk is small.

    Args:
        server: its folder is on the small disk.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def fill(self, battle: Battle) -> None:
        """The disk is full until a driver notices; at times the server is killed before it has room again."""
        battle.allow("disk full")
        driver = battle.owner()
        battle.count("disk full")
        filler = self._server.folder / "filler"
        fill_disk(filler)
        driver.wait(battle.draw.choice((0.3, NOTICE_TIMEOUT_S)))
        if battle.draw.random() < 0.5:
            battle.count(f"kill -9 of the server, {self._server.fsync}")
            with battle.going_back():  # what it could not write is in its memory only
                self._server.kill()
                filler.unlink()
                self._server.start()
            return
        filler.unlink()
        with self._server.client() as client:
            await_true(lambda: client.info("persistence")["aof_last_write_status"] == "ok", NOTICE_TIMEOUT_S)


def fill_disk(path: Path) -> None:
    """Writes a file until there is no room."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass  # ends when the disk is full


def pause_between(battle: Battle) -> None:
    """What passes between two strikes: as a rule something is committed, at times nothing can be."""
    if battle.draw.random() < 0.75:
        battle.await_progress()
    time.sleep(POLL_S)
    battle.check()
