"""Handles check what they are given, and reads see what this task has written."""

from __future__ import annotations

import pickle
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state import HashState, ListState, SetState, SortedSetState, StreamState, ValueState
from state.commits.packed_writes import unpacked
from state.commits.write_set import WriteSet
from state.errors import ProtocolError, StateRefusedError, TopologyError
from state.kinds import handles
from state.kinds.session import StateSession
from state.values.state_kind import MAX_INTEGER, VALUE_FIELD, StateKind, ValueType


def bind(committer, session):
    session.bind(committer, handles.declared_states(type(committer)))


class Stored:
    """A reader over a plain dict (name -> field -> bytes) that counts its round trips."""

    def __init__(self, **states):
        self.states, self.calls = states, []

    def read(self, name, kind, fields, as_of_txid):
        self.calls.append((name, kind, list(fields), as_of_txid))
        return [self.states.get(name, {}).get(field) for field in fields]


def opened(handle, reader=None, earlier=None):
    session = StateSession(reader)
    live = handle.bind(session)
    session.begin_group(7)
    session.open(earlier)
    return live, session


class TestDeclaration:
    def test_states_of_bases_are_found_and_may_be_replaced(self):
        class Base:
            a = HashState("a")
            b = ValueState("b")

        class Derived(Base):
            b = None  # type: ignore[assignment]
            c = SetState("c")

        assert sorted(handles.declared_states(Derived)) == ["a", "c"]

    def test_two_attributes_of_one_state_are_refused_whether_declared_or_given(self):
        class Twice(handles.GivenStates):
            a = HashState("same")
            b = ValueState("same")

        class Given(handles.GivenStates):
            a = HashState("same").per("day")

            def __init__(self):
                self.given_states = {"b": HashState("same")}

        for committer in (Twice, Given()):
            with pytest.raises(TopologyError, match=r"'same' is declared twice in (Twice|Given)"):
                handles.declared_states(committer)

    def test_an_instance_may_be_given_states_and_those_of_others_to_read(self):
        class Given(handles.GivenStates):
            a = HashState("a")

            def __init__(self):
                self.given_states = {"b": SetState("b")}
                self.read_states = {"c": HashState("c")}

        assert sorted(handles.declared_states(Given)) == ["a"]
        assert sorted(handles.declared_states(Given())) == ["a", "b"]
        assert sorted(handles.bound_states(Given())) == ["a", "b", "c"]

    def test_an_attribute_of_a_users_committer_is_its_own_whatever_its_name(self):
        class Own:
            a = HashState("a")

            def __init__(self):
                self.given_states, self.read_states = ["x"], {"b": 1}

        assert sorted(handles.bound_states(Own())) == ["a"]

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: HashState("a b"), "not a valid name"),
            (lambda: HashState("a", value=list), "declared as 'list'; use one of int, float, str, bytes"),
            (lambda: HashState("a", field=float), "field of state 'a' is declared as 'float'"),
            (lambda: SetState("a", value="float"), "member of state 'a' is declared as 'float'"),
            (lambda: ValueState("a", value=bool), "declared as 'bool'"),
            (lambda: HashState("a", field=(str,)), "is declared as a tuple of 1; give two types or more"),
            (lambda: SetState("a", (str, bytes)), "declared as 'bytes'; use one of str, int, date"),
            (lambda: HashState("a", field=(str, int)).prefetch("who"), "but its keys are tuples of str|int"),
            *(
                (lambda n=names: HashState("a").prefetch(*n), "names of the tuple fields")
                for names in ((), ("",), (3,))
            ),
            (lambda: HashState("a", value=dict), "'dict'; use one of int, float, str, bytes, Decimal, json"),
            (lambda: HashState("a", value=Decimal), "holds Decimals and is given scale None; give the digits"),
            (lambda: HashState("a", value=Decimal, scale=16), "is given scale 16"),
            (lambda: ValueState("a", value=Decimal, scale=True), "is given scale True"),
            (lambda: ListState("a", value=int, scale=2), "is given scale 2, which only Decimal values have"),
            (lambda: HashState("a").per("a b"), "part name of state 'a' 'a b' is not a valid name"),
            (lambda: HashState("a").per("day", float), "day of state 'a' is declared as 'float'; use one of str, int,"),
            (lambda: HashState("a").prefetch("b").per("day"), "state 'a' has parts and prefetches"),
            (
                lambda: HashState("txbatch").per("day"),
                "cannot have parts: keys of that form belong to txbatch",
            ),
            (lambda: HashState("a").per("day", expire_at=90), "expire_at of state 'a' is 90; give a function of the"),  # type: ignore[arg-type]
        ],
    )
    def test_unusable_declaration_is_refused(self, make, message):
        with pytest.raises(TopologyError, match=message):
            make()

    def test_a_handle_made_by_code_that_runs_says_that_it_has_to_be_declared(self):
        for made in (HashState("counts"), pickle.loads(pickle.dumps(HashState("counts")))):
            with pytest.raises(TopologyError, match=r"state 'counts' is not declared: HashState\('counts'\) was"):
                made.increment("a")
        with pytest.raises(TopologyError, match=r"write `seen = SetState\('seen'\)` in the class body"):
            SetState("seen").contains("a")

    def test_a_state_is_only_open_while_finish_batch_runs(self):
        class Store:
            counts = HashState("counts")

        store, session = Store(), StateSession()
        for handle in (Store.counts, store.counts):
            with pytest.raises(TopologyError, match="'counts' is open only in finish_batch"):
                handle.increment("a")
        bind(store, session)
        with pytest.raises(TopologyError, match="open only"):
            store.counts.increment("a")
        session.open()
        store.counts.increment("a")
        kept = store.counts.increment
        assert unpacked(session.close().states["counts"]).settled().increments == {"a": 1}
        with pytest.raises(TopologyError, match="open only"):
            kept("a")
        with pytest.raises(TopologyError, match="open only"):
            Store.counts.increment("a")

    def test_a_new_instance_takes_the_place_of_the_old(self):
        class Store:
            counts = HashState("counts")

        first, second, session = Store(), Store(), StateSession()
        bind(first, session)
        bind(second, session)
        session.open()
        second.counts.increment("a")
        with pytest.raises(TopologyError, match="open only"):
            first.counts.increment("a")
        assert unpacked(session.close().states["counts"]).settled().increments == {"a": 1}

    def test_slots_without_dict_are_refused(self):
        class Store:
            __slots__ = ()
            counts = HashState("counts")

        with pytest.raises(TopologyError, match="__slots__"):
            bind(Store(), StateSession())


