"""Values survive the codec with their types, and hostile bytes end in a CodecError."""

from __future__ import annotations

import contextlib
import datetime as dt
from decimal import Decimal

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.codec import MAX_NESTING, CodecError, digest64, pack, pack_exact, unpack
from tests.support.case_names import shown
from tests.support.values import nested, values


@given(values)
def test_value_comes_back_equal_and_of_its_type(value):
    restored = unpack(pack_exact(value))
    assert restored == value
    assert type(restored) is type(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_codec_error(data):
    with contextlib.suppress(CodecError):
        unpack(data)


@given(values, st.data())
def test_torn_bytes_never_come_back_as_the_value(value, data):
    packed = pack(value)
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(CodecError):
        unpack(packed[:cut])


def test_equal_sets_have_equal_bytes():
    assert pack({"a", "b", "c", "d"}) == pack({"d", "c", "b", "a"})


@pytest.mark.parametrize("value", [object(), {1: object()}, "\ud800", float, range(3)], ids=shown)
def test_what_cannot_be_packed_is_named(value):
    with pytest.raises(CodecError, match="cannot be sent or stored"):
        pack(value)


def test_deep_nesting_is_refused_in_both_directions():
    assert unpack(pack(nested(MAX_NESTING))) == nested(MAX_NESTING)
    for depth in (MAX_NESTING + 1, 3000):
        with pytest.raises(CodecError, match="nests more than"):
            pack(nested(depth))
    packed = msgpack.packb([])
    for _ in range(3000):
        packed = msgpack.packb([msgpack.ExtType(1, packed)])
    with pytest.raises(CodecError, match="nests more than"):
        unpack(packed)


def test_a_small_header_cannot_claim_a_huge_array():
    with pytest.raises(CodecError):
        unpack(b"\xdd\xff\xff\xff\xff")


@pytest.mark.case(id="P-14")
def test_a_value_that_would_come_back_otherwise_is_refused():
    with pytest.raises(CodecError, match="would be read back"):
        pack_exact(bytearray(b"x"))


def test_extension_contents_are_checked():
    for code, content in ((3, b"\xc0"), (2, b"x"), (5, b"never"), (7, b"x"), (99, b""), (3, pack([[1]]))):
        with pytest.raises(CodecError):
            unpack(msgpack.packb(msgpack.ExtType(code, content)))
    assert unpack(pack(dt.date(2024, 2, 29))) == dt.date(2024, 2, 29)
    assert unpack(pack(Decimal("1.10"))) == Decimal("1.10")


def test_digest_depends_on_where_parts_are_cut():
    assert digest64(b"ab", b"c") != digest64(b"a", b"bc")
    assert digest64(b"ab") == digest64(b"ab")
