"""A hash whose fields expire, in a whole topology: run, looked at, verified, exported and imported, described."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import redis

from coordinator import LocalCluster, MemoryTransactionalSpout, RunOptions, TransactionalTopologyBuilder
from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.refold import refold
from coordinator.operating.inspection.verify.verifier import Verifier
from coordinator.operating.transfer.exporting import LineWriter, export_state
from coordinator.operating.transfer.looking import chosen_state, field_line, lines_of_state, state_totals
from coordinator.proving.prove import prove
from coordinator.topology.building.topology_description import changes, described
from state import HashState, TopologyError
from state.records.stored_records import StoredPiece
from state.redis_admin import exporting as redis_export
from tests.support.cli.in_process import txbatch
from tests.support.runs.collecting import Collecting
from tests.support.topologies.sharded_topology import Sharded

pytestmark = pytest.mark.redis
FAR_S, PAST_S = 4_102_444_800, 1_000_000_000
ROWS = [["a", FAR_S], ["b", 0], ["c", PAST_S], ["d", FAR_S + 1], ["a", 0], ["b", FAR_S]]


class Sessions(Collecting):
    """Keeps when each key was seen last, until the row's time; for ever if that is 0. Reads, too."""

    seen = HashState("seen", value=int, fields_expire=True)
    found = HashState("found")

    def finish_batch(self):
        for key, until in self.tuples:
            self.found.increment(key, int(self.seen.get(key) is not None))
            self.seen.put(key, self.attempt.txid, expire_at=until or None)


class Lasting(Sessions):
    """The same of which no field may expire any more."""

    seen = HashState("seen", value=int)


def topology(committer: Sessions | None = None) -> Any:
    builder = TransactionalTopologyBuilder("s", "rows", MemoryTransactionalSpout([ROWS], ["key", "until"], 2))
    builder.set_committer_bolt("keep", committer or Sessions()).fields_grouping("rows", ["key"])
    return builder.build()


@pytest.fixture
def client(redis_backend) -> Any:
    return redis_backend.client()


def run(client: Any) -> Any:
    with LocalCluster(seed=1) as cluster:
        cluster.client = client
        submitted = cluster.submit(topology())
        submitted.run_until_idle()
        return submitted


def left_of(client: Any, key: str = "{s}:seen") -> dict[bytes, tuple[bytes, int]]:
    held = client.hgetall(key)
    times = client.execute_command("HPEXPIRETIME", key, "FIELDS", len(held), *held) if held else []
    return dict(zip(held, zip(held.values(), times, strict=True), strict=True))


LEFT = {b"a": (b"3", -1), b"b": (b"3", FAR_S * 1000), b"d": (b"2", (FAR_S + 1) * 1000)}


def test_fields_go_as_the_rows_say_and_what_had_expired_is_counted(client, redis_backend):
    assert run(client).statistics.expired_parts == 1
    assert left_of(client) == LEFT
    totals = state_totals(kept(client).topology.records())[1]
    assert {each.state.name: each.as_row()[3] for each in totals} == {"seen": "3, expiring", "found": "4"}
    assert [each.state.name for each in totals if each.as_json().get("fields_expire")] == ["seen"]


def test_verify_finds_it_sound_and_a_refold_leaves_it_out(client, redis_backend):
    run(client)

    def again(scratch: Any, url: str, options: RunOptions, observers: Any) -> None:
        with LocalCluster(seed=2, redis_url=url) as cluster:
            cluster.submit(scratch, options=options).run_until_idle()

    refolded = partial(refold, topology=topology(), run_to=again, server=lambda: nullcontext(redis_backend.url))
    findings = Verifier(kept(client).topology.records()).verify(topology(), refolded).findings
    (warning,) = [str(each) for each in findings if each.weight is not Weight.OK]
    assert "'seen' not compared" in warning


def test_every_schedule_leaves_the_same():
    proof = prove(topology(), seeds=3)
    assert proof.holds
    assert proof.expired_parts == 1


@pytest.mark.parametrize("at_once_max", [100_000, 0], ids=["at one moment", "piece by piece"])
def test_an_export_has_the_times_and_an_import_puts_them_back(client, monkeypatch, at_once_max):
    monkeypatch.setattr(redis_export, "AT_ONCE_MAX", at_once_max)
    run(client)
    packed = kept(client).exported()
    client.flushall()
    assert kept(client).put_back(packed, replaces=False) == 0
    assert left_of(client) == LEFT
    assert kept(client).exported() == packed
    assert kept(client).faults() == []


def test_what_expires_on_its_way_is_left_out(client):
    run(client)
    lines = [json.loads(line) for line in kept(client).exported().splitlines()]
    for line in lines:
        if "field_expires_ms" in line:
            line["field_expires_ms"] = 1
    client.flushall()
    kept(client).put_back(sealed(lines), replaces=False)
    assert left_of(client) == {b"a": LEFT[b"a"]}
    client.flushall()
    kept(client).put_back(
        sealed([line for line in lines if (line.get("state"), line.get("field")) != ("seen", "a")]), replaces=False
    )
    assert client.exists("{s}:seen") == 0
    assert len(client.hgetall("{s}:found")) == 4


def test_a_server_that_cannot_is_refused_before_anything_is_staged(client, redis_server_url, tmp_path, capsys):
    run(client)
    (tmp_path / "s.jsonl").write_bytes(kept(client).exported())
    with redis.Redis.from_url(redis_server_url) as other:
        other.flushall()
        status = txbatch("state", "import", "s", str(tmp_path / "s.jsonl"), "--redis", redis_server_url)
        if other.info("server")["redis_version"].startswith("7.0"):
            assert (status, other.keys("*")) == (4, [])
            assert "cannot have fields of a hash expire: it lacks HPEXPIREAT" in capsys.readouterr().err
        else:
            assert (status, left_of(other)) == (0, LEFT)


def test_a_write_between_the_values_and_their_times_is_noticed(client):
    run(client)
    records = kept(client).topology.records()
    times, seen = records.with_expiries, list[int]()

    def racing(piece: StoredPiece) -> StoredPiece:
        if not seen:
            seen.append(client.hincrby("{s}:txbatch:control", "revision", 1))
        return times(piece)

    records.with_expiries = racing  # type: ignore[method-assign]
    out = io.BytesIO()
    export_state(records, out)
    assert (len(seen), out.getvalue()) == (1, kept(client).exported())


def test_whoever_looks_at_entries_sees_when_they_go(client):
    run(client)
    records = kept(client).topology.records()
    chosen = chosen_state(records, "seen")
    lines = {line["field"]: line.get("field_expires_ms") for line in lines_of_state(records, chosen)}
    assert lines == {"a": None, "b": FAR_S * 1_000, "d": (FAR_S + 1) * 1_000}
    assert field_line(records, chosen, "d")["field_expires_ms"] == lines["d"]
    with pytest.raises(TopologyError, match="has no entry 'c'"):
        field_line(records, chosen, "c")


def test_that_fields_expire_is_part_of_what_is_declared():
    before, now = described(topology()), described(topology(Lasting()))
    (sentence,) = changes(before, now).states
    assert "expiry of its fields" in sentence
    assert (topology().fields_expire, topology(Lasting()).fields_expire, topology().expires) == (True, False, False)


def kept(client: Any) -> Sharded:
    return Sharded(client, 1, "s")


def sealed(lines: list[dict[str, Any]]) -> bytes:
    """An export of these lines, with an end that fits them."""
    out = io.BytesIO()
    writer = LineWriter(out)
    for line in lines[:-1]:
        writer.write(line)
    writer.end()
    return out.getvalue()
