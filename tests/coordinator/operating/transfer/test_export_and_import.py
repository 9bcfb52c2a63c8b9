"""What was exported is put back with its position, everything or nothing, and a run continues from there."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from coordinator.operating.transfer.importing import checked_export, import_state
from state.errors import FencedError, StateRefusedError, TopologyError
from state.redis_admin import exporting as redis_export
from state.redis_admin.all_records import RedisRecords
from state.redis_owner.store import RedisStore
from state.values.state_kind import StateKind
from tests.conftest import Backend
from tests.support.approved import approved
from tests.support.stores.builders import acquire, dump
from tests.support.topologies.sharded_topology import Sharded
from tests.support.topologies.typed_states import TOPOLOGY_ID, WORDS

pytestmark = pytest.mark.redis
GENERATION = "c" * 32
FIRST_EXPORT = Path(__file__).with_name("first_export.jsonl")
"""Five transactions of `typed_states` as txbatch exported them on 2026-11-22; never made anew."""
CONTROL = "{typed}:txbatch:control"


class Typed(Sharded):
    """The topology of `typed_states` on a real server."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend.client(), 1)

    def held(self) -> dict[bytes, Any]:
        """Everything but what is of one life of the topology."""
        found = dump(self.client)
        kind, control = found.pop(b"{typed}:txbatch:control")
        told = ("committed", "source_fingerprint", "topology", "metadata_sum", "format")
        return found | {b"control": (kind, {name: control[name.encode()] for name in told})}


@pytest.fixture
def typed(redis_backend: Backend) -> Typed:
    return Typed(redis_backend)


@pytest.mark.parametrize("at_once_max", [100_000, 0], ids=["at one moment", "piece by piece"])
def test_an_export_is_put_back_byte_for_byte_and_the_next_run_continues(typed, monkeypatch, at_once_max):
    monkeypatch.setattr(redis_export, "AT_ONCE_MAX", at_once_max)
    typed.run(5)
    before, packed = typed.held(), typed.exported()
    expiry = typed.client.pexpiretime("{typed}:views:2026-11-21")
    whole = typed.run()
    typed.client.flushall()
    assert typed.put_back(packed, replaces=False) == 0
    assert typed.held() == before
    assert typed.client.pexpiretime("{typed}:views:2026-11-21") == expiry == 4_102_444_800_000
    assert typed.client.pttl("{typed}:counts") == -1
    assert typed.exported() == packed
    assert typed.run() == whole
    assert len(list(typed.topology.dead_letters.all())) == 1


def test_an_export_of_the_first_version_that_made_any_is_put_back_and_its_run_continues(typed):
    packed = FIRST_EXPORT.read_bytes()
    assert typed.put_back(packed, replaces=False) == 0
    assert typed.faults() == []
    counts = Counter(WORDS)
    states = typed.run()
    assert (states["counts"], states["unique"]) == (counts, len(counts))
    assert states["money"] == {int(word[-1]): Decimal("0.35") * times for word, times in counts.items()}
    assert typed.faults() == []


@pytest.mark.parametrize("backend", ["valkey", "redis"], indirect=True)
def test_a_topology_that_was_put_back_is_verified_as_sound_before_and_after_its_next_run(backend):
    typed = Typed(backend)
    for last_txid in (1, 2, 3, 4, 5):
        typed.run(last_txid)
    packed = typed.exported()
    typed.client.flushall()
    for replaces in (False, True, True):
        typed.put_back(packed, replaces=replaces)
        assert typed.faults() == []
        typed.run(6)
        assert typed.faults() == []


def test_lines_are_typed_as_declared(typed):
    typed.run(2)
    typed.client.hset("{typed}:shares", b"odd", "1.50")
    first, *lines, last = [json.loads(line) for line in typed.exported().splitlines()]
    assert (first["txbatch"], first["version"], first["topology"]) == ("state", 1, "typed")
    assert first["control"]["committed"] == "2"
    assert last["end"]["lines"] == len(lines) + 2
    of_states = [json.dumps(line, ensure_ascii=False) for line in lines if "state" in line]
    approved("\n".join(sorted(of_states)), "export-of-typed-states")


def test_a_topology_that_exists_is_replaced_only_if_asked_and_its_run_is_fenced_out(typed):
    typed.run(5)
    packed = typed.exported()
    typed.run(7)
    store = RedisStore("redis://under-test", TOPOLOGY_ID, client=typed.client)
    found = store.look()
    assert found is not None
    acquire(store, topology=found.topology, source_fingerprint=found.source_fingerprint, accepted=found)
    typed.client.set("{typed}:last:99", "surplus")
    typed.client.hset(CONTROL, "durable_fsync", "7")
    before = dump(typed.client)
    with pytest.raises(TopologyError, match="'typed' exists; give --replace"):
        typed.put_back(packed, replaces=False)
    without = {key: held for key, held in dump(typed.client).items() if b":txbatch:import" not in key}
    assert without == before
    assert typed.put_back(packed) == len(before)
    assert not typed.client.exists("{typed}:last:99")
    assert not typed.client.hexists(CONTROL, "durable_fsync")
    assert not [key for key in typed.client.scan_iter() if b"import" in key]
    with pytest.raises(FencedError):
        store.store_metadata({"p:9": 1})


