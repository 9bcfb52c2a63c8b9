"""One key for each part: how parts are named, written, and when they expire."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state import HashState, SetState, ValueState
from state.errors import TopologyError
from state.keys import PART_LENGTH_MAX, Keys, member_name, split_member
from state.kinds.session import StateSession
from state.kinds.state_family import PartType, part_of_text, part_text
from tests.support.stores.written import written
from tests.support.values import Number

DAY = date(2026, 11, 21)


class Visits:
    """Declares states with parts of every type."""

    views = HashState("views").per("day", date, expire_at=lambda day: day + timedelta(days=90))
    seen = SetState("seen").per("customer")
    last = ValueState("last").per("shard", int)


def test_each_part_is_a_state_of_its_own_and_unused_ones_leave_nothing():
    def change(own):
        own.views[DAY].increment("/a")
        own.views[DAY].increment("/a", 2)
        own.views[DAY + timedelta(days=1)].put("/b", 7)
        own.seen["ö/x"].add("m")
        own.last[-3].put(5)
        own.last[4]  # looked at, and never written

    found = written(Visits(), change)
    assert {name: writes.increments or writes.puts for name, writes in found.items()} == {
        "views:2026-11-21": {"/a": 3},
        "views:2026-11-22": {"/b": 7},
        "seen:%C3%B6%2Fx": {"m": True},
        "last:-3": {"": 5},
    }


def test_whatever_names_a_part_there_is_one_handle_for_it():
    def change(own):
        by_number, by_name = own.hits[4], own.hits[Number(4)]
        assert by_name is by_number
        by_number.increment("/a")
        by_name.put("/a", 7)
        by_number.increment("/a")

    class Hits:
        hits = HashState("hits").per("shard", int)

    (writes,) = written(Hits(), change).values()
    assert (writes.puts, writes.increments) == ({"/a": 8}, {})


@pytest.mark.parametrize("part", [True, 1.0])
def test_a_part_is_refused_although_it_equals_one_that_is_open(part):
    session = StateSession()
    live = Visits.last.bind(session)
    session.open()
    live[1].put(5)
    with pytest.raises(TypeError, match="but declares int"):
        live[part]


def test_a_part_is_valid_while_its_transaction_is_open_and_no_longer():
    session, kept = StateSession(), []
    live = Visits.views.bind(session)
    session.open()
    kept.append(live[DAY])
    session.close()
    with pytest.raises(TopologyError, match="'views:2026-11-21' is open only in finish_batch"):
        kept[0].increment("/a")
    for handle in (live, Visits.views):
        with pytest.raises(TopologyError, match="'views' is open only in finish_batch"):
            handle[DAY]
    session.open()
    assert not session.close().states, "a part of an earlier transaction was opened again"


@pytest.mark.parametrize(
    ("state", "part", "error", "message"),
    [
        ("views", "2026-11-21", TypeError, "was given day '2026-11-21' of type str, but declares date"),
        ("views", datetime(2026, 11, 21, tzinfo=UTC), TypeError, "of type datetime, but declares date"),
        ("last", True, TypeError, "was given shard True of type bool, but declares int"),
        ("seen", 7, TypeError, "was given customer 7 of type int, but declares str"),
        ("seen", "", ValueError, "was given customer '', which is empty"),
        ("seen", "ö" * 100, ValueError, "takes 600 characters in a key, more than the limit of 200"),
        ("seen", "\ud800", ValueError, "which is not valid Unicode"),
    ],
    ids=["text for a date", "datetime", "bool", "int for text", "empty", "too long", "surrogate"],
)
def test_a_part_that_cannot_be_one_is_refused(state, part, error, message):
    with pytest.raises(error, match=message):
        written(Visits(), lambda own: getattr(own, state)[part])


def test_the_time_at_which_a_part_expires_travels_with_every_write():
    (writes,) = written(Visits(), lambda own: own.views[DAY].delete("x")).values()
    assert writes.retention.expires_ms == 1_802_995_200_000
    assert type(writes).from_wire(writes.to_wire()) == writes


def test_an_expiry_that_cannot_be_one_is_refused():
    class Once:
        views = HashState("views").per("day", date, expire_at=lambda day: None)  # type: ignore[arg-type, return-value]

    with pytest.raises(TypeError, match=r"returned None for day datetime\.date"):
        written(Once(), lambda own: own.views[DAY])


@given(st.text(min_size=1, max_size=20))
def test_every_part_is_read_back_from_its_key_and_no_two_share_one(part):
    try:
        name = member_name("views", part)
    except ValueError:
        return
    assert split_member(name) == ("views", part)
    key = Keys("wc").state(name)
    assert Keys("wc").state_name(key) == name
    assert name.count(":") == 1
    assert len(name) <= len("views:") + PART_LENGTH_MAX


@pytest.mark.parametrize("name", ["views", "views:", "views:%zz", "views:%2f", "views:a b", "txbatch:control:x"])
def test_what_is_not_spelled_as_a_part_is_none(name):
    assert split_member(name) == (name, None)


@pytest.mark.parametrize("part_type", list(PartType), ids=lambda part_type: part_type.value)
def test_typed_parts_are_spelled_one_way(part_type):
    part = {PartType.STR: "007", PartType.INT: -7, PartType.DATE: DAY}[part_type]
    assert part_of_text(part_text(part), part_type) == part
    if part_type is not PartType.STR:
        for odd in ("007", "2026-1-1", " 7", "x"):
            with pytest.raises(ValueError, match=r"."):
                part_of_text(odd, part_type)
