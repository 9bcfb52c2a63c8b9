"""Edges: the id stands for everything that was sent, and where nothing was sent there is none."""

from __future__ import annotations

from coordinated_bolt.transport.edges import EdgeDigest, batch_edge, handed_edge
from tests.support.tasks.wirings import attempt

A = attempt(1)


def edge(*frames, of=A, source=1, target=2):
    digest = EdgeDigest(of, source, target)
    for sequence, payload, tuple_count in frames:
        digest.add(sequence, payload, tuple_count)
    return digest.edge_id()


def test_an_edge_depends_on_everything_it_stands_for():
    first, second = (0, b"one", 1), (1, b"other", 1)
    edges = [
        edge(first, second),
        edge((0, b"other", 1), (1, b"one", 1)),
        edge(first),
        edge(first, first),
        edge(first, (1, b"other", 2)),
        edge(first, (1, b"othes", 1)),
        edge(first, (2, b"other", 1)),
        edge(first, second, of=attempt(2)),
        edge(first, second, of=attempt(1, 7)),
        edge(first, second, source=3),
        edge(first, second, target=3),
        edge(first, second, source=2, target=1),
    ]
    assert len(set(edges)) == len(edges)
    assert 0 not in edges


def test_an_edge_tells_where_one_payload_ends_and_the_next_begins():
    """It must not be possible to move bytes from one frame to the next without a change."""
    parts = [(b"ab", b"c"), (b"a", b"bc"), (b"", b"abc"), (b"abc", b"")]
    edges = {edge(*[(n, payload, 1) for n, payload in enumerate(pair)]) for pair in parts}
    assert len(edges) == len(parts)


def test_where_nothing_was_sent_there_is_no_edge():
    assert edge() == 0
    assert handed_edge(A, 1, 2, 0) == 0


def test_an_edge_may_be_asked_for_while_it_grows():
    digest = EdgeDigest(A, 1, 2)
    digest.add(0, b"one", 3)
    before = digest.edge_id()
    digest.add(1, b"two", 4)
    assert before == edge((0, b"one", 3))
    assert digest.edge_id() == edge((0, b"one", 3), (1, b"two", 4))
    assert (digest.frame_count, digest.tuple_count) == (2, 7)


def test_the_edge_of_what_is_handed_over_depends_on_attempt_tasks_and_count():
    edges = {
        handed_edge(A, 1, 2, 5),
        handed_edge(A, 1, 2, 6),
        handed_edge(A, 1, 3, 5),
        handed_edge(A, 3, 2, 5),
        handed_edge(attempt(2), 1, 2, 5),
        handed_edge(attempt(1, 7), 1, 2, 5),
    }
    assert len(edges) == 6


def test_a_batch_edge_depends_on_attempt_task_and_metadata():
    edges = {
        batch_edge(A, 1, b"meta"),
        batch_edge(A, 2, b"meta"),
        batch_edge(A, 1, b"metb"),
        batch_edge(attempt(2), 1, b"meta"),
        batch_edge(attempt(1, 7), 1, b"meta"),
    }
    assert len(edges) == 5