class TestChecks:
    @pytest.mark.parametrize(
        ("field", "by", "error"),
        [
            (1, 1, TypeError),
            (b"a", 1, TypeError),
            (None, 1, TypeError),
            ("\ud800", 1, ValueError),
            ("a", True, TypeError),
            ("a", 1.0, TypeError),
            ("a", "1", TypeError),
            ("a", MAX_INTEGER + 1, ValueError),
            ("a", -MAX_INTEGER - 1, ValueError),
        ],
    )
    def test_increment_refuses_other_types(self, field, by, error):
        live, session = opened(HashState("counts"))
        with pytest.raises(error, match="state 'counts' was given"):
            live.increment(field, by)
        assert session.close().states == {}

    @pytest.mark.parametrize(
        ("handle", "value", "error"),
        [
            (HashState("s", value=int), True, TypeError),
            (HashState("s", value=int), 2**53, ValueError),
            (HashState("s", value=float), 1, TypeError),
            (HashState("s", value=float), float("nan"), ValueError),
            (HashState("s", value=float), float("inf"), ValueError),
            (HashState("s", value=str), b"x", TypeError),
            (HashState("s", value=str), "\udcff", ValueError),
            (HashState("s", value=bytes), bytearray(b"x"), TypeError),
        ],
    )
    def test_put_refuses_other_types(self, handle, value, error):
        live, _ = opened(handle)
        with pytest.raises(error, match="state 's' was given value"):
            live.put("f", value)

    @pytest.mark.parametrize("value", ["str", "json"])
    def test_text_cannot_be_incremented(self, value):
        live, _ = opened(HashState("s", value=value))
        with pytest.raises(TypeError, match=f"state 's' holds {value} values and cannot be incremented"):
            live.increment("f", 1)

    def test_fields_of_each_type(self):
        for field_type, field in ((str, "ä"), (int, -3), (bytes, b"\xff")):
            live, session = opened(HashState("s", field=field_type))
            live.increment(field)
            live.increment(field, 2)
            assert unpacked(session.close().states["s"]).settled().increments == {field: 3}

    def test_sorted_set_takes_whole_numbers_that_floats_equal_as_scores(self):
        live, session = opened(SortedSetState("z"))
        live.put("a", 3)
        live.put("large", 2**53 + 2)
        live.increment("b", 2**60)
        live.increment("b")
        state = unpacked(session.close().states["z"]).settled()
        assert (state.value_type, state.puts) == (ValueType.FLOAT, {"a": 3.0, "large": 2.0**53 + 2})
        assert state.increments == {"b": [2.0**60 + 1]}
        assert {*map(type, state.puts.values())} == {float}