def without_line(packed: bytes, number: int) -> bytes:
    lines = packed.splitlines(keepends=True)
    del lines[number]
    return b"".join(lines)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda packed: without_line(packed, -1), "not a complete export"),
        (lambda packed: packed[: len(packed) // 2], "is not a JSON object|not a complete export"),
        (lambda packed: packed.replace(b'"value": "0.70"', b'"value": "0.71"'), "not a complete export"),
        (lambda packed: without_line(packed, 5), "not a complete export"),
        (lambda packed: packed.replace(b'"version": 1', b'"version": 9'), "the export has version 9, expected 1"),
        (lambda packed: packed.replace(b'"member": 6', b'"member": 6.5'), "6.5 is not a value of type int"),
        (lambda _: b'{"a": 1}\n', "line 1 of the export cannot be used"),
        (lambda _: b"", "not a complete export"),
    ],
    ids=["ends early", "is cut", "altered", "lacks a line", "other version", "other type", "something else", "empty"],
)
def test_a_file_that_is_not_whole_is_refused_before_the_server_is_asked(typed, damage, message) -> None:
    typed.run(2)
    damaged = damage(typed.exported())
    with pytest.raises(StateRefusedError, match=message):
        checked_export(io.BytesIO(damaged))


def test_an_import_that_ends_early_changes_nothing_and_the_next_one_cleans_up(typed):
    typed.run(5)
    packed = typed.exported()
    typed.run(7)
    before = typed.held()
    export, target = checked_export(io.BytesIO(packed)), typed.topology.importer()

    class KilledError(Exception):
        """The process ends here."""

    class Dying(io.BytesIO):
        def __iter__(self):
            for number, line in enumerate(packed.splitlines(keepends=True)):
                if number == 30:
                    raise KilledError
                yield line

    with pytest.raises(KilledError):
        import_state(target, export, Dying(), generation=GENERATION, replaces=True)
    found = typed.held()
    left = [key for key in found if key.startswith(b"{typed}:txbatch:import")]
    assert len(left) > 1
    assert {key: held for key, held in found.items() if key not in left} == before
    typed.put_back(packed)
    assert not [key for key in typed.held() if b"import" in key]


def test_a_server_that_has_lost_part_of_an_import_refuses_it(typed, monkeypatch):
    typed.run(5)
    packed = typed.exported()
    before = typed.held()
    target = typed.topology.importer()
    restore: Callable[..., int] = target.restore

    def after_a_loss(*arguments: Any, **more: Any) -> int:
        typed.client.hset("{typed}:txbatch:import", "calls", "3")
        return restore(*arguments, **more)

    monkeypatch.setattr(target, "restore", after_a_loss)
    with pytest.raises(StateRefusedError, match="has lost a part of this import; nothing was changed"):
        import_state(
            target, checked_export(io.BytesIO(packed)), io.BytesIO(packed), generation=GENERATION, replaces=True
        )
    assert {key: held for key, held in typed.held().items() if b"import" not in key} == before


@pytest.mark.parametrize(("times", "committed"), [(2, 4), (5, None)], ids=["rests in the end", "never rests"])
def test_what_is_read_piece_by_piece_is_of_one_transaction_or_refused(typed, monkeypatch, times, committed):
    monkeypatch.setattr(redis_export, "AT_ONCE_MAX", 0)
    typed.run(2)
    read, still = RedisRecords.entries, iter(range(3, 3 + times))

    def while_a_run_commits(records: RedisRecords, name: str, kind: StateKind) -> Any:
        last_txid = next(still, None) if name == "counts" else None
        if last_txid is not None:
            typed.run(last_txid)
        return read(records, name, kind)

    monkeypatch.setattr(RedisRecords, "entries", while_a_run_commits)
    if committed is None:
        with pytest.raises(StateRefusedError, match="was written during each of 5 readings"):
            typed.exported()
    else:
        assert checked_export(io.BytesIO(typed.exported())).committed_txid == committed


def test_a_topology_that_is_not_stored_cannot_be_exported_nor_laundered_after_half_a_write(typed):
    with pytest.raises(TopologyError, match="'typed' is not stored there"):
        typed.exported()
    """What was exported and put back would look sound."""
    typed.run(2)
    typed.client.hincrby(CONTROL, "begun", 1)
    with pytest.raises(StateRefusedError, match="'typed' is torn: restore its data from a copy taken at one"):
        typed.exported()


@pytest.mark.parametrize(
    ("at_once_max", "method"),
    [(100_000, "names_of"), (0, "names_of"), (0, "entries")],
    ids=["at one moment", "piece by piece", "between two pieces"],
)
def test_an_export_that_meets_an_import_is_not_of_both(typed, monkeypatch, at_once_max, method):
    """Each import begins with revision 1, so the revision alone does not tell one from the other."""
    monkeypatch.setattr(redis_export, "AT_ONCE_MAX", at_once_max)
    typed.run(1)
    early = typed.exported()
    typed.run()
    late = typed.exported()
    typed.put_back(early, replaces=True)
    ask, again = getattr(RedisRecords, method), iter([b"", late])

    def imported_then(records: RedisRecords, *given: Any) -> Any:
        found = list(ask(records, *given))
        if packed := next(again, None):
            typed.put_back(packed)
        return found

    monkeypatch.setattr(RedisRecords, method, imported_then)
    assert sorted(typed.exported().splitlines()[1:-1]) == sorted(late.splitlines()[1:-1])
