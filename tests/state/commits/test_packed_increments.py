"""Packed increments: what is packed is read back, and what several tasks packed is added up by every server."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.codec import pack, unpack
from state.commits.commit import CommitStatus
from state.commits.packed_writes import (
    SECTION_LIMIT,
    IncrementBlock,
    PackedWrites,
    increment_blocks,
    pack_integers,
    packed,
    unpack_integers,
    unpacked,
)
from state.commits.state_writes import OrderMattersError, StateWrites
from state.commits.write_set import WriteSet, compose
from state.values.state_kind import MAX_INTEGER, StateKind, ValueType
from tests.support.stores.builders import attempt, commit_of, writes

HASH, INT = StateKind.HASH, ValueType.INT
WIDE = 2**63
NAMES: dict[str, list[Any]] = {
    "text": ["", "a", "b", "ä", "日本", "x" * 127, "x" * 128, "x" * 40_000, "a b", "\n", "a\nb", "\nc"],
    "binary": [b"", b"a", b"\xff", b"\x00", b"ab", b"x" * 300],
    "numbers": [0, 1, -1, 10, 2**60],
}
AMOUNTS = [0, 1, -1, 127, 128, -128, -129, 32_767, -32_768, 32_768, 2**31, -(2**40), 2**40]

texts = st.text() | st.text("a\n", max_size=4)
fields = st.one_of(
    st.lists(texts, unique=True), st.lists(st.binary(), unique=True), st.lists(st.integers(), unique=True)
)


def restored(blocks: list[IncrementBlock]) -> list[tuple[Any, int]]:
    wire = unpack(pack(PackedWrites(blocks).to_wire()))
    return list(PackedWrites.from_wire(wire).items())


@given(st.lists(st.integers(-WIDE, WIDE - 1)))
def test_numbers_are_read_back_from_the_narrowest_width_that_holds_them(numbers):
    width, packed = pack_integers(numbers)
    assert list(unpack_integers(width, packed)) == numbers
    widest = max([0, *((number if number >= 0 else ~number).bit_length() + 1 for number in numbers)])
    assert width == (1 if widest <= 8 else 2 if widest <= 16 else 8)
    assert len(packed) == width * len(numbers)


def test_a_number_of_more_than_64_bits_is_not_packed():
    with pytest.raises(OverflowError):
        pack_integers([WIDE])


@given(fields, st.data())
def test_increments_are_read_back_in_order_with_their_types(names, data):
    amounts = {name: data.draw(st.integers(-MAX_INTEGER, MAX_INTEGER)) for name in names}
    found = restored(increment_blocks(amounts))
    assert found == list(amounts.items())
    assert [type(name) for name, _ in found] == [type(name) for name in amounts]


def test_a_block_holds_no_more_fields_than_a_section():
    blocks = increment_blocks(dict.fromkeys(range(2 * SECTION_LIMIT + 1), 1))
    assert [block.field_count for block in blocks] == [SECTION_LIMIT, SECTION_LIMIT, 1]


def block_writes(increments: dict[Any, int]) -> PackedWrites:
    return PackedWrites(increment_blocks(increments))


@given(st.lists(texts, unique=True), st.lists(texts, unique=True))
def test_blocks_are_joined_only_if_they_share_no_name_and_whenever_no_piece_of_one(mine, theirs):
    """Newlines are what the names are joined with: they may prevent that blocks are joined, and never the opposite."""
    joining, others = (block_writes(dict.fromkeys(names, 1)) for names in (mine, theirs))
    is_joined = joining.join(others)
    if is_joined:
        assert set(mine).isdisjoint(theirs)
        assert list(joining.fields()) == [*mine, *theirs]
    elif not any("\n" in name for name in [*mine, *theirs]):
        assert not set(mine).isdisjoint(theirs)


def test_a_third_task_is_compared_with_both_before_it():
    joining = block_writes({"a": 1})
    assert joining.join(block_writes({"b": 1}))
    assert not joining.join(block_writes({"c": 1, "b": 1}))
    assert not joining.join(block_writes({"c": 1, "a": 1}))
    assert joining.join(block_writes({"c": 1}))
    assert dict(joining.items()) == {"a": 1, "b": 1, "c": 1}


def sums(changes: dict[Any, int]) -> StateWrites:
    return writes(HASH, INT, increments=dict(changes))


@pytest.mark.parametrize(
    "changed",
    [
        writes(HASH, INT, increments={"a": 1}, puts={"b": 1}),
        writes(HASH, INT, increments={"a": 1}, deletes={"b": True}),
        writes(HASH, INT, increments={"a": 1}, overwritten={"b": 1}),
        writes(HASH, INT, increments={"a": 1, b"b": 1}),
        writes(HASH, INT, increments={"a": MAX_INTEGER + 1}),
        writes(HASH, INT, increments={"a": -MAX_INTEGER - 1}),
        writes(HASH, ValueType.FLOAT, increments={"a": [1.0]}),
        writes(StateKind.VALUE, INT, increments={"": 1}),
        writes(HASH, INT, puts={"a": 1}),
    ],
    ids=str,
)
def test_what_is_more_than_integers_added_to_fields_of_one_type_is_left_unpacked(changed):
    assert packed(changed) is changed


def test_packing_keeps_what_is_changed_and_how_far():
    changed = packed(sums({"a": 1, "b": -300}))
    assert isinstance(changed, PackedWrites)
    assert (changed.operations(), list(changed.fields()), changed.reach) == (2, ["a", "b"], 300)
    assert PackedWrites.from_wire(unpack(pack(changed.to_wire()))) == changed
    assert unpacked(changed) == sums({"a": 1, "b": -300})


part = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-300, 300), max_size=5)


@given(st.lists(st.tuples(part, st.booleans()), max_size=4), st.booleans())
def test_packed_and_unpacked_changes_compose_alike(parts, is_in_order):
    """Whichever parts are packed: equal sums and equal reach, and blocks only of fields that no other block has."""
    totals = plain, mixed = WriteSet(), WriteSet()
    for changes, is_packed in parts:
        joined = [WriteSet({"s": sums(changes)}), WriteSet({"s": sums(changes)})]
        if is_packed:
            joined[1].pack()
        for total, each in zip(totals, joined, strict=True):
            (total.then if is_in_order else total.merge)(each)
    names = list(mixed.fields({"s"}))
    assert len(names) == len(set(names))
    assert mixed.operations() == plain.operations()
    if parts:
        assert unpacked(mixed.states["s"]).moved() == unpacked(plain.states["s"]).moved()
        assert unpacked(mixed.states["s"]) == plain.states["s"]


def test_blocks_of_tasks_that_share_no_field_are_passed_on_as_they_are():
    parts = [block_writes({"a": 1}), block_writes({"b": 1}), block_writes({"c": 1})]
    blocks = [block for each in parts for block in each.blocks]
    total = WriteSet()
    for each in parts:
        total.merge(WriteSet({"s": each}))
    joined = total.states["s"]
    assert isinstance(joined, PackedWrites)
    assert list(map(id, joined.blocks)) == list(map(id, blocks))


def test_a_packed_increment_and_a_put_of_one_field_do_not_commute():
    total = WriteSet({"s": block_writes({"a": 1})})
    with pytest.raises(OrderMattersError):
        total.merge(WriteSet({"s": writes(HASH, INT, puts={"a": 1})}))


def random_part(random: Random) -> WriteSet:
    """What one task adds."""
    chosen = random.sample(sorted(NAMES), random.randint(1, 3))
    parts = {
        kind: {name: random.choice(AMOUNTS) for name in random.sample(NAMES[kind], random.randint(1, 3))}
        for kind in chosen
    }
    return WriteSet({kind: sums(changes) for kind, changes in parts.items()})


def name_of(field: Any) -> bytes:
    return field if isinstance(field, bytes) else str(field).encode()


def test_what_tasks_packed_is_added_up_whether_or_not_they_share_fields(store, client):
    """Against a plain sum: a server that is sent one field twice in a commit would lose an increment."""
    expected: dict[str, Counter[bytes]] = {kind: Counter() for kind in NAMES}
    shared = 0
    for txid in range(1, 201):
        random = Random(txid)
        total = WriteSet()
        for _ in range(random.randint(1, 4)):
            part = random_part(random)
            for kind, changed in part.states.items():
                for field, by in unpacked(changed).increments.items():
                    expected[kind][name_of(field)] += by
            if random.random() < 0.8:
                part.pack()
            total = compose([total, part]) if random.random() < 0.3 else joined(total, part)
        shared += sum(isinstance(state, StateWrites) for state in total.states.values())
        assert store.commit(commit_of(total, attempt(txid))).status is CommitStatus.OK
    assert shared > 20, "else the test would say nothing of shared fields"
    for kind, amounts in expected.items():
        held = {name: int(value) for name, value in client.hgetall(f"{{wc}}:{kind}").items()}
        assert held == dict(amounts)


def joined(total: WriteSet, part: WriteSet) -> WriteSet:
    total.merge(part)
    return total


def test_numbers_or_names_of_the_wrong_length_are_refused_before_anything_is_written(store, client):
    for damaged in (
        IncrementBlock("str", 2, 1, b"\x01\x01", b"a\nb", 1, b"\x01"),
        IncrementBlock("str", 2, 1, b"\x01\x01", b"a\nbc", 1, b"\x01\x01"),
        IncrementBlock("str", 2, 2, b"\x00\x01", b"a\nb", 1, b"\x01\x01"),
        IncrementBlock("str", 1, 1, b"\x01", b"a", *pack_integers([MAX_INTEGER + 1])),
    ):
        with pytest.raises(Exception, match="malformed"):
            store.commit(commit_of(WriteSet({"h": PackedWrites([damaged])})))
    assert client.exists("{wc}:h") == 0
