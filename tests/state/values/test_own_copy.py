"""What travels is copied if it could change, arrives as it was, and is refused if it cannot."""

# ruff: noqa: DTZ001 - datetimes in no time zone are among the values
from __future__ import annotations

import datetime as dt
import enum
from collections import Counter
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from state.codec import MAX_NESTING, CodecError, pack, pack_exact, unpack
from state.values.own_copy import MAX_DEPTH, own_copy
from tests.support.case_names import shown
from tests.support.values import Number, mutables, nested, values

BERLIN = ZoneInfo("Europe/Berlin")


class Colour(enum.IntEnum):
    RED = 1


class Foreign(dt.tzinfo):
    def utcoffset(self, moment):
        return dt.timedelta(hours=1)

    def dst(self, moment):
        return None

    def tzname(self, moment):
        return "foreign"


class Pair(NamedTuple):
    one: int


class Unspeakable:
    def __repr__(self):
        raise RuntimeError


@given(values)
def test_a_copy_is_equal_shares_nothing_that_can_change_and_travels(value):
    copy = own_copy(value)
    assert copy == value
    assert type(copy) is type(value)
    assert not {*map(id, mutables(copy))} & {*map(id, mutables(value))}
    assert unpack(pack_exact(copy)) == value


@pytest.mark.parametrize(
    "value",
    [(1, "a", (None, b"x")), Decimal("1.5"), dt.date(2026, 7, 1), "word", b"x", (dt.datetime(2026, 7, 1),)],
    ids=shown,
)
def test_what_cannot_change_is_not_copied(value):
    assert own_copy(value) is value


@pytest.mark.parametrize(
    ("value", "integer"),
    [
        (Number(3), 3),
        (Number(2**70), 2**70),
        (Colour.RED, 1),
        ([Number(3)], [3]),
        ({Colour.RED: (Number(3), 2)}, {1: (3, 2)}),
    ],
)
def test_what_stands_for_an_integer_becomes_one(value, integer):
    for copy in (own_copy(value), unpack(pack(value))):
        assert copy == integer
        assert repr(copy) == repr(integer)


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN),
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN),
        dt.datetime(2026, 7, 1, 12, 0, 0, 5, tzinfo=ZoneInfo("UTC")),
        dt.datetime(2026, 7, 1, 12, fold=1),
        dt.datetime(2026, 7, 1, 12, fold=1, tzinfo=dt.timezone(dt.timedelta(hours=-3, seconds=1))),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    ],
    ids=str,
)
def test_a_datetime_keeps_its_time_zone_and_its_fold(value):
    restored = unpack(pack_exact([value]))[0]
    assert restored == value
    assert (restored.fold, restored.isoformat()) == (value.fold, value.isoformat())
    assert type(restored.tzinfo) is type(value.tzinfo)
    assert str(restored.tzinfo) == str(value.tzinfo)
    assert restored + dt.timedelta(days=90) == value + dt.timedelta(days=90)


def test_a_datetime_of_an_older_version_is_read():
    assert unpack(b"\xc7\x13\x05" + b"2026-07-01T12:00:00") == dt.datetime(2026, 7, 1, 12)


def test_a_time_zone_this_machine_does_not_know_is_named():
    packed = pack(dt.datetime(2026, 7, 1, tzinfo=BERLIN)).replace(b"Europe/Berlin", b"Europe/Berlim")
    with pytest.raises(CodecError, match="time zone 'Europe/Berlim' is unknown on this machine; install"):
        unpack(packed)


@pytest.mark.parametrize(
    "key", [b"/etc/passwd!!", b"../../../etc/", b"Europe/\x00erlin", b"zone.tab\xff\xff\xff\xff\xff"]
)
def test_a_hostile_time_zone_is_a_codec_error(key):
    with pytest.raises(CodecError):
        unpack(pack(dt.datetime(2026, 7, 1, tzinfo=BERLIN)).replace(b"Europe/Berlin", key))


REFUSED = [
    (bytearray(b"x"), "bytearray; send bytes"),
    (memoryview(b"x"), "memoryview; send bytes"),
    (dt.timedelta(1), r"total_seconds\(\)"),
    (dt.time(1), r"isoformat\(\)"),
    (object(), "of type builtins.object; send one of None, bool, int"),
    (Counter("a"), "of type collections.Counter; send"),
    (Pair(1), "Pair"),
    (dt.datetime(2026, 7, 1, tzinfo=Foreign()), "time zone of type .*Foreign; use zoneinfo.ZoneInfo"),
    ("\ud800", "not valid Unicode at position 0"),
    (1j, "complex"),
    (Unspeakable(), "a value whose repr raised RuntimeError of type"),
]


@pytest.mark.parametrize(("value", "message"), REFUSED, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize(
    "wrap",
    [lambda v: v, lambda v: [v], lambda v: (1, [v]), lambda v: {"a": ["b", v]}],
    ids=["", "list", "tuple", "dict"],
)
def test_what_cannot_travel_is_named_with_what_to_send_instead(value, message, wrap):
    with pytest.raises(CodecError, match=message):
        own_copy(wrap(value))


def test_what_is_copied_is_never_too_deep_to_be_packed():
    lists: list[object] = []
    for _ in range(MAX_DEPTH - 1):
        lists = [lists]
    assert unpack(pack([[own_copy(lists)]])) == [[lists]]
    assert unpack(pack([[own_copy(nested(MAX_NESTING))]])) == [[nested(MAX_NESTING)]]
    for deep in ([[lists]], nested(MAX_NESTING + 1)):
        with pytest.raises(CodecError, match="flatten it"):
            own_copy(deep)
