"""A refold computes the state again from the input, and finds what no look at the stored state can find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.refold import (
    Runner,
    on_this_machine,
    refold,
    refuse_unrepeatable,
    scratch_server,
)
from coordinator.operating.inspection.verify.verifier import REFOLD_FINDS_NOT, Verification, Verifier
from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches
from coordinator.sources.files.line_files import TextFiles
from coordinator.sources.files.stores import input_file
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import EngineName, RunOptions
from state import HashState, ListState
from state.codec import pack
from state.errors import TopologyError, UserCodeError
from state.metadata import MetadataSum
from state.redis_admin.topology import RedisTopology
from tests.conftest import Backend
from tests.support.cli.in_process import txbatch
from tests.support.stores.builders import dump
from tests.support.topologies.components import Count, Lines, build
from tests.support.topologies.kept_states import LINES, TOPOLOGY_ID, KeepAll, kept_topology

pytestmark = pytest.mark.redis
CONTROL, METADATA = "{kept}:txbatch:control", "{kept}:txbatch:metadata"
LAST_TXID, WINDOW = 3, 5


def locally(topology: Topology, url: str, options: RunOptions, observers: Any = ()) -> None:
    """Runs a topology as a refold does, but in this process."""
    with LocalCluster(seed=9, redis_url=url) as cluster:
        cluster.submit(topology, options=options).run_until_idle()


def kept_with(keeping: KeepAll) -> Topology:
    """The topology, with another bolt that keeps its words."""
    spout, keep = kept_topology().components
    return replace(kept_topology(), components=(spout, replace(keep, spec=keeping)))


class Mails(KeepAll):
    external_effects = True


class Stored:
    """The topology as it was run up to `LAST_TXID`, with transactions that are cut and not committed."""

    def __init__(self, backend: Backend, topology: Topology | None = None) -> None:
        assert backend.url is not None
        self.url = backend.url
        self.client = backend.client()
        with LocalCluster(seed=1, redis_url=self.url) as cluster:
            run = cluster.submit(topology or kept_topology(), options=RunOptions(max_spout_pending=WINDOW))
            while run.statistics.last_txid < LAST_TXID:
                run.tick()

    @contextmanager
    def scratch(self) -> Iterator[str]:
        yield self.url

    def verify(
        self, topology: Topology | None = None, run_to: Runner = locally, server: Callable[[], Any] | None = None
    ) -> Verification:
        given = topology or kept_topology()
        again = partial(refold, topology=given, run_to=run_to, server=server or self.scratch)
        store = RedisTopology(self.url, TOPOLOGY_ID)
        try:
            return Verifier(store.records()).verify(given, again)
        finally:
            store.close()

    def faults(self, *given: Any, **more: Any) -> list[str]:
        found = [each for each in self.verify(*given, **more).findings if each.weight is Weight.FAIL]
        assert {each.subject for each in found} <= {"refold"}
        return [each.found for each in found]

    def fault(self, *given: Any) -> str:
        (found,) = self.faults(*given)
        return found


@pytest.fixture
def stored(redis_backend: Backend) -> Stored:
    return Stored(redis_backend)


def test_a_state_that_follows_from_its_input_is_equal_to_its_refold(stored):
    verdict = stored.verify()
    assert {finding.weight for finding in verdict.findings} == {Weight.OK}
    assert verdict.findings[-1].found == "recomputed up to txid 3: all 7 states are equal"
    assert verdict.can_and_cannot[1] == REFOLD_FINDS_NOT


@pytest.mark.parametrize(
    ("damage", "parts"),
    [
        (lambda c: c.delete("{kept}:counts"), ["'{kept}:counts' differs from its refold in 7 places", "holds nothing"]),
        (
            lambda c: c.hincrby("{kept}:counts", "word1", 5),
            ["'{kept}:counts' differs from its refold in 1 place:", "field 'word1' holds '7', expected '2'"],
        ),
        (lambda c: c.hset("{kept}:counts", "nobody", "1"), ["field 'nobody' holds '1', expected nothing"]),
        (lambda c: c.set("{kept}:last", "word9"), ["holds 'word9', expected 'word0'"]),
        (lambda c: c.delete("{kept}:last"), ["holds nothing, expected 'word0'"]),
        (lambda c: c.srem("{kept}:seen", "word3"), ["member 'word3' is missing"]),
        (lambda c: c.sadd("{kept}:seen", "nobody"), ["member 'nobody' is surplus"]),
        (lambda c: c.zincrby("{kept}:ranks", 1, "word1"), ["field 'word1' holds '3.0', expected '2.0'"]),
        (lambda c: c.rpush("{kept}:log", "word1"), ["item 'word1' is surplus"]),
        (lambda c: [c.lset("{kept}:log", 0, "word1"), c.lset("{kept}:log", 1, "word0")], ["order differs from item 0"]),
    ],
)
def test_what_was_changed_into_something_valid_is_found_and_named(stored, damage, parts):
    damage(stored.client)
    found = stored.fault()
    for part in parts:
        assert part in found


def test_where_replays_were_committed_nothing_is_claimed_of_a_refold_that_was_not_made(stored):
    entries = {field.decode(): value for field, value in stored.client.hgetall(METADATA).items()}
    entries["replayed:3"] = pack([1, 0])
    stored.client.hset(METADATA, "replayed:3", entries["replayed:3"])
    stored.client.hset(CONTROL, "metadata_sum", str(MetadataSum(entries)))
    verdict = stored.verify(kept_topology(), refuse_to_run)
    (warned,) = [finding for finding in verdict.findings if finding.weight is not Weight.OK]
    assert (warned.weight, warned.found) == (Weight.WARN, "the state was not recomputed")
    finds, finds_not = verdict.can_and_cannot
    assert "what the input gives" not in finds
    assert "replaced by others of their type (a refold does, and none was made)" in finds_not


def refuse_to_run(topology: Topology, url: str, options: RunOptions, observers: Any) -> None:
    raise AssertionError("a refold was made")


def test_a_position_altered_with_its_checksum_is_found(stored):
    stored.client.hset(METADATA, "partition.0:3", pack([2, 4]))
    entries = {field.decode(): value for field, value in stored.client.hgetall(METADATA).items()}
    stored.client.hset(CONTROL, "metadata_sum", str(MetadataSum(entries)))
    assert "metadata 'partition.0:3' differs; no state was compared" in stored.fault()


@pytest.mark.parametrize(
    ("lines", "size", "part"),
    [
        (LINES[:12], 5, "metadata 'partition.0:3' differs"),
        (LINES[:10], 5, "the input gives no more than txid 2, but txid 3 is committed"),
        (LINES, 4, "metadata 'partition.0:3' differs"),
    ],
)
def test_an_input_that_is_cut_differently_is_not_called_damage_of_a_state(stored, lines, size, part):
    said = stored.fault(kept_topology(lines, lines_per_batch=size))
    assert part in said
    assert "no state was compared" in said


def test_an_input_that_only_grew_is_told_and_the_states_are_compared(stored):
    findings = stored.verify(kept_topology([*LINES, "more"])).findings
    assert [f.weight for f in findings][-2:] == [Weight.WARN, Weight.OK]
    assert "the input has another fingerprint now" in findings[-2].found
    assert "all 7 states are equal" in findings[-1].found


def test_a_changed_bolt_is_found_where_its_states_differ(stored):
    class KeepLess(KeepAll):
        def finish_batch(self):
            self.words = [word for word in self.words if word != "word2"]
            super().finish_batch()

    found = stored.faults(kept_with(KeepLess()))
    assert any("'{kept}:counts'" in each and "field 'word2' holds '2', expected nothing" in each for each in found)


def test_a_topology_with_other_states_is_not_computed(stored):
    def never(*_: Any) -> None:
        raise AssertionError("it was run")

    findings = stored.verify(build(("count", Count(), ["lines"]), spout=Lines(3)), never).findings
    assert "the factory's topology has other states" in findings[-1].found
    assert findings[-1].weight is Weight.FAIL


@pytest.mark.parametrize(
    ("damage", "subject"),
    [
        (lambda c: c.hset(CONTROL, "committed", "x"), "control"),
        (lambda c: c.hset(METADATA, "nonsense", b"\xc1"), "metadata"),
        (lambda c: [c.delete("{kept}:log"), c.set("{kept}:log", "x")], "keys"),
        (lambda c: c.hdel("{kept}:txbatch:receipts", "2"), "receipts"),
    ],
)
def test_damaged_records_are_reported_before_anything_is_computed(stored, damage, subject):
    damage(stored.client)
    findings = stored.verify().findings
    assert [f.weight for f in findings if f.subject == "refold"] == [Weight.WARN]
    assert findings[-1].why == f"what is wrong with {subject} has to be repaired first"


def test_an_error_of_the_refold_is_the_users(stored):
    class Raises(KeepAll):
        def finish_batch(self):
            raise ValueError("broken")

    with pytest.raises(UserCodeError, match="broken"):
        stored.verify(kept_with(Raises()))


def test_a_refold_leaves_the_original_as_it_is_and_nothing_on_its_server(stored):
    before = dump(stored.client)
    asked: list[tuple[str, int | None, bool]] = []

    def noting(topology: Topology, url: str, options: RunOptions, observers: Any) -> None:
        asked.append((topology.topology_id, options.last_txid, options.notifies_spout))
        assert url != stored.url
        locally(topology, url, options)

    assert stored.verify(None, noting, scratch_server).is_sound
    assert asked == [("refold-kept", LAST_TXID, False)]
    assert dump(stored.client) == before


def test_a_scratch_server_is_gone_afterwards():
    with scratch_server() as url, redis.Redis.from_url(url) as client:
        assert client.dbsize() == 0
    with pytest.raises(redis.ConnectionError), redis.Redis.from_url(url) as client:
        client.ping()


@pytest.mark.parametrize(
    ("topology", "reason"),
    [
        (kept_with(Mails()), "committer 'keep' has external effects, which would happen again"),
        (kept_topology(is_opaque=True), r"spout 'words' \(OpaqueMemoryTransactionalSpout\) is opaque"),
        (
            build(("count", Count(), ["lines"]), spout=DataFrameBatches(object(), ["a"], ColumnRanges("a", 10))),
            r"spout 'lines' \(DataFrameBatches\) reads DataFrames",
        ),
    ],
)
def test_what_cannot_be_computed_twice_is_refused_by_name(topology: Topology, reason: str):
    with pytest.raises(TopologyError, match=f"cannot be refolded: {reason}"):
        refuse_unrepeatable(topology)


@pytest.mark.parametrize("master", ["spark://one:7077", "local-cluster[2,1,1024]", "yarn"])
def test_a_refold_runs_on_this_machine_only(master: str):
    with pytest.raises(TopologyError, match="the input is read again on this machine"):
        on_this_machine("module", master=master, conf={}, engine=EngineName.SPARK)


def of_files(folder: Path) -> Topology:
    return kept_topology_of(TextFiles(str(folder / "*.txt"), 5))


def kept_topology_of(spout: Any) -> Topology:
    class KeepLines(KeepAll):
        def execute(self, tup):
            self.words.append(tup["line"])

    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "lines", spout)
    builder.set_committer_bolt("keep", KeepLines()).global_grouping("lines")
    return builder.build()


@pytest.fixture
def stored_of_files(redis_backend: Backend, tmp_path: Path, monkeypatch) -> Stored:
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in LINES))
    monkeypatch.setattr(input_file, "RECENT_NS", 10**15)  # the file is young: its times are not relied upon
    stored = Stored(redis_backend, of_files(tmp_path))
    monkeypatch.setattr(input_file, "RECENT_NS", -(10**15))
    return stored


def test_a_file_that_is_only_older_or_was_copied_is_the_same_input(stored_of_files: Stored, tmp_path):
    """Red before: the times of the file are part of the stored metadata, and it was called another position."""
    (tmp_path / "copy").write_bytes((tmp_path / "words.txt").read_bytes())
    (tmp_path / "copy").replace(tmp_path / "words.txt")
    findings = stored_of_files.verify(of_files(tmp_path)).findings
    assert [finding for finding in findings if finding.weight is Weight.FAIL] == []
    assert "all 7 states are equal" in findings[-1].found


def test_a_file_that_grew_after_it_was_read_is_the_same_input_up_to_there(stored_of_files: Stored, tmp_path):
    with (tmp_path / "words.txt").open("a") as file:
        file.write("more\n")
    assert stored_of_files.verify(of_files(tmp_path)).is_sound


def test_a_file_with_other_words_of_the_same_length_is_another_input(stored_of_files: Stored, tmp_path):
    (tmp_path / "words.txt").write_text((tmp_path / "words.txt").read_text().replace("word1", "word2"))
    told = stored_of_files.fault(of_files(tmp_path))
    assert told.startswith("the input was cut differently, or holds other data now: metadata 'coordinator:3' differs")


class KeepLate(KeepAll):
    """A later version: two new states, and one that keeps less."""

    late, parts = HashState("late"), HashState("parts").per("length", int)
    log = ListState("log", keep_last=4)

    def finish_batch(self):
        super().finish_batch()
        for word in self.words:
            self.late.increment(word)
            self.parts[len(word)].increment(word)


def test_a_state_that_began_later_is_recomputed_from_there_and_one_that_changed_is_not_compared(stored, tmp_path):
    topology = kept_with(KeepLate())
    locally(topology, stored.url, RunOptions(last_txid=6, accept_state_changes=True))
    export = str(tmp_path / "kept.jsonl")
    for command in ([], ["export", TOPOLOGY_ID, "-o", export], ["import", TOPOLOGY_ID, export, "--replace"]):
        assert not command or txbatch("state", *command, "--redis", stored.url) == 0
        findings = stored.verify(topology, server=scratch_server).findings
        assert [str(finding) for finding in findings if finding.weight is Weight.FAIL] == []
        found = [finding.found for finding in findings if finding.subject == "refold"]
        assert found == [
            "'late' began at txid 4, and is recomputed from there",
            "'log' not compared: it is written as it is declared from txid 4 on",
            "'parts' began at txid 4, and is recomputed from there",
            "recomputed up to txid 6: all 8 states are equal",
        ]
