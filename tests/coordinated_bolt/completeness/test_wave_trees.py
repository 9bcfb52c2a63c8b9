"""The trees of a wave are judged once all reports are in, in whatever order; an open tree stays open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.acker import WaveTrees

EDGES = st.integers(1, (1 << 64) - 1)


def told(begun, acked):
    trees = WaveTrees()
    for root, edges in acked:
        trees.ack([root], [edges])
    return [*trees.complete(dict(begun))]


def test_a_root_nobody_hears_of_is_complete_at_once_and_one_that_never_began_never_is():
    assert told([(7, 0)], []) == [7]
    assert told([], [(7, 4), (7, 4)]) == []


def test_trees_are_told_apart_whether_reports_share_roots_or_not():
    trees = WaveTrees()
    trees.ack([1, 2, 3], [10, 20, 30])
    trees.ack([4, 5], [40, 50])
    trees.ack([5, 6, 3], [5, 60, 3])
    begun = {1: 10, 2: 20, 3: 30 ^ 3, 4: 40, 5: 50 ^ 5, 6: 60}
    assert trees.complete(begun) == begun.keys()
    assert trees.complete(begun | {2: 21, 7: 70, 8: 0}) == {1, 3, 4, 5, 6, 8}


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