class TestWrites:
    def test_floats_of_one_transaction_collapse_to_one_delta(self):
        live, session = opened(HashState("f", value=float))
        for delta in (0.1, 0.2, 0.3):
            live.increment("a", delta)
        assert unpacked(session.close().states["f"]).settled().increments == {"a": [0.1 + 0.2 + 0.3]}

    def test_increment_after_put_and_delete_is_a_put(self):
        live, session = opened(HashState("h"))
        live.put("a", 5)
        live.increment("a", 2)
        live.delete("b")
        live.increment("b", 2)
        live.increment("c")
        state = unpacked(session.close().states["h"]).settled()
        assert (state.puts, state.increments, state.deletes) == ({"a": 7, "b": 2}, {"c": 1}, {})

    def test_an_entry_of_a_stream_is_numbered_by_transaction_task_and_order(self):
        stream = StreamState("e", value=int)
        live, session = opened(stream)
        session.place = (7, 1)
        live.append({"a": 1, "b": 2})
        live.append({"a": 3})
        state = unpacked(session.close().states["e"])
        assert state.appends == [[7, 2**32, "a", 1, "b", 2], [7, 2**32 + 1, "a", 3]]

    @pytest.mark.parametrize(
        ("entry", "error", "message"),
        [
            ({}, ValueError, "state 'e' was given {} to append; give a mapping of 1 to 1,000 fields"),
            ([("a", 1)], ValueError, "give a mapping"),
            ({"a": "1"}, TypeError, "state 'e' was given value '1' of type str, but declares int"),
            ({1: 1}, TypeError, "state 'e' was given field 1 of type int, but declares str"),
        ],
    )
    def test_what_is_no_entry_of_a_stream_is_refused(self, entry, error, message):
        live, session = opened(StreamState("e", value=int))
        with pytest.raises(error, match=re.escape(message)):
            live.append(entry)
        assert session.close().states == {}


