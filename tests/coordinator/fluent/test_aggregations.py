"""Every aggregation leaves what a plain loop over all rows leaves, at every number of tasks and size of groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from coordinator import LocalCluster, plan, stream
from coordinator.sources import JsonLines
from state import HashState, HyperLogLogState, SetState, SortedSetState, TopologyError, UserCodeError, ValueState
from tests.support.approved import approved, refusals
from tests.support.topologies.short_forms import finished, kept, rows

DRAW = Random(7)
EVENTS: list[list[Any]] = [[DRAW.choice("abcde"), DRAW.choice(["mon", "tue"]), DRAW.randrange(100)] for _ in range(200)]


def events():
    """Events with a page, a day and a number, twelve a transaction."""
    return rows("page day n", *(EVENTS[place : place + 12] for place in range(0, len(EVENTS), 12)))


def by_page(fold, initial=None):
    found: dict[str, int] = {}
    for page, _, n in EVENTS:
        found[page] = n if page not in found and initial is None else fold(found.get(page, initial), n)
    return found


def test_rows_are_counted_and_summed_into_every_kind_of_state_that_adds():
    s = events()
    s.count_by("page", into=HashState("counts")).sum_by("page", "n", into=HashState("sums", float))
    s.count_by("n", into=SortedSetState("ranked", int)).count_by(None, into=ValueState("count"))
    s.sum_by(None, "n", into=ValueState("sum"))
    assert kept(s.topology("added"), "counts", "sums", "ranked", "count", "sum") == {
        "counts": Counter(page for page, _, _ in EVENTS),
        "sums": by_page(lambda a, b: a + b),
        "ranked": Counter(n for _, _, n in EVENTS),
        "count": len(EVENTS),
        "sum": sum(n for _, _, n in EVENTS),
    }


def test_keys_of_several_fields_are_tuples_in_every_kind_of_state():
    one, two = date(2026, 11, 1), date(2026, 11, 2)
    s = rows("who what day n", [["ann", "a|p%7C", one, 5], ["bob", "a", one, 7]], [["ann", "a|p%7C", two, 3]])
    s.sum_by(["who", "what"], "n", into=HashState("sums")).sum_by(
        ["who", "day"], "n", into=SortedSetState("days", (str, date)).per("what")
    )
    s.max_by(["who", "what"], "day", into=HashState("last", date)).latest_by(
        ["who", "what"], "n", into=HashState("most", "json"), of="n"
    )
    s.top(1, ["who", "n"], by="n", into=SortedSetState("best", (str, int)))
    s.reduce_by(["what", "who"], lambda before, n: before + n, 0, into=HashState("folded"), of="n")
    first = s.distinct_by(["who", "what"], into=SetState("seen"))
    first.distinct_by(["who", "what"], into=HyperLogLogState("about"))
    first.count_by("day", into=HashState("new", field=date))
    ann, bob = ("ann", "a|p%7C"), ("bob", "a")
    assert kept(s.topology("several"), "sums", "days", "last", "most", "best", "folded", "seen", "about", "new") == {
        "sums": {ann: 8, bob: 7},
        "days": {"a|p%7C": {("ann", one): 5, ("ann", two): 3}, "a": {("bob", one): 7}},
        "last": {ann: two, bob: one},
        "most": {ann: {"n": 5}, bob: {"n": 7}},
        "best": {("bob", 7): 7},
        "folded": {ann[::-1]: 8, bob[::-1]: 7},
        "seen": {ann, bob},
        "about": 2,
        "new": {one: 2},
    }


def test_a_table_of_several_fields_is_looked_up_by_them():
    s = rows("who what n", [["ann", "a", 5], ["bob", "a", 7]], [["ann", "a", 3]])
    totals = HashState("totals")
    s.sum_by(["who", "what"], "n", into=totals)
    before = s.enrich(totals, by=["who", "what"], to="before", as_of="transaction")
    before.map(str, of="before").count_by("before", into=HashState("found"))
    assert kept(s.topology("looked"), "found") == {"None": 2, "5": 1}


def test_decimals_are_summed_exactly():
    paid = rows("who amount", [["ann", Decimal("0.1")], ["ann", Decimal("0.2")]], [["ann", Decimal(3)]])
    topology = paid.sum_by("who", "amount", into=HashState("paid", Decimal, scale=2)).topology("decimals")
    assert kept(topology, "paid") == {"ann": Decimal("3.30")}


def test_a_part_is_told_by_the_field_of_its_name():
    s = events()
    s.count_by("page", into=SortedSetState("views").per("day")).sum_by(None, "n", into=ValueState("sum").per("day"))
    s.max_by("page", "n", into=HashState("most").per("day"))
    views: dict[str, Counter[str]] = defaultdict(Counter)
    sums: Counter[str] = Counter()
    most: dict[str, dict[str, int]] = defaultdict(dict)
    for page, day, n in EVENTS:
        views[day][page] += 1
        sums[day] += n
        most[day][page] = max(n, most[day].get(page, n))
    assert kept(s.topology("parts"), "views", "sum", "most") == {"views": views, "sum": sums, "most": most}


def test_parts_expire_when_they_say():
    days = [date(2026, 11, 1), date(2999, 1, 1)]
    visits = rows("user day", [["ann", day] for day in days])
    kept_days = HashState("visits").per("day", date, expire_at=lambda day: day + timedelta(days=7))
    with LocalCluster() as cluster:
        run = cluster.submit(visits.count_by("user", into=kept_days).topology("expiring"))
        run.run_until_idle()
        expiry_ms = cluster.client.pexpiretime("{expiring}:visits:2999-01-01")
        assert expiry_ms == datetime(2999, 1, 8, tzinfo=UTC).timestamp() * 1000


def test_the_least_and_the_greatest_are_kept_across_transactions():
    s = events().min_by("page", "n", into=HashState("least")).max_by("page", "n", into=HashState("most"))
    s.max_by(None, "day", into=ValueState("day", str)).min_by(None, "n", into=ValueState("min"))
    assert kept(s.topology("extremes"), "least", "most", "day", "min") == {
        "least": by_page(min),
        "most": by_page(max),
        "day": "tue",
        "min": min(n for _, _, n in EVENTS),
    }


def test_the_latest_row_wins_whenever_it_arrives_and_ties_do_not_depend_on_the_order():
    moves = rows(
        "who at where", [["ann", 5, "x"], ["bob", 1, "y"]], [["ann", 3, "z"], ["bob", 1, "a"], ["bob", 0, "w"]]
    )
    moves.latest_by("who", "at", into=HashState("last", "json")).latest_by(None, "at", into=ValueState("any", "json"))
    moves.latest_by("who", "at", into=HashState("where", "json"), of="where")
    assert kept(moves.topology("latest"), "last", "where", "any") == {
        "last": {"ann": {"at": 5, "where": "x"}, "bob": {"at": 1, "where": "y"}},
        "where": {"ann": {"at": 5, "where": "x"}, "bob": {"at": 1, "where": "y"}},
        "any": {"who": "ann", "at": 5, "where": "x"},
    }


@pytest.mark.parametrize("member", [str, int, bytes])
def test_the_top_members_are_those_of_all_rows_with_equal_scores_as_the_state_ranks_them(member):
    named = [[member(n) if member is not bytes else str(n).encode(), page, n % 7] for page, _, n in EVENTS]
    scored = rows("member page score", *(named[place : place + 12] for place in range(0, len(named), 12)))
    scored.top(5, "member", by="score", into=SortedSetState("top", member))
    scored.top(2, "member", by="score", into=SortedSetState("tops", member).per("page"))

    def best(most, chosen):
        scores = {name: score for name, _, score in chosen}
        ranked = sorted(scores, key=lambda name: (scores[name], name if member is bytes else str(name).encode()))
        return {name: scores[name] for name in ranked[-most:]}

    assert kept(scored.topology("tops"), "top", "tops") == {
        "top": best(5, named),
        "tops": {page: best(2, [row for row in named if row[1] == page]) for page in "abcde"},
    }


def test_a_member_counts_with_its_best_score_and_takes_one_place():
    scored = rows("member score", [["a", 1], ["b", 9], ["b", 8], ["b", 7]], [["a", 5], ["c", 2], ["a", 0]])
    topology = scored.top(2, "member", by="score", into=SortedSetState("top", keep_highest=2)).topology("best")
    assert kept(topology, "top") == {"b": 9, "a": 5}


def test_what_was_distinct_is_kept_or_estimated():
    s = events()
    s.distinct_by("page", into=SetState("pages"))
    s.distinct_by("n", into=HyperLogLogState("n", int).per("day"))
    s.distinct_by("n", into=HyperLogLogState("all", int))
    found = kept(s.topology("distinct"), "pages", "all", "n")
    assert found["pages"] == {page for page, _, _ in EVENTS}
    assert found["all"] == pytest.approx(len({n for _, _, n in EVENTS}), abs=2)
    assert {*found["n"]} == {"mon", "tue"}


@pytest.mark.parametrize("per_day", [False, True])
def test_the_first_row_with_a_key_passes_once_and_is_seen_in_later_transactions(per_day):
    s = events()
    seen = SetState("seen").per("day") if per_day else SetState("seen")
    s.distinct_by("page", into=seen).count_by("page", into=HashState("firsts"))
    expected = Counter(dict.fromkeys("abcde", 2 if per_day else 1))
    assert kept(s.topology("firsts"), "firsts") == expected


def test_all_rows_may_pass_with_whether_they_were_the_first():
    s = events().distinct_by("page", into=SetState("seen"), to="is_first")
    s.map(str, of="is_first").count_by("is_first", into=HashState("deliveries"))
    assert kept(s.topology("marked"), "deliveries") == {"True": 5, "False": 195}


def test_rows_are_reduced_one_after_the_other_also_behind_steps():
    s = events().reduce_by("page", lambda total, n: total * 31 % 1009 + n, 1, into=HashState("hashes"), of="n")
    topology = s.topology("reduced")
    expected = by_page(lambda total, n: total * 31 % 1009 + n, 1)
    assert [finished(topology, group=group).state("hashes") for group in (1, 3, 64)] == [expected] * 3
    behind = events().map(lambda n: -n, to="less", of="n")
    behind.reduce_by("page", lambda total, less: total + less, 0, into=HashState("sums"), of="less")
    assert kept(behind.topology("behind"), "sums") == by_page(lambda a, b: a - b, 0)


def appended(so_far, n):
    so_far.append(n)
    return so_far[-2:]


def test_each_key_begins_with_a_copy_of_the_initial_value():
    s = rows("page n", [["a", 1], ["b", 2]], [["a", 3], ["a", 4]])
    s.reduce_by("page", appended, [0], into=HashState("last", "json"), of="n")
    run = finished(s.reduce_by(None, max, 0, into=ValueState("most"), of="n").topology("copies"))
    assert (run.state("last"), run.state("most")) == ({"a": [3, 4], "b": [0, 2]}, 4)


def not_of_three(page):
    return page if page != "c" else None


UNFIT = {
    "a text to be summed": lambda s: s.sum_by("page", "day", into=HashState("h")),
    "a number for a key of texts": lambda s: s.count_by("n", into=HashState("h")),
    "None for a key": lambda s: s.map(not_of_three, of="page").count_by("page", into=HashState("h")),
    "a key of one field twice": lambda s: s.count_by(["page", "page"], into=HashState("h")),
    "a number in a key of texts": lambda s: s.count_by(["page", "n"], into=HashState("h")),
    "one field for keys of two": lambda s: s.count_by("page", into=HashState("h", field=(str, int))),
    "None for a reduced key": lambda s: s.map(lambda n: None, of="n").reduce_by(
        "n", max, 0, into=HashState("h", field=int), of="n"
    ),
    "a key for a value": lambda s: s.sum_by("page", "n", into=ValueState("h").per("day", int)),
    "a function that raises": lambda s: s.reduce_by("page", lambda q, n: q // (n - n), 8, into=HashState("q"), of="n"),
    "a function that returns another type": lambda s: s.reduce_by(
        "page", lambda _, page, day, n: 0.5, 0, into=HashState("h")
    ),
    "an empty part": lambda s: s.map(lambda n: "", of="n").sum_by(None, "n", into=ValueState("sum").per("n")),
    "a long part": lambda s: s.map(lambda n: "x" * 300, of="n").sum_by(None, "n", into=ValueState("sum").per("n")),
}


def test_values_that_do_not_fit_name_the_step_and_the_row():
    cases = {name: lambda keep=keep: finished(keep(events()).topology("unfit")) for name, keep in UNFIT.items()}
    approved(refusals(cases, UserCodeError, TopologyError), "values-that-do-not-fit")


def test_rows_are_enriched_by_what_the_transactions_before_have_left():
    balances = HashState("balances")
    s = rows("who n", [["ann", 5], ["ann", 2]], [["ann", 1], ["bob", 7]], [["bob", 1]])
    seen = s.enrich(balances, by="who", to="had", as_of="transaction")
    s.sum_by("who", "n", into=balances)
    seen.map(str, of="had").map(lambda who, n, had: f"{who} {n} {had}", to="row").count_by(
        "row", into=HashState("rows")
    )
    topology = s.topology("enriched")
    expected = ["ann 5 None", "ann 2 None", "ann 1 7", "bob 7 None", "bob 1 7"]
    assert kept(topology, "balances", "rows") == {"balances": {"ann": 8, "bob": 8}, "rows": Counter(expected)}


def test_a_lookup_finds_the_part_by_the_field_of_its_name():
    s = rows("who day n", [["ann", "mon", 5]], [["ann", "tue", 1], ["ann", "mon", 2]])
    sums = HashState("sums").per("day")
    s.enrich(sums, by="who", to="had", as_of="transaction").filter(lambda had: had is not None, of="had").count_by(
        "had", into=HashState("had", field=int)
    )
    s.sum_by("who", "n", into=sums)
    assert kept(s.topology("looked"), "had") == {5: 1}


MISTAKEN = {
    "of what nothing writes": lambda s: s.enrich(HashState("h"), by="page", to="x"),
    "of other types": lambda s: s.enrich(HashState("c", str), by="page", to="x"),
    "in a set": lambda s: s.enrich(SetState("c"), by="page", to="x"),
    "to a field that exists": lambda s: s.enrich(HashState("c"), by="page", to="day"),
    "by a field that is unknown": lambda s: s.enrich(HashState("c"), by="x", to="y"),
    "the top 5 of 3": lambda s: s.top(5, "page", by="n", into=SortedSetState("t", keep_highest=3)),
    "the top 5 of the lowest": lambda s: s.top(5, "page", by="n", into=SortedSetState("t", keep_lowest=5)),
    "the top 0": lambda s: s.top(0, "page", by="n", into=SortedSetState("t")),
    "after an estimate": lambda s: s.distinct_by("page", into=HyperLogLogState("p")).count_by(
        "page", into=HashState("x")
    ),
}


def test_lookups_that_could_find_nothing_other_limits_and_first_rows_of_an_estimate_are_refused():
    def make(keep):
        keep(events().count_by("page", into=HashState("c"))).topology("t")

    cases = {name: lambda keep=keep: make(keep) for name, keep in MISTAKEN.items()}
    approved(refusals(cases, TopologyError), "lookups-that-are-refused")


def test_a_plan_says_that_a_lookup_reads_state():
    counts = HashState("counts")
    s = events().count_by("page", into=counts)
    s.enrich(counts, by="page", to="before", as_of="transaction").count_by("before", into=HashState("x"))
    assert "enrich_page reads state" in str(plan(s.topology("looking")))


def test_a_committer_that_is_given_nothing_writes_nothing():
    topology = events().count_by("page", into=HashState("counts")).topology("nothing")
    keeper: Any = topology.component("counts").spec
    keeper.prepare({}, None, None, None)
    keeper.finish_batch()
    assert "state" not in vars(keeper)


def test_decimals_of_one_batch_are_added_without_rounding():
    given = rows(
        "key price",
        [["a", Decimal("9e13")], ["a", Decimal("9e13")], ["a", Decimal("0.01")], *2 * [["a", Decimal("-9e13")]]],
    )
    given.sum_by("key", "price", into=HashState("sums", Decimal, scale=2))
    given.sum_by(None, "price", into=ValueState("total", Decimal, scale=2))
    run = finished(given.topology("prices"))
    assert (run.state("sums"), run.state("total")) == ({"a": Decimal("0.01")}, Decimal("0.01"))


def yields(number):
    if number > 0:
        yield number


async def has_to_be_awaited(number):
    return number > 0


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("positive", [yields, has_to_be_awaited])
def test_a_filter_that_yields_or_has_to_be_awaited_is_refused(positive):
    given = rows("number", [[1], [-1]]).filter(positive).count_by("number", into=HashState("counts", field=int))
    with pytest.raises(UserCodeError, match="return True or False, without a yield or async"):
        finished(given.topology("positive"))


def in_both_orders(*values):
    """Each order of the values, of one key: in one transaction, and one transaction after the other."""
    return [
        given
        for order in (values, values[::-1])
        for given in ([[["k", each] for each in order]], [[["k", each]] for each in order])
    ]


KEEP = {
    "max": lambda s: s.max_by("k", "x", into=HashState("kept", float)),
    "min": lambda s: s.min_by("k", "x", into=HashState("kept", float)),
    "latest": lambda s: s.latest_by("k", "x", into=HashState("kept", "json")),
    "top": lambda s: s.top(2, "k", by="x", into=SortedSetState("kept")),
    "max of Decimals": lambda s: s.max_by("k", "x", into=HashState("kept", Decimal, scale=1)),
    "max of all": lambda s: s.max_by(None, "x", into=ValueState("kept", float)),
    "min of parts": lambda s: s.min_by(None, "x", into=ValueState("kept", float).per("k")),
}


@pytest.mark.parametrize("keep", [*KEEP])
def test_what_is_not_a_number_is_refused_in_any_order(keep):
    number = Decimal if "Decimal" in keep else float
    for batches in in_both_orders(number(5), number("nan")):
        with pytest.raises(UserCodeError, match=r"(?is)field 'x' is .*nan.*_by at .*cannot take|top at .*cannot take"):
            finished(KEEP[keep](rows("k x", *batches)).topology("numbers"))


@pytest.mark.parametrize("keep", [*KEEP])
def test_a_row_without_the_value_to_compare_is_a_dead_letter_in_any_order(keep):
    number = Decimal if "Decimal" in keep else float
    for batches in in_both_orders(number(5), None):
        run = finished(KEEP[keep](rows("k x", *batches)).topology("gaps"))
        (letter,) = run.dead_letters()
        assert (letter["x"], "which cannot be compared" in letter.reason) == (None, True)
        assert "5" in str(run.state("kept"))


COUNTS = HashState("n", field=int)
KEYED = {
    "count_by": lambda s: s.count_by("x", into=HashState("n", field=int)),
    "distinct_by": lambda s: s.distinct_by("x", into=SetState("n", int)).count_by(None, into=ValueState("m")),
    "top": lambda s: s.key_by(lambda k: 1, "one", of="k").top(3, "x", by="one", into=SortedSetState("n", int)),
    "sum_by": lambda s: s.map(lambda k: 1, of="k", to="k").sum_by("x", "k", into=SortedSetState("n", int)),
    "reduce_by": lambda s: s.reduce_by("x", lambda total, k, x: total + 1, 0, into=HashState("n", field=int)),
    "parts": lambda s: s.count_by("k", into=HashState("n").per("x", int)),
    "enrich": lambda s: (
        s.map(lambda k: 1, of="k")
        .count_by("k", into=COUNTS)
        .enrich(COUNTS, by="x", to="had", as_of="transaction")
        .count_by(None, into=ValueState("m"))
    ),
}


@pytest.mark.parametrize("keep", [*KEYED])
@pytest.mark.parametrize("other", [True, 1.0, Decimal(1), None, 2**53])
def test_a_key_that_only_equals_a_valid_one_is_refused_in_any_order(keep, other):
    if (keep, other) == ("parts", 2**53):
        return  # parts are no numbers to the server
    for batches in in_both_orders(1, other):
        with pytest.raises(UserCodeError, match=r"(?s)given (field|member|x) .*, (but declares int|outside)"):
            finished(KEYED[keep](rows("k x", *batches)).topology("keys"))


@pytest.mark.parametrize(
    ("keep", "values"),
    [
        (lambda s: s.sum_by("k", "x", into=HashState("n")), (1, True)),
        (lambda s: s.sum_by("k", "x", into=HashState("n", float)), (1.0, True)),
        (lambda s: s.sum_by("k", "x", into=SortedSetState("n")), (1, True)),
        (lambda s: s.sum_by(None, "x", into=ValueState("n")), (2**60, -(2**60))),
        (lambda s: s.sum_by("k", "x", into=HashState("n", float)), (1.0, float("inf"))),
        (lambda s: s.sum_by("k", "x", into=HashState("n", Decimal, scale=2)), (Decimal("0.005"), Decimal("0.005"))),
        (lambda s: s.sum_by("k", "x", into=HashState("n", Decimal, scale=2)), (Decimal(1), Decimal("1E+400000000"))),
        (lambda s: s.max_by("k", "x", into=HashState("n", Decimal, scale=2)), (Decimal(5), Decimal("1.234"))),
        (lambda s: s.min_by("k", "x", into=HashState("n")), (5, True)),
        (lambda s: s.latest_by(None, "k", into=ValueState("n", "json"), of="x"), (1, float("nan"))),
        (lambda s: s.latest_by(None, "k", into=ValueState("n", "json"), of="x"), ("a", b"a")),
        (lambda s: s.latest_by("k", "x", into=HashState("n", "json")), (1, "1")),
        (lambda s: s.latest_by("k", "x", into=HashState("n", "json")), ([1], ["1"])),
    ],
)
def test_a_value_that_would_be_refused_alone_is_refused_whatever_others_there_are(keep, values):
    for batches in in_both_orders(*values):
        with pytest.raises(UserCodeError, match=r"(?s)x.*(_by at .* cannot take|to values of one type)"):
            finished(keep(rows("k x", *batches)).topology("values"))


@pytest.mark.parametrize(
    ("keep", "equal"),
    [
        (lambda s: s.min_by("k", "x", into=HashState("kept", float)), (0.0, -0.0)),
        (lambda s: s.max_by("k", "x", into=HashState("kept", float)), (0.0, -0.0)),
        (lambda s: s.latest_by("k", "x", into=HashState("kept", "json")), (True, 1)),
        (lambda s: s.latest_by("k", "x", into=HashState("kept", "json")), (1, 1.0)),
        (lambda s: s.latest_by("k", "x", into=HashState("kept", "json")), (0.0, -0.0)),
    ],
)
def test_which_of_equal_values_stays_does_not_depend_on_the_order(keep, equal):
    found = {repr(kept(keep(rows("k x", *batches)).topology("equal"), "kept")) for batches in in_both_orders(*equal)}
    assert len(found) == 1


TYPED = {"id": int, "name": str, "cents": int | None, "rate": float, "paid": bool}


UNTYPED = {
    "an int for a str": lambda s: s.count_by("id", into=HashState("h")),
    "a str for an int": lambda s: s.count_by("name", into=HashState("h", field=int)),
    "a float for an int": lambda s: s.distinct_by("rate", into=SetState("h", int)),
    "an int for a part": lambda s: s.count_by("name", into=HashState("h").per("id")),
    "what may be None": lambda s: s.sum_by("name", "cents", into=HashState("h")),
    "a float to be added to an int": lambda s: s.sum_by("name", "rate", into=HashState("h")),
    "a float to be added to a Decimal": lambda s: s.sum_by("name", "rate", into=HashState("h", Decimal, scale=2)),
    "a str to be compared": lambda s: s.max_by("name", "name", into=HashState("h")),
    "a str after a filter": lambda s: s.filter(bool, of="id").sum_by("name", "name", into=HashState("h")),
    "an int to be reduced": lambda s: s.reduce_by("id", max, 0, into=HashState("h"), of="rate"),
    "a bool": lambda s: s.sum_by("name", "paid", into=HashState("h")),
}


def test_a_field_whose_declared_type_does_not_fit_is_refused_when_the_stream_is_built(tmp_path):
    (tmp_path / "typed.jsonl").touch()

    def source():
        return stream(JsonLines(str(tmp_path / "*.jsonl"), TYPED))

    cases = {name: lambda keep=keep: keep(source()) for name, keep in UNTYPED.items()}
    approved(refusals(cases, TopologyError), "declared-types-that-do-not-fit")
    source().filter(bool, of="cents").sum_by("name", "cents", into=HashState("h"))
    source().max_by("name", "cents", into=HashState("h"))
    source().map(str, of="id").count_by("id", into=HashState("h"))
