"""The same picture as text, Mermaid and HTML; what users named is text in each of them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from coordinator.operating.topology_plan import plan
from coordinator.topology.pictures.picture_texts import html_of, mermaid_of, text_of
from coordinator.topology.pictures.topology_picture import Edge, Node, PicturedPlace, PicturedState, TopologyPicture
from tests.support.topologies.example_topologies import EXAMPLES

HOSTILE = '<script>alert("x")</script>`|#&\n'
MERMAID_LINE = re.compile(
    r'flowchart LR|  subgraph g\d+\["[^"]*"\]|  end|\s+c\d+(\(\["[^"]+"\]\)|\["[^"]+"\]|\[\["[^"]+"\]\])'
    r'|  c\d+ (-->|==>)\|"[^"]+"\| c\d+|  s\d+\[\("[^"]+"\)\]|  c\d+ -\.-> s\d+'
)


def hostile_picture():
    states = (PicturedState(HOSTILE, HOSTILE, "hash", HOSTILE),)
    nodes = (Node("spout", "spout", HOSTILE, 1, (), HOSTILE), Node("store", "committer", HOSTILE, 1, states))
    edges = (Edge("spout", "store", HOSTILE, (HOSTILE,), HOSTILE),)
    groups = (PicturedPlace(HOSTILE, HOSTILE, ("spout", "store"), (HOSTILE,)),)
    return TopologyPicture("t", "plain", nodes, edges, groups, (HOSTILE,))


def test_the_text_says_where_each_component_runs_whom_it_hears_and_what_it_writes():
    assert text_of(plan(EXAMPLES["word_count"]()).picture).splitlines()[:9] == [
        "word_count: transactional topology, 3 components, 3 tasks",
        "",
        "stage 1 · processing · 1 Spark task · chain lines+count",
        "  lines  spout      TextFiles    1 task",
        "  count  bolt       CountWords   1 task  <- lines by shuffle, in memory",
        "",
        "stage 2 · commit · 1 Spark task · 1 acker",
        "  store  committer  StoreCounts  1 task  <- count by fields word",
        "                                         -> {word_count}:counts (hash str -> int)",
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_line_of_a_mermaid_chart_has_one_of_its_forms(name):
    lines = plan(EXAMPLES[name]()).mermaid().splitlines()
    assert [line for line in lines if not MERMAID_LINE.fullmatch(line)] == []


def test_names_with_markup_are_text_in_every_form():
    picture = hostile_picture()
    assert "<script" not in html_of(picture) + mermaid_of(picture)
    ElementTree.fromstring(html_of(picture))
    assert [line for line in mermaid_of(picture).splitlines() if not MERMAID_LINE.fullmatch(line)] == []
    assert HOSTILE.rstrip("\n") + "\\n" in text_of(picture)


def test_the_html_has_the_text_and_a_table_of_the_states():
    root = ElementTree.fromstring(plan(EXAMPLES["word_count"]())._repr_html_())
    assert root.findtext("pre") == plan(EXAMPLES["word_count"]()).text()
    cells = [row.findtext("td") for row in root.iter("tr")]
    assert cells == [None, "counts"]
