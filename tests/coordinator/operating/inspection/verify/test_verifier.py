"""Each damage, planted alone on every backend, is found and named; what is sound is called sound, during a run too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.verifier import FINDS_NOT, Verifier
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from state.codec import pack
from state.errors import TopologyError
from state.metadata import MetadataSum
from state.redis_admin.all_records import RedisRecords
from state.redis_admin.topology import RedisTopology
from state.redis_client.connection import RedisConnection
from state.redis_client.function_library import STORED_FORMAT
from state.troubles import Trouble
from tests.support.stores.builders import dump
from tests.support.topologies.kept_states import TOPOLOGY_ID, kept_topology

CONTROL, METADATA, RECEIPTS, HISTORY = (
    f"{{kept}}:txbatch:{name}" for name in ("control", "metadata", "receipts", "history")
)
COUNTS = "{kept}:counts"

Damage = Callable[[Any], Any]


def renew_sum(client: Any) -> None:
    """Writes the checksum that fits the metadata, as software that means to hide a change would."""
    entries = {field.decode(): value for field, value in client.hgetall(METADATA).items()}
    client.hset(CONTROL, "metadata_sum", str(MetadataSum(entries)))


def and_renewed(damage: Damage) -> Damage:
    """The damage, with the checksum that fits it."""

    def damage_and_renew(client: Any) -> None:
        damage(client)
        renew_sum(client)

    return damage_and_renew


def altered(client: Any, txid: str, part: bytes, other: bytes) -> None:
    """Alters a receipt."""
    before = client.hget(RECEIPTS, txid)
    assert part in before
    client.hset(RECEIPTS, txid, before.replace(part, other))


def test_what_a_run_leaves_is_sound_and_verifying_changes_nothing(kept):
    verdict = kept.verify()
    assert verdict.is_sound
    assert {finding.weight for finding in verdict.findings} == {Weight.OK}
    assert (verdict.committed, verdict.can_and_cannot[1]) == (3, FINDS_NOT)
    said = {finding.subject: finding.found for finding in verdict.findings}
    assert said["metadata"].startswith("6 fields, 4 of them of transactions not committed yet")
    assert said["receipts"] == "complete from txid 1 to 3, published in 2 groups"
    assert said["keys"] == "11 keys, 7 of them declared states; types match, none expires"
    before = dump(kept.client)
    kept.verify()
    assert dump(kept.client) == before


@pytest.mark.parametrize(
    ("damage", "subject", "parts"),
    [
        (lambda c: c.hdel(METADATA, "coordinator:6"), "metadata", ["checksum over", "expected"]),
        (lambda c: c.hset(METADATA, "partition.0:3", pack([9, 9])), "metadata", ["checksum over"]),
        (lambda c: c.hset(METADATA, "surplus:9", pack(1)), "metadata", ["checksum over"]),
        (lambda c: c.hdel(RECEIPTS, "2"), "receipts", ["txids 2 have no receipt", "txid 3 is committed"]),
        (lambda c: c.hdel(HISTORY, "2"), "history", ["txids 2 have a receipt, and no record"]),
        (lambda c: c.delete(HISTORY), "history", ["txids 1, 2, 3 have a receipt, and no record"]),
        (lambda c: c.hset(HISTORY, "2", c.hget(HISTORY, "1")), "history", ["the record of txid 2 has receipt"]),
        (lambda c: c.hset(HISTORY, "2", "nonsense"), "history", ["the record of txid 2 cannot be read"]),
        (lambda c: c.delete(RECEIPTS), "receipts", ["txids 1, 2, 3 have no receipt"]),
        (lambda c: c.hset(RECEIPTS, "3", "nonsense"), "receipts", ["field '3' holds 'nonsense'"]),
        (lambda c: altered(c, "2", b" 1 2", b" 1 3"), "receipts", ["txids 1 and 2 are of one group", "differ"]),
        (lambda c: altered(c, "3", b" 3 3", b" 4 4"), "receipts", ["txids 4 to 4, which do not hold it"]),
        (lambda c: altered(c, "3", b" 3 3", b" 3 4"), "receipts", ["a group that ends at 4, but it is the last one"]),
        (lambda c: c.hset(CONTROL, "committed", "x"), "control", ["'committed'", "holds 'x', expected a whole number"]),
        (lambda c: c.hset(CONTROL, "committed", "2"), "receipts", ["txids 3 have a receipt"]),
        (lambda c: c.hset(CONTROL, "committed", "4"), "receipts", ["txids 4 have no receipt"]),
        (lambda c: c.hdel(CONTROL, "generation"), "control", ["'generation'", "32 hexadecimal digits"]),
        (lambda c: c.hset(CONTROL, "fence", "1:me"), "control", ["'fence'", "holds '1:me'"]),
        (lambda c: c.hset(CONTROL, "revision", "2"), "control", ["revision is 2, fewer writes than"]),
        (lambda c: c.hincrby(CONTROL, "begun", 1), "control", ["was applied over"]),
        (lambda c: c.hset(CONTROL, "format", "1"), "control", [f"stored format is '1', expected '{STORED_FORMAT}'"]),
        (lambda c: c.delete(CONTROL), "control", [f"key '{CONTROL}' is gone, and other keys"]),
        (lambda c: c.hset(CONTROL, "topology", "{"), "control", ["description '{' of the topology cannot be read"]),
        (lambda c: c.hdel(CONTROL, "source_fingerprint"), "control", ["fingerprint of the input is missing"]),
        (lambda c: c.hset(COUNTS, "word1", "many"), "values", ["field 'word1' holds 'many', not an integer"]),
        (lambda c: c.hset(COUNTS, "word1", "1.0"), "values", ["holds '1.0', not an integer"]),
        (lambda c: c.hset(COUNTS, "word1", str(2**53)), "values", [f"'{2**53}', outside ±{2**53 - 1}"]),
        (lambda c: c.hset(COUNTS, b"\xff", "1"), "values", ["is not valid UTF-8"]),
        (lambda c: c.hset("{kept}:by_length", "five", "1"), "values", ["field 'five' is not an integer"]),
        (lambda c: c.hset("{kept}:weights", "word1", "nan"), "values", ["holds 'nan', not a finite number"]),
        (lambda c: c.set("{kept}:last", b"\xff"), "values", ["it holds", "not valid UTF-8"]),
        (lambda c: c.sadd("{kept}:seen", b"\xff"), "values", ["is not valid UTF-8"]),
        (lambda c: c.zadd("{kept}:ranks", {"word1": float("inf")}), "values", ["holds 'inf', not a finite number"]),
        (lambda c: c.rpush("{kept}:log", b"\xff"), "values", ["it holds", "not valid UTF-8"]),
        (lambda c: c.pexpire(COUNTS, 90_000_000), "keys", ["keys expire: '{kept}:counts' in"]),
        (lambda c: c.pexpire(CONTROL, 90_000_000), "keys", ["keys expire: '{kept}:txbatch:control'"]),
        (lambda c: [c.delete(COUNTS), c.set(COUNTS, "x")], "keys", ["is a string, expected a hash"]),
        (lambda c: [c.delete(RECEIPTS), c.set(RECEIPTS, "x")], "keys", ["is a string, expected a hash"]),
        (lambda c: c.set("{kept}:theirs", "x"), "keys", ["1 key below", "has not declared: '{kept}:theirs', a string"]),
    ],
)
def test_each_damage_is_found_and_named(kept, damage: Damage, subject, parts):
    damage(kept.client)
    found = [finding for finding in kept.faults() if finding.subject == subject]
    assert found, kept.verify().findings
    for part in parts:
        assert part in " ".join(finding.found for finding in found)
    assert all(finding.why and finding.remedy for finding in found)


@pytest.mark.parametrize("name", ["pulse", "stories"])
def test_what_is_only_told_may_be_deleted(kept, name):
    kept.client.delete(f"{{kept}}:txbatch:{name}")
    kept.client.set(f"{{kept}}:txbatch:{name}", "x")
    assert (kept.fault().weight, kept.verify().is_sound) == (Weight.WARN, True)
    assert kept.fault().found == f"'{{kept}}:txbatch:{name}' is a string, expected a hash"
    assert kept.fault().remedy == "delete it; the next run writes it again"


def test_only_keys_of_others_leave_the_verdict_sound(kept):
    kept.client.set("{kept}:theirs", "x")
    assert kept.fault().weight is Weight.WARN
    assert kept.verify().is_sound
    kept.client.hset(COUNTS, "word1", "many")
    assert not kept.verify().is_sound


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (lambda c: c.hdel(METADATA, "coordinator:6"), "txid 6 is missing"),
        (lambda c: c.hset(METADATA, "partition.0:3", b"\xc1"), "metadata field 'partition.0:3' holds"),
        (lambda c: c.hset(METADATA, "surplus:9", pack(1)), "which no spout writes"),
        (lambda c: c.hdel(METADATA, "coordinator:3"), "metadata of txid 3 is missing"),
    ],
    ids=["pending", "unreadable", "surplus", "committed"],
)
def test_metadata_changed_with_its_checksum_is_found_where_the_chain_breaks(kept, damage: Damage, part):
    and_renewed(damage)(kept.client)
    found = [finding.found for finding in kept.faults()]
    assert any(part in each for each in found), found
    assert not any("checksum over" in each for each in found)


def other_receipt(client: Any) -> tuple[bytes, bytes]:
    """The last receipt, and one of another digest."""
    receipt = client.hget(RECEIPTS, "3")
    return receipt, (b"0" if receipt[:1] != b"0" else b"1") + receipt[1:]


def alter_receipt_and_history(client: Any) -> None:
    receipt, other = other_receipt(client)
    client.hset(RECEIPTS, "3", other)
    client.hset(HISTORY, "3", client.hget(HISTORY, "3").replace(receipt, other))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda c: c.delete("{kept}:log"), "keys, fields, members and items of a state that were deleted"),
        (lambda c: c.hset(COUNTS, "nobody", "1"), "fields, members and items of a state that were deleted or added"),
        (lambda c: c.hincrby(COUNTS, "word1", 1), "values replaced by others of their type (--refold does)"),
        (
            and_renewed(lambda c: c.hset(METADATA, "partition.0:3", pack([2, 4]))),
            "metadata altered together with its checksum",
        ),
        (alter_receipt_and_history, "a receipt altered alike in the history"),
        (lambda c: c.hset(HISTORY, "1", c.hget(HISTORY, "1").partition(b"\n")[0]), "altered metadata in the history"),
    ],
    ids=["key", "field", "value", "position", "receipt", "history"],
)
def test_what_the_short_check_cannot_find_is_not_found_as_it_says(kept, damage: Damage, words):
    """So that nobody relies on it."""
    before = dump(kept.client)
    damage(kept.client)
    assert dump(kept.client) != before
    verdict = kept.verify()
    assert (verdict.is_sound, words in verdict.can_and_cannot[1]) == (True, True), kept.faults()


def test_a_receipt_alone_in_its_group_that_was_altered_contradicts_the_history(kept):
    kept.client.hset(RECEIPTS, "3", other_receipt(kept.client)[1])
    assert "the record of txid 3 has receipt" in kept.fault().found


def test_a_topology_that_is_not_stored_is_a_mistake_of_the_caller(kept):
    other = RedisTopology("redis://fake", "other", client=kept.client)
    with pytest.raises(TopologyError, match="topology 'other' is not stored there") as raised:
        Verifier(other.records()).verify()
    assert raised.value.trouble is Trouble.UNKNOWN_TOPOLOGY


class MeddlingConnection(RedisConnection):
    """Lets a run commit before each piece of a scan."""

    meddle: Callable[[], None]

    def call(self, *arguments: str | bytes, timeout_s: float | None = None) -> Any:
        if str(arguments[0]).endswith("SCAN"):
            self.meddle()
        return super().call(*arguments, timeout_s=timeout_s)


class Meddling(RedisRecords):
    """Lets a run commit before each of its readings."""

    def __init__(self, read: RedisRecords, meddle: Callable[[], None]) -> None:
        connection = MeddlingConnection(read._connection.client, "in memory", timeout_s=1)
        connection.meddle = self._meddle = meddle
        super().__init__(connection, read.keys)

    def at_once(self, commands: Any) -> list[Any]:
        self._meddle()
        return super().at_once(commands)


def test_a_clean_state_is_called_clean_while_a_run_commits(kept, backend):
    with LocalCluster(seed=2) as cluster:
        cluster.client = backend.client()
        run = cluster.submit(kept_topology(), options=RunOptions(max_spout_pending=3, commit_group_max=1))
        committed: list[int] = []

        def commit_one() -> None:
            before = run.statistics.committed
            while run.statistics.committed == before and run.tick():
                pass
            committed.append(run.statistics.last_txid)

        verdict = Verifier(Meddling(kept.records, commit_one)).verify()
    assert committed[0] < committed[1] < committed[2]
    assert [finding for finding in verdict.findings if finding.weight is not Weight.OK] == []


def test_an_opaque_topology_is_sound_without_metadata_of_a_coordinator(backend):
    with LocalCluster(seed=1) as cluster:
        cluster.client = backend.client()
        cluster.submit(kept_topology(is_opaque=True)).run_until_idle()
        topology = RedisTopology("redis://fake", TOPOLOGY_ID, client=cluster.client)
        assert {f.weight for f in Verifier(topology.records()).verify().findings} == {Weight.OK}