class TestReads:
    def test_read_sees_committed_then_earlier_then_own(self):
        earlier = WriteSet()
        earlier.state("h", StateKind.HASH, ValueType.INT).increments.update({"a": 10, "b": 1})
        earlier.state("h", StateKind.HASH, ValueType.INT).put("p", 5)
        earlier.state("h", StateKind.HASH, ValueType.INT).delete("d")
        reader = Stored(h={"a": b"100", "d": b"7", "p": b"8", "x": b"3"})
        live, session = opened(HashState("h"), reader, earlier)
        assert live.get_many(["a", "b", "p", "d", "x", "none"]) == {
            "a": 110,
            "b": 1,
            "p": 5,
            "d": None,
            "x": 3,
            "none": None,
        }
        assert reader.calls == [("h", StateKind.HASH, ["a", "b", "x", "none"], 7)]
        live.increment("a", 1)
        live.put("x", 4)
        live.delete("p")
        live.increment("d", 2)
        assert (live.get("a"), live.get("x"), live.get("p"), live.get("d")) == (111, 4, None, 2)
        assert session.reads == {("h", field) for field in ("a", "b", "p", "d", "x", "none")}

    def test_what_this_transaction_put_is_not_a_read(self):
        reader = Stored()
        live, session = opened(HashState("h"), reader)
        live.put("a", 1)
        assert live.get("a") == 1
        assert session.reads == set()
        assert reader.calls == []

    def test_what_an_earlier_transaction_put_is_a_read_without_a_round_trip(self):
        earlier = WriteSet()
        earlier.state("v", StateKind.VALUE, ValueType.STR).put(VALUE_FIELD, "x")
        reader = Stored()
        live, session = opened(ValueState("v", value=str), reader, earlier)
        assert live.get() == "x"
        assert session.reads == {("v", VALUE_FIELD)}
        assert reader.calls == []

    def test_floats_are_added_in_the_servers_order(self):
        earlier = WriteSet()
        earlier.state("f", StateKind.HASH, ValueType.FLOAT).increments["a"] = [0.2, 0.3]
        live, _ = opened(HashState("f", value=float), Stored(f={"a": b"0.1"}), earlier)
        live.increment("a", 0.4)
        assert live.get("a") == ((0.1 + 0.2) + 0.3) + 0.4

    def test_set_and_scores(self):
        live, session = opened(SetState("s"), Stored(s={"a": b"1", "b": b"1"}))
        live.remove("b")
        live.add("c")
        assert live.contains_many(["a", "b", "c", "d"]) == {"a": True, "b": False, "c": True, "d": False}
        assert live.contains("a")
        assert session.reads == {("s", "a"), ("s", "d")}
        scores, _ = opened(SortedSetState("z"), Stored(z={"a": b"1.5"}))
        scores.increment("a", 0.5)
        assert (scores.score("a"), scores.score("b")) == (2.0, None)

    @pytest.mark.parametrize(
        ("value", "stored", "message"),
        [(int, b"x1", "declared as int"), (float, b"", "declared as float"), (str, b"\xff", "declared as str")],
    )
    def test_stored_value_of_another_type_is_refused(self, value, stored, message):
        live, _ = opened(HashState("h", value=value), Stored(h={"a": stored}))
        with pytest.raises(StateRefusedError, match=message):
            live.get("a")

    def test_reading_without_a_reader_is_our_bug(self):
        live, _ = opened(HashState("h"))
        with pytest.raises(ProtocolError):
            live.get("a")

    def test_get_many_of_nothing_asks_nobody(self):
        reader = Stored()
        live, _ = opened(HashState("h"), reader)
        assert live.get_many([]) == {}
        assert reader.calls == []


steps = st.lists(
    st.tuples(st.sampled_from(["put", "increment"]), st.sampled_from("ab"), st.integers(-9, 9))
    | st.tuples(st.just("delete"), st.sampled_from("ab"), st.none()),
    max_size=12,
)


@given(steps, steps)
def test_reads_equal_a_plain_dictionary(before, now):
    model = {"a": 100}
    session = StateSession(Stored(h={"a": b"100"}))
    live = HashState("h").bind(session)
    earlier = WriteSet()
    for run in (before, now):
        session.open(earlier)
        for name, field, amount in run:
            if name == "put":
                live.put(field, amount)
                model[field] = amount
            elif name == "increment":
                live.increment(field, amount)
                model[field] = model.get(field, 0) + amount
            else:
                live.delete(field)
                model.pop(field, None)
            assert live.get_many(["a", "b"]) == {"a": model.get("a"), "b": model.get("b")}
        earlier.then(session.close())


BETWEEN = 2**53 + 1
"""The first integer between two floats."""


@pytest.mark.parametrize("number", [BETWEEN, -BETWEEN, 10**400], ids=["up", "down", "beyond"])
@pytest.mark.parametrize(
    ("handle", "call"),
    [
        (SortedSetState("z"), lambda live, number: live.put("a", number)),
        (SortedSetState("z", keep_highest=3), lambda live, number: live.put("a", number)),
        (SortedSetState("z"), lambda live, number: live.put_many(["a"], [number])),
        (SortedSetState("z"), lambda live, number: live.increment("a", number)),
        (SortedSetState("z"), lambda live, number: live.increment_many({"a": number})),
        (HashState("h", value=float), lambda live, number: live.increment("a", number)),
        (HashState("h", value=float), lambda live, number: live.increment_many(["a"], [number])),
        (ValueState("v", value=float), lambda live, number: live.increment(number)),
    ],
    ids=["put", "bounded", "put many", "increment", "increment many", "hash", "hash many", "value"],
)
def test_an_integer_that_no_float_equals_is_refused_not_rounded(handle, call, number):
    live, session = opened(handle)
    with pytest.raises(
        ValueError, match=r"was given (score|increment) (-?9007199254740993|of 1,329 bits), which no float equals"
    ):
        call(live, number)
    assert session.close().states == {}
