"""What is said of a user's function names it, and executors get the module that it is from."""

from __future__ import annotations

import inspect
import json
import random
import re
import threading
from decimal import Decimal
from functools import partial
from itertools import count

import pytest

from coordinator import LocalCluster, Mistake, Stream, prove
from coordinator.engines.spark.shipping import pickle_spec, topology_modules
from coordinator.topology.planning.plan import make_plan
from state import HashState, SetState, SortedSetState, TopologyError, UserCodeError
from tests.support.topologies.short_forms import rows

LINES = [["to be"], ["or not"], ["to be"], ["that is"], ["the question"], ["is it"]]
CALLS = count()


def lines() -> Stream:
    return rows("line", LINES[:2], LINES[2:4], LINES[4:])


def jitter(word):
    return word if random.random() < 0.5 else word.upper()


def numbered(word):
    return f"{word}{next(CALLS)}"


def last(_, word):
    return word


def line_of(function):
    return f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1] + 1}"


def test_a_topology_of_the_short_form_is_proved():
    words = lines().flat_map(str.split, to="word")
    counts = HashState("counts")
    first = words.distinct_by("word", into=SetState("seen"))
    first.key_by(len).count_by("key", into=SortedSetState("lengths", int))
    words.count_by("word", into=counts)
    seen = words.enrich(counts, by="word", to="before", as_of="transaction").filter(
        lambda before: before is not None, of="before"
    )
    seen.count_by("before", into=HashState("befores", field=int))
    proof = prove(words.topology("short"), seeds=20)
    assert proof.holds, proof
    assert [found.mistake for found in proof.mistakes] == ["cuts"]  # as_of="transaction" says so


@pytest.mark.parametrize("aside", [False, True])
def test_a_function_that_draws_is_found_by_its_line_and_component(aside):
    words = lines().flat_map(str.split, to="word")
    words.map(jitter).count_by("word", into=HashState("counts"))
    if aside:  # bolts of the same class
        words.dead_letter_if(lambda word: False, "never").count_by("word", into=HashState("others"))
    proof = prove(words.topology("drawing"), seeds=1)
    (found,) = proof.mistakes
    assert (found.mistake, found.component_id, found.place) == (Mistake.DRAWS, "split-jitter", line_of(jitter))
    assert "random.random()" in found.evidence


def test_what_depends_on_the_order_names_the_step():
    words = lines().flat_map(str.split, to="word").key_by(lambda word: "last")
    words.reduce_by("key", last, "", into=HashState("last", str), of="word")
    made_at = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    proof = prove(words.topology("ordered", parallelism=3), seeds=20)
    assert (proof.mistakes[0].mistake, proof.mistakes[0].component_id) == (Mistake.ORDER, "last")
    assert proof.mistakes[0].place == f"{__file__}:{made_at}"


def test_executors_get_the_modules_of_functions():
    s = lines().flat_map(str.split, to="word").map(partial(jitter))
    s.dead_letter_if(len, json.dumps).count_by("word", into=HashState("counts"))
    assert topology_modules(s.topology("shipped")) == [__name__]
    s = lines().reduce_by("line", last, "", into=HashState("last", str), of="line")
    assert topology_modules(s.topology("shipped")) == [__name__]
    s = lines().key_by(len, to="length")
    s.count_by("line", into=HashState("counts").per("length", int, expire_at=lambda length: 4_102_444_800 + length))
    assert topology_modules(s.topology("shipped")) == [__name__]
    s = lines().flat_map(str.split, to="word").count_by("word", into=HashState("counts"))
    assert topology_modules(s.topology("shipped")) == []


def test_a_function_that_holds_a_lock_is_refused_by_the_line_of_its_step():
    lock = threading.Lock()
    words = lines().map(lambda line: len(line) if lock else 0, to="length")
    made_at = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    words.count_by("length", into=HashState("counts", field=int))
    why = (
        rf"component 'map', made at {re.escape(__file__)}:{made_at}, cannot be shipped .*: open it in the prepare of a"
    )
    with pytest.raises(TopologyError, match=why):
        make_plan(words.topology("locked"), pickle_spec)


def test_what_a_state_refuses_is_told_by_the_line_of_the_step_without_frames_of_ours():
    words = lines().map(lambda line: (line, Decimal("1.5")), to=["line", "price"])
    words.latest_by("line", "price", into=HashState("latest", "json"))
    with LocalCluster(seed=1) as cluster, pytest.raises(UserCodeError) as raised:
        cluster.submit(words.topology("prices")).run_until_idle()
    assert "File " not in str(raised.value)
    assert re.search(
        r"\nTypeError: field 'price' is Decimal\('1.5'\), which latest_by at .*test_places_of_functions\.py:\d+ cannot",
        str(raised.value),
    )
