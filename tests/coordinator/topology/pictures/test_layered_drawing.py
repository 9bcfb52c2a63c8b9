"""Nothing in a picture covers anything else, whatever the topology."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import pytest

from coordinator.operating.topology_plan import plan
from coordinator.topology.pictures.layered_drawing import CHARACTER, LINE, TEXT_LIMIT, drawing_of, text_width
from coordinator.topology.pictures.layers import layers_of
from coordinator.topology.pictures.picture_maker import picture_of
from coordinator.topology.pictures.topology_picture import Edge, Node, PicturedPlace, PicturedState, TopologyPicture
from tests.support.topologies.example_topologies import EXAMPLES

TEXT_HEIGHT = 12


def area(x, y, width, height):
    return (x, y, x + width, y + height)


def of_text(x, baseline, text):
    return area(x, baseline - TEXT_HEIGHT + 3, text_width(text), TEXT_HEIGHT)


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def contains(outer, inner):
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def areas_of(drawing):
    """Every area that must be free of others, with its name."""
    boxes = [(box.node.component_id, area(box.x, box.y, box.width, box.height)) for box in drawing.boxes]
    labels = [
        (f"{line.edge.source} -> {line.edge.target}", of_text(line.label_x, line.label_y, line.label))
        for line in drawing.lines
    ]
    bands = [text for band in drawing.bands for text in band_texts(band)]
    footer = [(text, of_text(16, drawing.footer_y + LINE * n, text)) for n, text in enumerate(drawing.footer)]
    return boxes + labels + bands + footer


def band_texts(band):
    return [
        (f"{band.lines[0]}/{number}", of_text(band.x + 12, band.y + 4 + LINE * number, text))
        for number, text in enumerate(band.lines, start=1)
    ]


def level_parts(line):
    """The horizontal stretches of a line."""
    return list(zip(line.points[1::2], line.points[2::2], strict=True))


def faults(picture):
    """What is wrong with the drawing of a picture, a line each."""
    drawing = drawing_of(picture)
    page = area(0, 0, drawing.width, drawing.height)
    areas = areas_of(drawing)
    found = [f"{one} covers {other}" for (one, a), (other, b) in combinations(areas, 2) if overlap(a, b)]
    found += [f"{name} leaves the page" for name, each in areas if not contains(page, each)]
    for box in drawing.boxes:
        room = box.width - 2 * 12
        found += [f"{text!r} leaves its box" for _, text in box.lines if text_width(text) > room]
        found += [f"{box.node.component_id} is too low for its text"] if LINE * len(box.lines) > box.height else []
    for band in drawing.bands:
        inside = area(band.x, band.y, band.width, band.height)
        found += [f"{name} leaves its band" for name, each in band_texts(band) if not contains(inside, each)]
    for line in drawing.lines:
        for (left, y), (right, _) in level_parts(line):
            crossed = [box for box in drawing.boxes if overlap(area(left, y, right - left, 0.1), area_of(box))]
            found += [f"{line.edge} crosses {box.node.component_id}" for box in crossed]
        xs = [x for x, _ in line.points]
        found += [f"{line.edge} turns back"] if xs != sorted(xs) else []
    return found


def area_of(box):
    return area(box.x, box.y, box.width, box.height)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_drawn_without_overlaps_as_built_and_as_planned(name):
    topology = EXAMPLES[name]()
    assert faults(picture_of(topology)) == []
    assert faults(plan(topology).picture) == []


def random_picture(random):
    count = random.randint(1, 14)
    names = [f"c{number}{'x' * random.randint(0, 62)}" for number in range(count)]
    nodes = tuple(
        Node(
            name,
            "spout" if number == 0 else random.choice(("bolt", "committer")),
            "K" * random.randint(1, 80),
            random.randint(1, 9999),
            tuple(
                PicturedState("s" * random.randint(1, 64), "k", "hash", "str -> int")
                for _ in range(random.choice((0, 0, 3)))
            ),
            random.choice(("", "external effects", "名" * 20)),
        )
        for number, name in enumerate(names)
    )
    edges = tuple(
        Edge(names[source], names[target], "default", (), "g" * random.randint(1, 60))
        for target in range(1, count)
        for source in sorted(random.sample(range(target), random.randint(1, min(target, 4))))
    )
    groups = tuple(
        PicturedPlace(f"stage {n}", "processing", tuple(part), ("1 Spark task",))
        for n, part in enumerate(cut(names, random))
    )
    return TopologyPicture("t", "plain", nodes, edges, random.choice(((), groups)), ("a fact " * 30,))


def cut(names, random):
    """Cuts a list into stretches."""
    edges = sorted({0, len(names), *(random.randint(0, len(names)) for _ in range(3))})
    return [names[left:right] for left, right in pairwise(edges)]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_are_drawn_without_overlaps(seed):
    assert faults(random_picture(Random(seed))) == []


def test_the_check_finds_a_text_that_is_too_wide_for_its_box(monkeypatch):
    picture = plan(EXAMPLES["word_count"]()).picture
    monkeypatch.setattr("coordinator.topology.pictures.layered_drawing.CHARACTER", CHARACTER / 2)
    drawing = drawing_of(picture)
    monkeypatch.undo()
    assert any(text_width(text) > box.width - 24 for box in drawing.boxes for _, text in box.lines)


def test_a_component_stands_one_column_behind_the_last_it_hears():
    nodes = tuple(Node(name, "bolt", "Pass", 1) for name in "abcd")
    edges = tuple(Edge(pair[0], pair[1], "default", (), "shuffle") for pair in ("ab", "bc", "ac", "ad"))
    layers = layers_of(TopologyPicture("t", "plain", nodes, edges))
    assert [[place.component_id for place in column] for column in layers.columns] == [["a"], ["b", "", "d"], ["c"]]
    assert [place.component_id for place in layers.ways[2]] == ["a", "", "c"]


def test_components_of_one_place_share_a_stretch_of_columns():
    nodes = tuple(Node(name, "bolt", "Pass", 1) for name in "abc")
    edges = (Edge("a", "b", "default", (), "shuffle"), Edge("a", "c", "default", (), "shuffle"))
    groups = (PicturedPlace("one", "", ("a", "b")), PicturedPlace("two", "", ("c",)))
    layers = layers_of(TopologyPicture("t", "plain", nodes, edges, groups))
    columns = {place.component_id: place.column for column in layers.columns for place in column if place.component_id}
    assert columns == {"a": 0, "b": 1, "c": 2}


def test_the_order_within_a_column_follows_the_neighbours():
    nodes = tuple(Node(name, "bolt", "Pass", 1) for name in ("s", "a", "b", "x", "y"))
    pairs = (("s", "a"), ("s", "b"), ("b", "x"), ("a", "y"))
    edges = tuple(Edge(source, target, "default", (), "shuffle") for source, target in pairs)
    columns = layers_of(TopologyPicture("t", "plain", nodes, edges)).columns
    order = [[place.component_id for place in column] for column in columns]
    assert order[1].index("a") < order[1].index("b")
    assert order[2].index("y") < order[2].index("x")


def test_a_long_text_is_cut():
    picture = TopologyPicture("t", "plain", (Node("a", "bolt", "K" * 100, 1),), ())
    (box,) = drawing_of(picture).boxes
    assert [text for _, text in box.lines][1] == "K" * (TEXT_LIMIT - 1) + "…"
