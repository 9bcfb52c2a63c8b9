"""Values that are equal to Python go to one task, whatever their type, order or time zone."""

# ruff: noqa: DTZ001 - datetimes in no time zone are among the values
from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coordinated_bolt.streams import canonical
from coordinated_bolt.streams.groupings import FieldsGrouping, PartialKeyGrouping
from state.codec import CodecError
from tests.support.case_names import shown
from tests.support.property_lengths import examples
from tests.support.values import Number

TASKS = 10_007
BERLIN, UTC = ZoneInfo("Europe/Berlin"), dt.UTC


def by_fields(*key):
    names = tuple(f"field{n}" for n in range(len(key)))
    chooser = FieldsGrouping(names).chooser(TASKS, names, 0)
    (one,), ((at_once, _),) = chooser.choose(list(key)), chooser.split([list(key)]).items()
    assert one == at_once
    return one


def by_partial_key(key):
    chooser = PartialKeyGrouping(("field",)).chooser(TASKS, ("field",), 0)
    return {chooser.choose([key])[0] for _ in range(2)}


EQUAL = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}),
    ([{"a": 1, "b": [{"c": 1, "d": 2}]}], [{"b": [{"d": 2, "c": 1}], "a": 1}]),
    ((1, {"a": 1, "b": 2}), (1, {"b": 2, "a": 1})),
    ({1: "x", 2: "y"}, {2.0: "y", True: "x"}),
    ({"a", "b", "c"}, frozenset({"c", "b", "a"})),
    ({1, 2.0}, {1.0, 2}),
    ({(1, 2.0)}, {(True, 2)}),
    (1, 1.0),
    (1, True),
    (0, False),
    (0.0, -0.0),
    (1, Decimal(1)),
    (Decimal("1.0"), Decimal("1.00")),
    (0, Decimal("-0.000")),
    (0.5, Decimal("0.50")),
    (100, Decimal("1E+2")),
    (-1200, Decimal("-1.2E+3")),
    (2**70, float(2**70)),
    (2**70, Decimal(2**70)),
    (10**1000, Decimal("1E+1000")),
    (Decimal("1E+999999"), Decimal("10E+999998")),
    (Decimal("0.1"), Decimal("0.10")),
    (math.inf, Decimal("Infinity")),
    (-math.inf, Decimal("-Infinity")),
    (3, Number(3)),
    ([1.0, [True, None]], [1, [1, None]]),
    (dt.datetime(2026, 7, 1, 12, tzinfo=UTC), dt.datetime(2026, 7, 1, 14, tzinfo=BERLIN)),
    (dt.datetime(2026, 7, 1, 12, tzinfo=UTC), dt.datetime(2026, 7, 1, 9, tzinfo=dt.timezone(dt.timedelta(hours=-3)))),
    (dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)),
    (dt.datetime(2026, 7, 1, 12), dt.datetime(2026, 7, 1, 12, fold=1)),
    (
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        dt.datetime(1, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    ),
]


@pytest.mark.parametrize(("one", "other"), EQUAL, ids=shown)
def test_equal_keys_go_to_one_task(one, other):
    assert one == other or isinstance(other, Number)
    assert by_fields(one) == by_fields(other)
    assert by_fields("a", one) == by_fields("a", other)
    assert by_partial_key(one) == by_partial_key(other)


@pytest.mark.parametrize(
    "nan", [math.nan, -math.nan, math.inf - math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("NaN123")], ids=shown
)
def test_whatever_is_not_a_number_goes_to_one_task(nan):
    assert by_fields(nan) == by_fields(math.nan)
    assert by_fields({"a": [nan]}) == by_fields({"a": [math.nan]})
    assert by_partial_key(nan) == by_partial_key(math.nan)


DIFFERENT = [
    "1",
    1,
    1.5,
    b"1",
    None,
    "",
    (),
    [1],
    (1, 2),
    (2, 1),
    {"a": 1},
    {"a": 2},
    {1},
    Decimal("0.1"),
    0.1,
    "nan",
    math.nan,
    Decimal("1E+999999"),
    Decimal("1E+999998"),
    dt.date(2026, 7, 1),
    dt.datetime(2026, 7, 1),
    dt.datetime(2026, 7, 1, tzinfo=UTC),
]


def test_different_keys_are_spread():
    assert len({by_fields(value) for value in DIFFERENT}) >= len(DIFFERENT) - 1  # "1" and 1 may share a task


def test_a_decimal_is_hashed_alike_whatever_the_context():
    expected = by_fields(Decimal("123456789.123456789"))
    with localcontext(prec=3) as context:
        context.traps = dict.fromkeys(context.traps, True)
        assert by_fields(Decimal("123456789.123456789")) == expected
        assert by_fields(Decimal("0.5")) == by_fields(0.5)


@pytest.mark.parametrize("value", [object(), Fraction(1, 3), 1 + 2j, [object()]], ids=shown)
def test_a_key_that_cannot_travel_is_refused(value):
    with pytest.raises(CodecError, match="cannot be sent or stored"):
        by_fields(value)


def test_a_key_that_holds_itself_is_refused():
    key: list[object] = []
    key.append(key)
    with pytest.raises(CodecError, match="flatten it"):
        by_fields(key)


numbers = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.decimals(allow_nan=False)
moments = st.datetimes(
    timezones=st.none() | st.sampled_from([BERLIN, UTC, ZoneInfo("Asia/Kolkata")]),
    min_value=dt.datetime(1990, 1, 1),
    max_value=dt.datetime(2040, 1, 1),
)
scalars = st.none() | numbers | st.text(max_size=3) | st.binary(max_size=3) | st.dates() | moments
keys = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(-2, 2) | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


def retyped(value, draw):
    """The same value to Python, said another way where there is one."""
    if isinstance(value, dict):
        items = [(retyped(key, draw), retyped(item, draw)) for key, item in value.items()]
        return dict(draw(st.permutations(items)))
    if isinstance(value, (list, tuple)):
        return type(value)(retyped(item, draw) for item in value)
    if isinstance(value, (int, float)) and math.isfinite(value):
        ways = [value, Decimal(value)]
        ways += [float(value)] if float(value) == value else []
        ways += [int(value)] if int(value) == value else []
        return draw(st.sampled_from(ways))
    if isinstance(value, dt.datetime) and value.tzinfo:
        return draw(
            st.sampled_from([value, value.replace(fold=0).astimezone(UTC), value.astimezone(UTC).astimezone(BERLIN)])
        )
    return value


@settings(max_examples=examples(60))
@given(keys, st.data())
def test_two_ways_to_say_one_key_go_to_one_task(key, data):
    other = retyped(key, data.draw)
    assume(key == other)
    assert by_fields(key) == by_fields(other)
    assert canonical.canonical_bytes([key, 1]) == canonical.canonical_bytes([other, True])
