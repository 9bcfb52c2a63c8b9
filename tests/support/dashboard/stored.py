"""Topologies as a server holds them, for the dashboard: running, done, silent, without a pulse, and unreadable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from state.codec import pack
from state.commits.dead_letters import DEAD_LETTERS_STATE, pack_letter
from state.keys import Keys
from state.records import run_pulse
from state.records.transaction_story import AttemptStory, ComponentStory, TransactionStory
from tests.support.stores.builders import record_of

NOW = 1_700_000_000.0
MARKUP = "<script>alert('1')</script>\x1b[2J"
"""What nobody wants to run or to see as it is."""
DESCRIPTION = json.dumps(
    {
        "components": {
            "count": {"kind": "bolt", "tasks": 2, "inputs": ["lines/default: ShuffleGrouping()"]},
            "lines": {"kind": "spout", "tasks": 2, "inputs": []},
            "store": {"kind": "committer", "tasks": 2, "inputs": ["count/default: FieldsGrouping(names=('word',))"]},
        },
        "states": {"counts": {"kind": "hash", "value": "int", "field": "str", "owner": "store"}},
    }
)
RUN = run_pulse.RunIdentity(
    fence="1:ab",
    host="node7",
    pid=4711,
    user="ann",
    started_at=NOW - 700,
    versions={"python": "3.12.1", "pyspark": "4.1.0", "txbatch": "0.1.0"},
    master="local[4]",
    durability="fsync",
    server_can_lose="nothing",
    history=10_000,
)
FIGURES = run_pulse.RunFigures(
    at=NOW,
    state=run_pulse.RunState.RUNNING,
    last_txid=42,
    released_txid=42,
    committed=40,
    tuples=40_000,
    attempts=50,
    failed_attempts=3,
    waves=9,
    commit_groups=12,
    window={"waiting": 1, "processing": 2, "processed": 3, "committing": 4},
    transactions_per_s=12.5,
    tuples_per_s=12_500.0,
    lag_s=0.4,
    fraction=0.25,
    latency_s=run_pulse.Spread(40, 0.41, 0.8, 0.9, 1.0),
    commit_s=run_pulse.Spread(10, 0.0021, 0.004, 0.004, 0.004),
    wave_s=run_pulse.Spread(9, 0.3, 0.5, 0.5, 0.5),
    components={
        "count": run_pulse.ComponentFigures(40_000, 20_000, 3, 0, 1.5),
        "lines": run_pulse.ComponentFigures(0, 40_000, 0, 0, 0.5),
        "store": run_pulse.ComponentFigures(20_000, 0, 0, 2, 3.0),
    },
    failures={"worker lost": 1, "lower failed": 2},
    last_failure=run_pulse.LastFailure(17, "17:00ff", "worker lost", f"an executor is gone {MARKUP}", NOW - 65),
    dead_letters=2,
)


def samples(count: int = run_pulse.SAMPLES_KEPT, *, until: float = NOW) -> list[run_pulse.PulseSample]:
    """Samples of some seconds, with a wave in them."""
    return [
        run_pulse.PulseSample(
            at=until - count + 1 + number,
            last_txid=number,
            transactions_per_s=10 + number % 7,
            tuples_per_s=10_000 + 1_000 * (number % 7),
            lag_s=0.1 * (number % 5),
            processing=number % 3,
            processed=1,
            committing=number % 2,
            latency_s=0.4,
            commit_s=0.002,
            wave_s=0.3,
        )
        for number in range(count)
    ]


def story(txid: int, **changes: Any) -> TransactionStory:
    """A transaction whose only attempt was committed."""
    at = NOW - 10_000 + txid
    told = TransactionStory(
        cut_at=at,
        processed_at=at + 0.3,
        sent_at=at + 0.4,
        committed_at=at + 0.41,
        attempts=(AttemptStory(f"{1000 + txid:016x}", txid // 32, at + 0.1, at + 0.41),),
        attempt_count=1,
        first_txid=txid,
        last_txid=txid,
        input_bytes=21_774,
        group_bytes=16_018,
        tuples=500,
        components={"count": ComponentStory({"lines/default": 500}, {"default": 250}, 14.0)},
    )
    return replace(told, **changes)


def failed_story(txid: int, kind: str = "worker lost", reason: str = MARKUP) -> TransactionStory:
    """A transaction whose first attempt failed."""
    at = NOW - 10_000 + txid
    first = AttemptStory("00000000deadbeef", 1, at, at + 9.8, kind, reason)
    again = AttemptStory(f"{1000 + txid:016x}", 2, at + 10, at + 11)
    return story(txid, attempts=(first, again), attempt_count=2, processed_at=at + 10.8, committed_at=at + 11)


def store_topology(
    client: Any,
    topology_id: str,
    *,
    committed: int = 42,
    run: run_pulse.RunIdentity | None = RUN,
    figures: run_pulse.RunFigures = FIGURES,
    seen_at: float | None = None,
    told: Iterable[run_pulse.PulseSample] = (),
    stories: Mapping[int, TransactionStory] | None = None,
    history: Iterable[int] = (),
    letters: int = 0,
    quarantined: int = 0,
    description: str = DESCRIPTION,
) -> None:
    """Writes what a run would have left; `run` None for one that told nothing."""
    keys = Keys(topology_id)
    kept = list(history)
    control = {"fence": RUN.fence, "generation": "b" * 32, "committed": str(committed), "topology": description}
    control |= {"source_fingerprint": "files:/data/*.txt", "revision": "7", "durable_fsync": str(committed)}
    with client.pipeline(transaction=False) as pipeline:
        pipeline.hset(keys.control, mapping=control | ({"history_from": str(kept[0])} if kept else {}))
        if run is not None:
            fields = {
                "run": run_pulse.to_json(run),
                "now": run_pulse.to_json(figures),
                "seen": str(seen_at or figures.at),
            }
            fields |= {f"sample.{number}": run_pulse.to_json(sample) for number, sample in enumerate(told)}
            pipeline.hset(keys.pulse, mapping=fields | {"stories_from": str(min(stories or [1]))})
        if stories:
            pipeline.hset(keys.stories, mapping={str(txid): each.to_json() for txid, each in stories.items()})
        if kept:
            pipeline.hset(keys.history, mapping={str(txid): history_record(txid) for txid in kept})
        for number in range(letters):
            pipeline.zadd(keys.state(DEAD_LETTERS_STATE), {letter(17 + number, 0): 17 + number})
        for number in range(quarantined):
            record = record_of(30 + number)
            pipeline.hset(keys.quarantine, str(record.txid), record.packed())
        pipeline.execute()


def history_record(txid: int, metadata: Any = ("/data/mid.txt", 1_285_126, 1_296_004)) -> bytes:
    """What a commit writes of a transaction."""
    packed = pack(list(metadata))
    receipt = f"{1000 + txid:016x} 416c618303ef1275 {txid} {txid}\n".encode()
    return receipt + b"%d %d\ncoordinator%b\n" % (len("coordinator"), len(packed), packed)


def letter(txid: int, number: int) -> bytes:
    """A refused tuple, as it is stored."""
    packed = pack_letter(
        "store",
        1,
        source_component="count",
        stream_id="default",
        fields=["word", MARKUP],
        values=["naïve", {"price": 12.5, MARKUP: None}],
        reason=f"no price {MARKUP}",
    )
    return b"%d.%06d:%b" % (txid, number, packed)


def store_all(client: Any) -> None:
    """Writes one topology of every sort; looked at at `NOW`."""
    stories = {txid: story(txid) for txid in range(1, 43)} | {17: failed_story(17)}
    store_topology(client, "words", told=samples(), stories=stories, history=range(1, 43), letters=2, quarantined=2)
    done = replace(FIGURES, state=run_pulse.RunState.DONE, window={}, fraction=1.0, at=NOW - 300)
    store_topology(client, "orders", figures=done, told=samples(60, until=NOW - 300), stories={42: story(42)})
    failed = replace(FIGURES, state=run_pulse.RunState.FAILED, error=f"disk full {MARKUP}", at=NOW - 60)
    store_topology(client, "ledger", figures=failed)
    store_topology(client, "clicks", figures=replace(FIGURES, at=NOW - 100), seen_at=NOW - 100)
    store_topology(client, "untold", run=None, history=range(1, 43))
    store_topology(client, "odd", run=None, committed=0, description="not json")
    client.set(Keys("broken").control, "not a hash")
