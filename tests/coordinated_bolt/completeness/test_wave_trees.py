"""An acker of a wave is told everything first, so no order matters, and an open tree stays open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.acker import WaveTrees

EDGES = st.integers(1, (1 << 64) - 1)


def told(begun, acked):
    trees = WaveTrees()
    trees.begin([root for root, _ in begun], [edges for _, edges in begun])
    for root, edges in acked:
        trees.ack([root], [edges])
    return trees.complete()


def test_a_tree_is_complete_once_its_edges_cancel_and_not_before():
    assert told([(7, 1)], []) == []
    assert told([(7, 1)], [(7, 1 ^ 4)]) == []
    assert told([(7, 1)], [(7, 1 ^ 4), (7, 4)]) == [7]


def test_a_root_nobody_hears_of_is_complete_at_once_and_one_that_never_began_never_is():
    assert told([(7, 0)], []) == [7]
    assert told([], [(7, 4), (7, 4)]) == []


def test_a_root_that_begins_twice_begins_once():
    assert told([(7, 1), (7, 1)], []) == []
    assert told([(7, 1), (7, 1)], [(7, 1)]) == [7]


@given(edges=st.dictionaries(EDGES, st.lists(EDGES, min_size=1, max_size=4, unique=True), max_size=6), data=st.data())
def test_whatever_the_order_the_trees_whose_every_edge_was_acked_are_complete(edges, data):
    lost = data.draw(st.sets(st.sampled_from(sorted(edges)))) if edges else set()
    acks = [(root, edge) for root, own in edges.items() for edge in own]
    acks = data.draw(st.permutations([ack for ack in acks if ack[0] not in lost or ack[1] != edges[ack[0]][0]]))
    firsts = dict.fromkeys(edges, 0)
    for root, own in edges.items():
        for edge in own:
            firsts[root] ^= edge

    assert sorted(told([*firsts.items()], acks)) == sorted(edges.keys() - lost)
