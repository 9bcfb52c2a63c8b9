"""A primary and its replica, each reached through a proxy, and promotions of a replica that lags."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.chaos.jobs import POLL_S
from tests.support.chaos.nemesis.battle import Battle
from tests.support.chaos.nemesis.proxy import BlackHoleProxy
from tests.support.chaos.nemesis.servers import Server
from tests.support.chaos.nemesis.strikes import wait

SYNC_TIMEOUT_S = 30.0


class ReplicatedServers:
    """A primary, a replica that follows it through a proxy, and the address that clients use.

    Args:
        program: path of the server's program.
        folder: for both.

    Attributes:
        front: clients talk to the primary through it.
    """

    def __init__(self, program: str, folder: Path) -> None:
        for name in ("a", "b"):
            (folder / name).mkdir()
        self.primary = Server(program, folder / "a", append_only=False)
        self.replica = Server(program, folder / "b", append_only=False)
        self.primary.start()
        self.replica.start()
        self.front = BlackHoleProxy(self.primary.port)
        self._link = BlackHoleProxy(self.primary.port)
        self._follow()

    @property
    def url(self) -> str:
        """Where clients find the primary, whichever that is."""
        return f"redis://127.0.0.1:{self.front.port}/0"

    def client(self) -> Any:
        """A client of the front; it never retries."""
        return redis.Redis(host="127.0.0.1", port=self.front.port, retry=Retry(NoBackoff(), 0), socket_timeout=2.0)

    def promote(self, battle: Battle) -> None:
        """The link falls silent, so that the replica lags; then it is the primary, and the old one is lost."""
        battle.owner()
        self._await_in_step()
        battle.count("promotions of a replica behind the black-holing proxy")
        with battle.going_back():
            self._link.fall_silent()
            wait(battle, 0.15)
            self.front.fall_silent()  # commits are sent, or applied, and nobody hears of it
            wait(battle, 0.05)
            with self.replica.client() as client:
                client.execute_command("REPLICAOF", "NO", "ONE")
            self.front.point_to(self.replica.port)
        self.primary.kill()
        battle.count("kill -9 of a primary whose replica was promoted")
        self.primary, self.replica = self.replica, self.primary
        self.replica.wipe()
        self.replica.start()
        self._link.point_to(self.primary.port)
        self._follow()

    def fall_silent(self, battle: Battle) -> None:
        """The network swallows everything for a while, and then delivers it late."""
        battle.owner()
        battle.count("network silent, then everything delivered late")
        self.front.fall_silent()
        wait(battle, 0.6)
        self.front.speak()

    def close(self) -> None:
        """Ends everything."""
        self.front.close()
        self._link.close()
        for server in (self.primary, self.replica):
            server.kill()

    def _follow(self) -> None:
        with self.replica.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(self._link.port))

    def _await_in_step(self) -> None:
        """Waits until the replica follows; it may lag by what is on its way."""
        deadline = time.monotonic() + SYNC_TIMEOUT_S
        with self.replica.client() as client:
            while client.info("replication").get("master_link_status") != "up":
                if time.monotonic() > deadline:
                    raise RuntimeError("the replica does not follow its primary")
                time.sleep(POLL_S)
