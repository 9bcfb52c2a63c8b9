"""Counts messages of a Kafka topic while driver and broker are killed again and again; the counts are exact.

    python -m tests.support.chaos.kill_kafka --messages 1000000 --kills 3 --broker-kills 3

The broker is a real one. It is killed by -9 while a driver runs, and started again on the same log.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.jobs import Kill, Site, await_true, kill_at_random_moments, print_summary
from tests.support.chaos.kill_word_count import LEFTOVER_TIMEOUT_S, counts_of
from tests.support.chaos.source_jobs import PARTITIONS
from tests.support.kafka.broker import Broker

TOPOLOGY_ID = "page_views"
TOPIC = "page_views"
PAGES = 5000
AWAY_S = 1.0
"""How long the broker stays away after a kill, in addition to what its start takes."""
POLL_EVERY = 1000
FACTORIES = {False: "examples.kafka_to_redis:topology", True: "tests.support.chaos.source_jobs:opaque_views"}
"""Is it opaque? -> what makes the topology."""
FLUSH_S = 120.0


def write_views(address: str, topic: str, messages: int, draw: random.Random) -> Counter[str]:
    """Writes messages, spread over the partitions, and counts them independently of txbatch."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 20,
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": 262_144,
        }
    )
    pages = [f"/page/{number}" for number in range(PAGES)]
    drawn = [pages[int(PAGES * draw.random() ** 3)] for _ in range(messages)]
    for number, page in enumerate(drawn):
        while True:
            try:
                producer.produce(topic, page, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    if producer.flush(FLUSH_S):
        raise AssertionError("the broker did not take the messages")
    return Counter(drawn)


class BrokerKiller:
    """Kills the broker at drawn moments while transactions are committed, and starts it again; on its own thread.

    Args:
        broker: the broker.
        site: tells what is committed.
        at: numbers of committed transactions at which to kill.

    Attributes:
        done: committed transactions at each kill.
    """

    def __init__(self, broker: Broker, site: Site, at: list[int]) -> None:
        self._broker, self._site, self._at = broker, site, sorted(at)
        self.done: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="broker-killer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while self._at and not self._stop.wait(0.02):
            committed = self._site.committed() or 0
            if committed >= self._at[0]:
                self._at = [each for each in self._at if each > committed]
                self._broker.kill()
                self.done.append(committed)
                self._stop.wait(AWAY_S)
                self._broker.start()


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        kills: every kill of a driver.
        broker_kills: committed transactions at each kill of the broker.
        is_exact: whether the counts in Redis are those of an independent count.
        stored: how many messages the counts in Redis say there were.
        said: the last run's JSON.
        leftovers: processes that were still there in the end.
    """

    kills: list[Kill]
    broker_kills: list[int]
    is_exact: bool
    stored: int
    said: dict[str, Any]
    leftovers: list[int]


def kill_kafka(
    folder: Path,
    broker: Broker,
    *,
    messages: int,
    kills: int,
    broker_kills: int,
    seed: int,
    per_batch: int,
    timeout_s: float,
    factory: str = FACTORIES[False],
) -> Outcome:
    """Writes messages to a broker, counts them under fire by the topology that `factory` makes, and compares."""
    draw = random.Random(seed)
    broker.create_topic(TOPIC, PARTITIONS)
    truth = write_views(broker.address, TOPIC, messages, draw)
    given = {"servers": broker.address, "topic": TOPIC, "messages_per_batch": per_batch}
    parameters = [part for name, value in given.items() for part in ("-p", f"{name}={value}")]
    site = Site(folder, TOPOLOGY_ID, [factory, *parameters, "--max-pending", "16"], timeout_s)
    total = -(-messages // per_batch)
    killer = BrokerKiller(broker, site, [draw.randrange(1, max(2, total * 3 // 4)) for _ in range(broker_kills)])
    killer.start()
    try:
        done = kill_at_random_moments(site, kills=kills, total=total, draw=draw)
        said = site.finish()
        killer.stop()
        with EmbeddedServer(site.data_dir):
            found = site.snapshot("HGETALL", "views")
        await_true(lambda: not site.leftovers(), LEFTOVER_TIMEOUT_S)
        stored = Counter() if found is None else counts_of(found[1])
        return Outcome(done, killer.done, stored == truth, stored.total(), said, site.leftovers())
    finally:
        killer.stop()
        site.close()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--broker-kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-batch", type=int, default=5000)
    parser.add_argument("--timeout-s", type=float, default=900.0)
    parser.add_argument("--opaque", action="store_true", help="with KafkaOpaqueSpout")
    options = parser.parse_args()
    started_s = time.monotonic()
    broker = Broker()
    try:
        broker.start()
        with tempfile.TemporaryDirectory(prefix="txbatch-chaos-") as temporary:
            outcome = kill_kafka(
                Path(temporary),
                broker,
                messages=options.messages,
                kills=options.kills,
                broker_kills=options.broker_kills,
                seed=options.seed,
                per_batch=options.per_batch,
                timeout_s=options.timeout_s,
                factory=FACTORIES[options.opaque],
            )
    finally:
        broker.stop()
    print_summary(
        f"kafka to redis, driver killed {len(outcome.kills)}, broker {len(outcome.broker_kills)} times "
        f"(seed {options.seed})",
        {
            "messages": f"{options.messages:,} in {PARTITIONS} partitions",
            **{f"kill {number}": kill for number, kill in enumerate(outcome.kills, 1)},
            "broker killed": f"at {outcome.broker_kills} committed transactions",
            "last run": outcome.said,
            "final counts": "exactly those of an independent count" if outcome.is_exact else f"WRONG: {outcome.stored}",
            "processes left": outcome.leftovers or "none",
            "seconds": round(time.monotonic() - started_s, 1),
        },
    )
    return 0 if outcome.is_exact and not outcome.leftovers else 1


if __name__ == "__main__":
    sys.exit(main())
