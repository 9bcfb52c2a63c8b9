"""A join gives each pair of rows of one key once, whichever comes first, however transactions are grouped."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from coordinator import FixedBatchesSpout, Stream, plan, prove, stream
from coordinator.sources import Inputs
from state import HashState, SetState, TopologyError, UserCodeError
from tests.support.approved import approved, refusals
from tests.support.topologies.short_forms import finished, kept, rows

WAITING = HashState("waiting", "json")


def both(orders: list[Any], payments: list[Any]) -> tuple[Stream, Stream]:
    """Two streams of one source, each in transactions of its own."""
    source = stream(
        Inputs(
            orders=FixedBatchesSpout(orders, ["id", "what"]),
            payments=FixedBatchesSpout(payments, ["id", "cents", "day"]),
        )
    )
    return source.output("orders"), source.output("payments")


def counted(joined: Stream) -> Stream:
    return joined.map(lambda *row: repr(row), to="row").count_by("row", into=HashState("pairs"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("waiting", [WAITING, HashState("waiting", bytes)], ids=["json", "bytes"])
def test_every_pair_is_made_once(seed: int, waiting: HashState[Any]) -> None:
    draw = Random(seed)

    def batches(make: Any) -> list[list[list[Any]]]:
        return [[make(number) for number in range(draw.randrange(5))] for _ in range(draw.randrange(1, 7))]

    orders = batches(lambda _: [draw.choice("abc"), draw.randrange(3)])
    payments = batches(lambda _: [draw.choice("abc"), draw.randrange(100), draw.choice(["mon", None])])
    left, right = both(orders, payments)
    expected = Counter(
        repr((key, what, cents, day))
        for batch in orders
        for key, what in batch
        for others in payments
        for other, cents, day in others
        if key == other
    )
    assert kept(counted(left.join(right, "id", into=waiting)).topology("joined"), "pairs") == expected


def test_keys_may_have_several_fields_and_rows_values_of_any_type() -> None:
    s = rows(
        "side who n amount", [["l", "ann", 1, Decimal("2.50")], ["r", "ann", 1, Decimal(3)]], [["r", "ann", 2, None]]
    )
    left = s.filter(lambda side: side == "l", of="side").map(lambda amount: [amount, date(2026, 11, 1)], of="amount")
    right = s.filter(lambda side: side == "r", of="side").drop("side").rename({"amount": "paid"})
    joined = left.drop("side").join(right, ["who", "n"], into=HashState("waiting", bytes, field=(str, int)))
    assert joined.take() == [{"who": "ann", "n": 1, "amount": [Decimal("2.50"), date(2026, 11, 1)], "paid": Decimal(3)}]


@pytest.mark.parametrize(
    ("drop_when", "pairs", "left_over"),
    [
        ("matched", 2, {"b": {"left": [["y"]], "right": []}}),
        (None, 4, {"a": {"left": [["x"], ["x2"]], "right": [[5, "d"], [9, "d"]]}, "b": {"left": [["y"]], "right": []}}),
    ],
    ids=["matched", "never"],
)
def test_rows_wait_until_they_are_dropped(drop_when: Any, pairs: int, left_over: dict[str, Any]) -> None:
    s = rows(
        "side id what cents day",
        [["o", "a", "x", 0, ""], ["o", "b", "y", 0, ""]],
        [["p", "a", "", 5, "d"]],
        [["o", "a", "x2", 0, ""], ["p", "a", "", 9, "d"]],
    )
    orders = s.filter(lambda side: side == "o", of="side").select(["id", "what"])
    payments = s.filter(lambda side: side == "p", of="side").select(["id", "cents", "day"])
    run = finished(counted(orders.join(payments, on="id", into=WAITING, drop_when=drop_when)).topology("joined"))
    assert sum(run.state("pairs").values()) == pairs
    assert run.state("waiting") == left_over


@pytest.mark.parametrize("cuts", [[1, 1, 1, 1], [2, 2], [3, 1], [4]])
def test_the_first_row_is_matched_with_the_first_however_transactions_are_cut(cuts: list[int]) -> None:
    events = iter([["o", "a", "x", 0], ["p", "a", "", 1], ["o", "a", "y", 0], ["p", "a", "", 2]])
    s = rows("side id what cents", *([next(events) for _ in range(size)] for size in cuts))
    orders = s.filter(lambda side: side == "o", of="side").select(["id", "what"])
    payments = s.filter(lambda side: side == "p", of="side").select(["id", "cents"])
    run = finished(counted(orders.join(payments, on="id", into=WAITING, drop_when="matched")).topology("joined"))
    assert run.state("pairs") == {"('a', 'x', 1)": 1, "('a', 'y', 2)": 1}
    assert run.state("waiting") == {}


def test_whatever_fails_leaves_the_same_pairs() -> None:
    left, right = both([[["a", 1], ["b", 2]], [["a", 3]]], [[["a", 5, "mon"]], [["a", 7, "tue"], ["b", 1, "wed"]]])
    joined = left.join(right, on="id", into=WAITING, drop_when="matched")
    proof = prove(counted(joined).topology("joined"), seeds=30)
    assert proof.holds, proof


def test_a_plan_shows_where_rows_wait() -> None:
    left, right = both([[["a", 1]]], [[["a", 2, "mon"]]])
    assert "{joined}:waiting (hash str -> json)" in str(
        plan(counted(left.join(right, on="id", into=WAITING)).topology("joined"))
    )


REFUSED = {
    "numbers": lambda a, b: a.join(b, "id", into=HashState("n")),
    "a set": lambda a, b: a.join(b, "id", into=SetState("n")),
    "no state": lambda a, b: a.join(b, "id", into=None),
    "parts": lambda a, b: a.join(b, "id", into=WAITING.per("what")),
    "a set for a key": lambda a, b: a.join(b, {"id"}, into=WAITING),
    "nothing to join with": lambda a, b: a.join(None, "id", into=WAITING),
    "itself": lambda a, b: a.join(a, "id", into=WAITING),
    "another source": lambda a, b: a.join(rows("id", [["a"]]), "id", into=WAITING),
    "an unknown key": lambda a, b: a.join(b, "day", into=WAITING),
    "a field of both": lambda a, b: a.join(b.rename({"day": "what"}), "id", into=WAITING),
    "a name without its old one": lambda a, b: a.rename(["id"]),
    "an unknown time to drop": lambda a, b: a.join(b, "id", into=WAITING, drop_when="paid"),
    "nothing kept": lambda a, b: a.join(b, "id", into=WAITING).topology("t"),
}


def test_what_cannot_be_joined_is_refused_with_the_line() -> None:
    cases = {name: lambda join=join: join(*both([[["a", 1]]], [[["a", 2, "x"]]])) for name, join in REFUSED.items()}
    approved(refusals(cases, TopologyError), "joins-that-are-refused")


def test_a_row_that_the_state_cannot_hold_names_the_join() -> None:
    left, right = both([[["a", date(2026, 11, 1)]]], [[["a", 2, "mon"]]])
    said = r"which join at .*test_joins.py:\d+ cannot keep as JSON: .*; give HashState\(.waiting., bytes"
    with pytest.raises(UserCodeError, match=said):
        left.join(right, "id", into=WAITING).take()
