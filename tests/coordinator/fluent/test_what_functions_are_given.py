"""What users' functions raise is heard of, wherever they are called, and what they change is theirs alone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, CustomGrouping, bolt
from state import HashState, UserCodeError, ValueState
from tests.support.runs.collecting import Collecting
from tests.support.topologies.short_forms import finished, kept, rows


def tag(*values):
    """Gives one of the words; raises StopIteration for a line without, as careless code does."""
    return next(word for word in str(values[-1]).split() if word[0] == "#")


@dataclass
class Line:
    line: str

    def __post_init__(self):
        self.tag = tag(self.line)


class Takes(BaseBasicBolt):
    output_fields = ("line",)

    def execute(self, line: Line, collector) -> None:
        collector.emit([line.tag])


@bolt(output_fields="line")
def tags(tup):
    return [tag(tup["line"])]


class Executes(BaseBasicBolt):
    output_fields = ("line",)

    def execute(self, tup, collector):
        collector.emit([tag(tup["line"])])


class ExecutesBatch(BaseBatchBolt):
    output_fields = ("line",)

    def execute_batch(self, batch):
        for line in batch.column("line"):
            self.collector.emit([tag(line)])


class Finishes(Collecting):
    output_fields = ("line",)

    def finish_batch(self):
        for tup in self.tuples:
            self.collector.emit([tag(tup["line"])])


class ByTag(CustomGrouping):
    def __repr__(self):
        return "ByTag()"

    def choose_tasks(self, values):
        return [tag(*values) and 0]


class Answer:
    def __init__(self, line):
        self.line = line

    def __bool__(self):
        return bool(tag(self.line))


STEPS = {
    "map": lambda s: s.map(tag, of="line", to="line"),
    "flat_map": lambda s: s.flat_map(lambda line: [tag(line)], to="line"),
    "flat_map that yields": lambda s: s.flat_map(lambda line: (tag(line) for _ in "a"), to="line"),
    "key_by": lambda s: s.key_by(tag, "tag", of="line"),
    "filter": lambda s: s.filter(tag, of="line"),
    "truth": lambda s: s.filter(Answer, of="line"),
    "dead_letter_if": lambda s: s.dead_letter_if(tag, "bad", of="line"),
    "truth of a refusal": lambda s: s.dead_letter_if(Answer, "bad", of="line"),
    "reason": lambda s: s.dead_letter_if(lambda line: line == "none", tag, of="line"),
    "reduce_by": lambda s: s.reduce_by("line", tag, "", into=HashState("reduced", str)),
    "expire_at": lambda s: s.count_by(
        None, into=ValueState("parts").per("line", expire_at=lambda line: len(tag(line)))
    ),
    "record": lambda s: s.apply(Takes()),
    "function": lambda s: s.apply(tags),
    "execute": lambda s: s.apply(Executes()),
    "execute_batch": lambda s: s.apply(ExecutesBatch()),
    "finish_batch": lambda s: s.commit(Finishes()),
    "grouping": lambda s: s.apply(Executes(), by=ByTag()),
}


@pytest.mark.parametrize("step", [*STEPS])
def test_a_function_that_raises_stop_iteration_ends_the_run_and_not_the_rows(step):
    s = rows("line", [["#a"], ["none"], ["#b"]])
    s.count_by("line", into=HashState("lines"))
    s = STEPS[step](s)
    s.count_by("line", into=HashState("n"))
    with pytest.raises(UserCodeError, match="StopIteration"):
        finished(s.topology("stopping"))


async def coming(_):
    yield True


@pytest.mark.parametrize("answer", [coming, lambda _: map(bool, "a"), lambda _: print, lambda _: iter("a")])
@pytest.mark.parametrize("step", ["filter", "dead_letter_if"])
def test_an_answer_that_is_true_whatever_it_would_give_is_refused(answer, step):
    s = rows("x", [[1]])
    s = s.filter(answer) if step == "filter" else s.dead_letter_if(answer, "bad")
    with pytest.raises(UserCodeError, match="return True or False"):
        finished(s.count_by(None, into=ValueState("n")).topology("answers"))


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, BaseException])
def test_whatever_a_function_raises_its_step_and_row_are_named(error):
    def raising(x):
        raise error("enough")

    with pytest.raises(UserCodeError, match=r"(?s)enough.*in map\(raising\) at .*, given 'b'"):
        finished(rows("x", [["b"]]).map(raising).count_by("x", into=HashState("n")).topology("ending"))


def spoiling(answer):
    """A function that changes the list it is given."""
    return lambda value, *_: value.append(9) or answer


CHANGES = {
    "a branch": lambda s: s.map(spoiling(1), to="n", of="l").sum_by(None, "n", into=ValueState("n")),
    "a filter": lambda s: s.filter(spoiling(True), of="l").count_by(None, into=ValueState("n")),
    "a key": lambda s: s.key_by(spoiling(1), of="l").count_by("key", into=HashState("n", field=int)),
}


@pytest.mark.parametrize("change", [*CHANGES])
def test_a_function_that_changes_a_list_changes_it_for_no_other_step(change):
    s = rows("l", [[[1, 2]]])
    CHANGES[change](s)
    s.flat_map(lambda items: list(map(str, items)), to="k").count_by("k", into=HashState("kept"))
    assert kept(s.topology("lists"), "kept") == {"1": 1, "2": 1}


def test_rows_that_a_flat_map_made_of_one_share_no_list_and_a_refusal_keeps_what_it_was_given():
    s = rows("tags n", [[["a"], 2]]).flat_map(range, of="n", to="n")
    s.map(lambda tags: tags.append("x") or len(tags), of="tags", to="many").count_by(
        "many", into=HashState("kept", field=int)
    )
    assert kept(s.topology("rows"), "kept") == {2: 2}
    refused = rows("l", [[[1]]]).dead_letter_if(spoiling(True), "all")
    run = finished(refused.count_by(None, into=ValueState("n")).topology("refused"))
    assert [letter.values for letter in run.dead_letters()] == [([1],)]


def test_rows_that_looked_up_the_same_object_do_not_share_it():
    last = HashState("last", "json")
    s = rows("k at", [["a", 1]], [["a", 2], ["a", 3]])
    s.latest_by("k", "at", into=last)
    found = s.enrich(last, by="k", to="had", as_of="transaction").filter(lambda had: had is not None, of="had")
    found.map(lambda had: had.pop("at"), of="had", to="n").sum_by(None, "n", into=ValueState("kept"))
    assert kept(s.topology("objects"), "kept") == 2


def test_what_a_function_yields_is_what_it_was_then():
    def growing(n):
        made = []
        for each in range(n):
            made.append(each)
            yield made

    s = rows("n", [[3]]).flat_map(growing, to="l").map(len, to="n").count_by("n", into=HashState("kept", field=int))
    assert kept(s.topology("yielded"), "kept") == {1: 1, 2: 1, 3: 1}
