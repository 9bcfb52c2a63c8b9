"""What a stream's steps make of rows, and what the topology is that they become."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinated_bolt import BaseBasicBolt
from coordinated_bolt.streams.groupings import FieldsGrouping
from coordinator import FixedBatchesSpout, LocalCluster, Stream, TextFiles, Topology, stream
from coordinator.sources import Inputs
from examples import word_count
from state import (
    HashState,
    ListState,
    SetState,
    SortedSetState,
    StreamState,
    TopologyError,
    UserCodeError,
    ValueState,
)
from tests.support.approved import approved, refusals
from tests.support.runs.collecting import Collecting
from tests.support.topologies.short_forms import finished, kept, rows

TEXT = "to be or not to be\nthat is the question\n\nwhether tis nobler\n" * 20


def words_of(folder, lines_per_batch=7):
    (folder / "text.txt").write_text(TEXT)
    return stream(TextFiles(f"{folder}/*.txt", lines_per_batch)).flat_map(str.split, to="word")


def values(field_stream: Stream) -> Topology:
    """Counts whole rows, as text: what has left a step."""
    shown = field_stream.map(lambda *row: repr(row), to="row")
    return shown.count_by("row", into=HashState("rows")).topology("rows")


def left(field_stream: Stream) -> list[tuple[object, ...]]:
    return sorted(eval(row) for row, count in kept(values(field_stream), "rows").items() for _ in range(count))


class Splits(BaseBasicBolt):
    output_fields = ("word",)

    def execute(self, tup, collector):
        for word in tup["line"].split():
            collector.emit([word])


class Sides(BaseBasicBolt):
    def declare_output_fields(self, declarer):
        declarer.declare(("number",))
        declarer.declare_stream("odd", ("number",))

    def execute(self, tup, collector):
        collector.emit([tup["number"]], "odd" if tup["number"] % 2 else "default")


class Adds(Collecting):
    total = ValueState("total")

    def finish_batch(self):
        self.total.increment(sum(tup["number"] for tup in self.tuples))


def test_fields_are_chosen_dropped_and_renamed():
    s = rows("who what cents", [["ann", "a", 5], ["bob", "b", 7]])
    assert s.select(["cents", "who"]).take() == [{"cents": 5, "who": "ann"}, {"cents": 7, "who": "bob"}]
    assert s.drop(["what", "who"]).take() == [{"cents": 5}, {"cents": 7}]
    assert s.rename({"who": "what", "what": "who"}).take(1) == [{"what": "ann", "who": "a", "cents": 5}]
    for wrong, said in (
        (lambda: s.select("day"), r"fields \['day'\] are unknown"),
        (lambda: s.drop(s.fields), "no field would be left"),
        (lambda: s.rename({"who": "what"}), "give names that do not repeat"),
    ):
        with pytest.raises(TopologyError, match=f"test_stream.py.*{said}"):
            wrong()


def test_rows_are_appended_to_streams_and_lists():
    s = rows("who cents", [["ann", 5], ["bob", 7]], [["ann", 3]])
    s.append(into=StreamState("entries", "json")).append(into=ListState("names", keep_last=2), of="who")
    s.append(into=ListState("objects", "json"), of=["cents"])
    s.append(into=ListState("cents", int).per("who"), of="cents")
    run = finished(s.topology("appended"))
    assert {name: run.state(name) for name in ("entries", "names", "objects", "cents")} == {
        "entries": {
            "1-0": {"who": "ann", "cents": 5},
            "1-1": {"who": "bob", "cents": 7},
            "2-0": {"who": "ann", "cents": 3},
        },
        "names": ["bob", "ann"],
        "objects": [{"cents": 5}, {"cents": 7}, {"cents": 3}],
        "cents": {"ann": [5, 3], "bob": [7]},
    }


def test_words_are_counted_as_by_the_classes_of_the_example_with_the_components_that_one_writes_by_hand(tmp_path):
    short = words_of(tmp_path).count_by("word", into=HashState("counts")).topology("word_count")
    by_hand = word_count.topology(f"{tmp_path}/*.txt", 7)
    assert kept(short, "counts") == kept(by_hand, "counts") == Counter(TEXT.split())
    components = [("input", "spout"), ("split", "bolt"), ("counts", "committer")]
    assert [(c.component_id, c.kind.value) for c in short.components] == components
    assert [s.grouping for s in short.component("counts").subscriptions] == [FieldsGrouping(("word",))]


def test_what_a_function_returns_takes_the_place_of_what_it_was_given():
    def orders():
        return rows("customer units cents", [["ann", 2, 250], ["bob", 1, 40]])

    paid = orders().map(lambda units, cents: units * cents, to="paid", of=["units", "cents"])
    assert paid.fields == ("customer", "paid")
    assert left(paid) == [("ann", 500), ("bob", 40)]
    assert left(orders().map(str, of="units")) == [("ann", "2", 250), ("bob", "1", 40)]
    assert left(orders().map(lambda *row: len(row), to="size")) == [(3,), (3,)]
    swapped = orders().map(lambda cents, customer: (cents, customer), to=["a", "b"], of=["cents", "customer"])
    assert (swapped.fields, left(swapped)) == (("units", "a", "b"), [(1, 40, "bob"), (2, 250, "ann")])


def test_a_row_becomes_as_many_as_the_function_gives():
    def lines():
        return rows("user text", [["ann", "a b"], ["bob", ""]], [["cid", "c"]])

    assert left(lines().flat_map(str.split, to="word", of="text")) == [("ann", "a"), ("ann", "b"), ("cid", "c")]

    def letters(text):
        yield from ((letter, len(text)) for letter in text)

    sized = lines().flat_map(letters, to=["letter", "size"], of="text")
    assert left(sized) == [("ann", " ", 3), ("ann", "a", 3), ("ann", "b", 3), ("cid", "c", 1)]
    assert left(lines().flat_map(lambda user, text: {user: text}, to="user")) == [("ann",), ("bob",), ("cid",)]


def test_splitting_whole_columns_finds_the_words_of_each_line():
    lines = rows("line", [["a\x1cb \u2003c"], ["\u00a0d\n"], [""], ["e"]])
    assert left(lines.flat_map(str.split)) == [(word,) for word in "abcde"]


def test_one_stream_has_several_outputs_of_one_bolt():
    numbers = rows("number", [[n] for n in range(10)])
    tens = numbers.map(lambda number: number * 10)
    tens.count_by("number", into=HashState("counts", field=int))
    tens.filter(lambda number: number > 70).sum_by(None, "number", into=ValueState("total"))
    numbers.sum_by(None, "number", into=ValueState("all"))
    topology = numbers.topology("outputs")
    assert kept(topology, "counts", "total", "all") == {
        "counts": dict.fromkeys(range(0, 100, 10), 1),
        "total": 170,
        "all": 45,
    }
    assert [c.component_id for c in topology.components] == ["input", "map-filter", "counts", "total", "all"]


def test_a_class_can_stand_anywhere():
    lines = rows("line", [["1 2 3"], ["4"]], [["5 6"]])
    numbers = lines.apply(Splits()).map(int, to="number").apply(Sides())
    numbers.commit(Adds())
    numbers.output("odd").count_by("number", into=HashState("odd", field=int))
    topology = lines.topology("classes")
    assert kept(topology, "total", "odd") == {"total": 12, "odd": {1: 1, 3: 1, 5: 1}}
    assert " ".join(c.component_id for c in topology.components) == "input Splits int Sides Adds count_by_odd odd"


def test_streams_of_one_source_are_merged():
    numbers = rows("number", [[n] for n in range(6)]).apply(Sides())
    odd = numbers.output("odd").map(lambda number: -number)
    numbers.merge(odd).sum_by(None, "number", into=ValueState("total"))
    assert kept(numbers.topology("merged"), "total") == 0 + 2 + 4 - 1 - 3 - 5


def test_components_have_the_parallelism_that_is_given():
    numbers = stream(FixedBatchesSpout([[[1]]], ["number"]), "numbers", parallelism=2)
    topology = numbers.count_by("number", into=HashState("n", field=int)).topology("wide", parallelism=3)
    assert [c.task_count for c in topology.components] == [2, 3, 3]
    assert topology.component("numbers").kind.value == "spout"


def test_a_builder_can_be_asked_for_what_the_short_form_has_no_word_for():
    builder = rows("number", [[1]]).count_by("number", into=HashState("n", field=int)).builder("limits")
    builder.set_message_timeout_s(5)
    assert builder.build({"a": 1}).message_timeout_s == 5


def odd_one(number):
    if number == 3:
        raise ValueError("three is too many")
    return number


@pytest.mark.parametrize(
    "failing",
    [
        lambda numbers: numbers.map(odd_one),
        lambda numbers: numbers.flat_map(lambda number: (odd_one(n) for n in [number])),
        lambda numbers: numbers.filter(odd_one),
        lambda numbers: numbers.key_by(odd_one),
    ],
)
def test_what_a_function_raises_names_its_line_the_step_and_the_row(failing):
    numbers = failing(rows("number", [[1], [2]], [[5], [3], [4]]))
    topology = numbers.count_by("number", into=HashState("n", field=int)).topology("failing")
    with pytest.raises(UserCodeError) as raised:
        finished(topology)
    text = raised.value.traceback_text
    assert 'raise ValueError("three is too many")' in text
    assert "ValueError: three is too many\nin " in text
    assert "test_stream.py:" in text.partition(") at ")[2]
    assert text.rstrip().endswith("given 3")
    assert "user_function.py" not in text


ANSWERS = {
    "a text for rows": lambda n: n.flat_map(str),
    "nothing for rows": lambda n: n.flat_map(print),
    "one value for two fields": lambda n: n.map(lambda n: n, to=["a", "b"]),
    "one in a tuple for two fields": lambda n: n.map(lambda n: (n,), to=["a", "b"]),
    "a text for two fields": lambda n: n.flat_map(lambda n: ["ab", (1, n)], to=["a", "b"]),
    "what a builtin raises": lambda n: n.map(str).map(lambda n: f"x{n}").map(int),
}


def test_a_wrong_answer_is_refused_with_what_to_return_and_what_a_builtin_raises_names_step_and_row():
    cases = {name: lambda wrong=wrong: finished(values(wrong(rows("n", [[7]])))) for name, wrong in ANSWERS.items()}
    approved(refusals(cases, UserCodeError), "wrong-answers")


COUNTS = HashState("counts")


MISUSES = {
    "count by an unknown field": lambda s: s.count_by("wrd", into=COUNTS),
    "map an unknown field": lambda s: s.map(str, of="wrd"),
    "map several fields to nothing": lambda s: s.map(str),
    "map to a field that is there": lambda s: s.map(str, to="n", of="word"),
    "map by a text": lambda s: s.map("upper", of="word"),
    "add a key that is there": lambda s: s.key_by(len, "n", of="word"),
    "count into a text": lambda s: s.count_by("word", into="counts"),
    "count into a set": lambda s: s.count_by("word", into=SetState("counts")),
    "sum into texts": lambda s: s.sum_by("word", "n", into=HashState("h", str)),
    "count by nothing into a hash": lambda s: s.count_by(None, into=COUNTS),
    "count the best only": lambda s: s.count_by("word", into=SortedSetState("v", keep_highest=3)),
    "count into fields that expire": lambda s: s.count_by("word", into=HashState("v", fields_expire=True)),
    "keep in fields that expire": lambda s: s.max_by("word", "n", into=HashState("v", fields_expire=True)),
    "count by a field into a value": lambda s: s.count_by("word", into=ValueState("v")),
    "parts by an unknown field": lambda s: s.count_by("word", into=SortedSetState("v").per("day")),
    "sum an unknown field": lambda s: s.sum_by("word", "x", into=COUNTS),
    "count into a list": lambda s: s.count_by("word", into=ListState("list")),
    "an unknown output": lambda s: s.output("odd"),
    "an output of a step": lambda s: s.map(str, of="n").output("odd"),
    "rows of a committer": lambda s: s.commit(Adds()).map(str),
    "merge with other fields": lambda s: s.merge(s.map(str, of="n", to="m")),
    "merge with another source": lambda s: s.merge(rows("word n", [])),
    "merge with itself": lambda s: s.merge(s),
    "merge with one twice": lambda s: s.merge(*[s.filter(bool, of="n")] * 2),
    "group by an unknown field": lambda s: s.apply(Splits(), by="nobody"),
    "apply a class": lambda s: s.apply(Splits).topology("t"),
    "commit a bolt": lambda s: s.commit(Splits()).topology("t"),
    "keep nothing": lambda s: s.topology("t"),
    "keep nothing of a step": lambda s: s.filter(len, of="word").topology("t"),
    "use no row of a step": lambda s: (s.filter(len, of="word"), s.count_by("word", into=COUNTS).topology("t")),
    "a state twice": lambda s: s.count_by("word", into=COUNTS).sum_by("word", "n", into=COUNTS).topology("t"),
}


def test_a_misuse_is_refused_when_the_topology_is_built():
    cases = {name: lambda misuse=misuse: misuse(rows("word n", [["a", 1]])) for name, misuse in MISUSES.items()}
    approved(refusals(cases, TopologyError), "misuses-of-streams")


def test_what_is_no_source_is_refused():
    with pytest.raises(TopologyError, match="give an instance of ITransactionalSpout"):
        stream("*.txt")  # type: ignore[call-overload]


def test_long_and_equal_names_make_different_components():
    numbers = rows("line", [["1"]])
    for number in range(3):
        longer = numbers.apply(Splits(), name="x" * 64).map(len, to="size")
        longer.count_by("size", into=HashState(f"s{number}", field=int))
    ids = {c.component_id[-5:] for c in numbers.topology("names").components}
    assert ids == {"input", "xxxxx", "xxx_2", "xxx_3", "len", "len_2", "len_3", "s0", "s1", "s2"}


def test_several_inputs_are_streams_of_one_source():
    bought = FixedBatchesSpout([[["ann", 5], ["bob", 1]], [["ann", 4]]], ["who", "cents"])
    inputs = stream(Inputs(orders=bought, returns=FixedBatchesSpout([[["ann", 2]]], ["who", "cents"])))
    returned = inputs.output("returns").map(lambda cents: -cents, of="cents")
    inputs.output("orders").merge(returned).sum_by("who", "cents", into=HashState("paid"))
    assert kept(inputs.topology("two"), "paid") == {"ann": 7, "bob": 1}


REFUSED_IN_PART = [[["ann", 5], ["bob", 0], ["cid", -1]], [["ann", -2], ["bob", 3]]]


def all_orders():
    return rows("who cents", *REFUSED_IN_PART)


def letters(run):
    return [
        (letter.component_id, letter.source_component, letter.values, letter.reason) for letter in run.dead_letters()
    ]


def test_refused_tuples_are_letters_with_their_reason_and_the_others_pass():
    good = all_orders().dead_letter_if(lambda cents: cents <= 0, lambda cents: f"an order of {cents} cents", of="cents")
    topology = good.sum_by("who", "cents", into=HashState("cents")).topology("orders")
    run = finished(topology)
    assert run.state("cents") == {"ann": 5, "bob": 3}
    assert letters(run) == [
        ("dead_letter_if", "input", ("bob", 0), "an order of 0 cents"),
        ("dead_letter_if", "input", ("cid", -1), "an order of -1 cents"),
        ("dead_letter_if", "input", ("ann", -2), "an order of -2 cents"),
    ]
    assert [c.component_id for c in topology.components] == ["input", "dead_letter_if", "cents"]


def is_nothing(cents):
    return cents == 0


def test_refusals_that_follow_one_another_are_one_bolt_and_each_tuple_is_refused_once():
    good = (
        all_orders()
        .dead_letter_if(is_nothing, "nothing", of="cents")
        .dead_letter_if(lambda who, cents: cents < 0, "less")
    )
    topology = (
        good.map(lambda cents: -cents, of="cents").sum_by("who", "cents", into=HashState("cents")).topology("orders")
    )
    run = finished(topology)
    assert [(values, reason) for _, _, values, reason in letters(run)] == [
        (("bob", 0), "nothing"),
        (("cid", -1), "less"),
        (("ann", -2), "less"),
    ]
    assert run.state("cents") == {"ann": -5, "bob": -3}
    assert [c.component_id for c in topology.components] == ["input", "is_nothing", "cents"]


def test_a_tuple_that_other_consumers_have_counted_is_not_counted_by_them_again():
    limit = [0]

    def topology(spout):
        s = stream(spout).map(lambda cents: cents, of="cents")
        s.count_by(None, into=ValueState("all"))
        good = s.dead_letter_if(lambda cents, least=limit[0]: cents <= least, "too little", of="cents")
        return good.sum_by("who", "cents", into=HashState("cents")).topology("orders")

    with LocalCluster() as cluster:
        run = cluster.submit(topology(FixedBatchesSpout(REFUSED_IN_PART, ["who", "cents"])))
        run.run_until_idle()
        limit[0] = -10
        again = cluster.submit(topology(FixedBatchesSpout(REFUSED_IN_PART, ["who", "cents"])), republish_letters="all")
        again.run_until_idle()
        assert again.dead_letters() == []
        assert (again.state("all"), again.state("cents")) == (5, {"ann": 3, "bob": 3, "cid": -1})


def test_a_refusal_may_follow_a_state_that_rows_pass():
    balances = HashState("balances")
    s = rows("who cents", [["ann", 5]], [["ann", -9], ["ann", -2]])
    s.sum_by("who", "cents", into=balances)
    spent = s.enrich(balances, by="who", to="had", as_of="transaction").filter(lambda cents: cents < 0, of="cents")
    afforded = spent.dead_letter_if(lambda cents, had: had < -cents, "too much", of=["cents", "had"])
    topology = afforded.count_by("who", into=HashState("afforded")).topology("spending")
    assert kept(topology, "afforded") == {"ann": 1}
    assert [values for _, _, values, _ in letters(finished(topology))] == [("ann", -9, 5)]


def test_a_reason_that_is_no_sentence_fails_the_attempt():
    bad = all_orders().dead_letter_if(lambda cents: cents < 0, lambda cents: cents, of="cents")
    with pytest.raises(UserCodeError, match="dead_letter got the reason -1; give a string"):
        finished(bad.sum_by("who", "cents", into=HashState("cents")).topology("orders"))
