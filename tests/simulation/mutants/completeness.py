"""Bugs in the proof that a batch is complete: counts, reports, edges, trees, and the frames they are about."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant, together
from tests.simulation.mutants.patch import Patch

TRACKING = "coordinated_bolt/completeness/tracking.py"
ACKER = "coordinated_bolt/batches/batch_acker.py"
TASK = "coordinated_bolt/batches/batch_task.py"
EDGES = "coordinated_bolt/transport/edges.py"
FRAMES = "coordinated_bolt/transport/frames.py"

MUTANTS = (
    mutant(
        "counts-ignored",
        "A batch is finished once everybody has reported, however many tuples have arrived.",
        Patch(
            TRACKING,
            "        return TrackingStatus.COMPLETE if self._is_matched(entry) else TrackingStatus.WAITING\n",
            "        return TrackingStatus.COMPLETE\n",
        ),
        dies_in="tests/coordinated_bolt/completeness/test_tracking.py",
        spared="edges find what the counts would have found",
    ),
    mutant(
        "tree-not-awaited",
        "An attempt is processed once all tasks have reported, although its tree is open.",
        Patch(ACKER, "            if outcome.failure is None and attempt not in self._acked:", "            if False:"),
    ),
    together("counts-and-tree-ignored", "Neither counts nor tree are awaited.", "counts-ignored", "tree-not-awaited"),
    together(
        "counts-and-residue-ignored", "Neither counts nor residue are compared.", "counts-ignored", "residue-ignored"
    ),
    together(
        "counts-tree-and-residue-ignored",
        "A batch is complete when everybody says so.",
        "counts-ignored",
        "tree-not-awaited",
        "residue-ignored",
    ),
    mutant(
        "missing-count-is-done",
        "A task upstream that has not reported holds up nothing.",
        Patch(TRACKING, "        if len(entry.reporters) < self._report_count:", "        if False:"),
        Patch(
            TRACKING,
            "        return entry.received == entry.expected\n",
            "        return entry.expected == {t: n for t, n in entry.received.items() if t in entry.reporters}\n",
        ),
        dies_in="tests/coordinated_bolt/completeness/test_tracking.py",
        spared="a block that is lost takes its tuples along, and edges find those",
    ),
    together(
        "missing-count-and-edges-ignored",
        "A silent task holds up nothing, and edges are not compared.",
        "missing-count-is-done",
        "tree-not-awaited",
        "residue-ignored",
    ),
    mutant(
        "counts-added-on-repeat",
        "A report that arrives twice is added up.",
        Patch(
            TRACKING,
            "        elif (known := entry.expected.get(task, 0)) != tuple_count:\n",
            "        elif tuple_count:\n"
            "            entry.expected[task] = entry.expected.get(task, 0) + tuple_count\n"
            "        elif (known := 0):\n",
        ),
        dies_in="tests/coordinated_bolt/completeness/test_tracking.py::test_a_report_is_compared_on_repeat_and_never_added",
        spared="a report that arrives twice only fails its attempt, which is replayed",
    ),
    together(
        "counts-added-edges-ignored",
        "A report that arrives twice is added up, and edges are not compared.",
        "counts-added-on-repeat",
        "tree-not-awaited",
        "residue-ignored",
    ),
    mutant(
        "one-sum-for-all-senders",
        "Counts are kept in one sum, in which a surplus of one sender hides a deficit of another.",
        Patch(
            TRACKING,
            "        return entry.received == entry.expected\n",
            "        return sum(entry.received.values()) == sum(entry.expected.values())\n",
        ),
        dies_in="tests/coordinated_bolt/completeness/test_tracking.py::test_a_surplus_of_one_source_does_not_hide_a_deficit_of_another",
        spared="edges find what the counts would have found",
    ),
    mutant(
        "failure-not-sticky",
        "A failure is forgotten with the next event of the attempt.",
        Patch(
            TRACKING,
            "        if entry.failure is not None:\n            return TrackingStatus.FAILED\n",
            "        if entry.failure is not None:\n            entry.failure = None\n            return TrackingStatus.FAILED\n",
        ),
        dies_in="tests/coordinated_bolt/completeness/test_tracking.py::test_a_failure_before_the_first_report_sticks",
        spared="what failed on a task leaves edges open",
    ),
    mutant(
        "commit-before-its-id",
        "A committer finishes without its ID.",
        Patch(
            TRACKING,
            "        if self._needs_id and not entry.received_id:\n            return TrackingStatus.WAITING\n",
            "",
        ),
        dies_in="tests/coordinated_bolt/completeness/test_tracking.py::test_one_event_lost_never_completes",
        spared="a stage hands in the ID with the last frame, before it looks whether the batch is complete",
    ),
    mutant(
        "missing-report-is-processed",
        "An attempt is processed although a task has not reported.",
        Patch(ACKER, "            if outcome.failure is None and is_missing:", "            if False:"),
        dies_in="tests/coordinated_bolt/batches/test_batch_acker.py::test_a_missing_report_is_a_failure_even_if_the_tree_has_closed",
        spared="a report that is missing leaves the tree open",
    ),
    together(
        "missing-report-and-edges-ignored",
        "An attempt is processed although tasks have not reported, and edges are not compared.",
        "missing-report-is-processed",
        "tree-not-awaited",
        "residue-ignored",
    ),
    mutant(
        "failed-report-is-processed",
        "An acker does not look whether a task says that it has failed.",
        Patch(ACKER, "        if result.failure is not None:\n            self._fail(attempt, result.failure)\n", ""),
        dies_in="tests/coordinated_bolt/batches/test_batch_acker.py::test_a_tasks_own_failure_is_reported_rather_than_the_open_tree",
        spared="a task that failed has sent nothing, so the tree stays open",
    ),
    together(
        "failed-report-edges-and-counts-ignored",
        "An attempt is processed although tasks say that they failed, and neither edges nor counts are compared.",
        "failed-report-is-processed",
        "tree-not-awaited",
        "residue-ignored",
        "counts-ignored",
        "missing-count-is-done",
    ),
    mutant(
        "report-counted-twice",
        "A report that arrives twice counts twice.",
        Patch(ACKER, "        repeated = known & places", "        repeated = 0"),
        dies_in="tests/coordinated_bolt/batches/test_batch_acker.py::test_a_repeated_report_is_a_failure_however_often_it_comes",
        spared="a report that counts twice cancels its own edges, and the tree stays open",
    ),
    mutant(
        "edges-copied",
        "A receiver puts into the tree the edge that its sender claims, not what it has computed from the bytes.",
        Patch(
            "coordinated_bolt/transport/outbox.py",
            "sequence=sequence, payload=payload)\n",
            "sequence=sequence, payload=payload + self._digest.edge_id().to_bytes(8))\n",
        ),
        Patch(
            TASK,
            "        stretches: list[Stretch] = []\n        tuple_count = 0\n",
            "        payload, claim = payload[:-8], int.from_bytes(payload[-8:])\n"
            "        self.__dict__.setdefault('claims', {}).setdefault(attempt, {})[sender] = claim\n"
            "        stretches: list[Stretch] = []\n        tuple_count = 0\n",
        ),
        Patch(
            TASK,
            "        for edge in self._edges.pop(attempt, NO_EDGES).values():\n            result.edges ^= edge.edge_id()\n",
            "        for claim in self.__dict__.setdefault('claims', {}).pop(attempt, {}).values():\n"
            "            result.edges ^= claim\n"
            "        self._edges.pop(attempt, None)\n",
        ),
        dies_in="tests/coordinated_bolt/batches/test_batch_task.py",
        spared="counts find what is lost or doubled, and the checksum what is altered",
    ),
    together(
        "edges-copied-checksum-ignored",
        "Edges are copied from what senders claim, and the checksum of frames is not compared.",
        "edges-copied",
        "checksum-ignored",
    ),
    mutant(
        "edge-of-counts",
        "The id of an edge is made of counts and lengths, not of the bytes.",
        Patch(EDGES, "blake2b(header + payload, ", "blake2b(header, "),
        dies_in="tests/coordinated_bolt/transport/test_edges.py::test_an_edge_depends_on_everything_it_stands_for",
        spared="the checksum finds what is altered, and executions that differ mostly differ in counts, too",
    ),
    mutant(
        "edge-of-any-attempt",
        "The id of an edge does not depend on its attempt.",
        Patch(EDGES, "_FRAME.pack(attempt.txid, attempt.attempt_id, self", "_FRAME.pack(attempt.txid, 0, self"),
        dies_in="tests/coordinated_bolt/transport/test_edges.py::test_an_edge_depends_on_everything_it_stands_for",
        spared="a block says which attempts it is of, under its checksum",
    ),
    mutant(
        "checksum-ignored",
        "The checksum of a frame is not compared.",
        Patch(FRAMES, "    if checksum != crc32(payload, crc32(packed[: _HEADER.size])):", "    if False:"),
        dies_in="tests/coordinated_bolt/transport/test_blocks.py::test_faults_33_every_flipped_bit_is_noticed",
        spared="edges depend on every byte of tuples and cuts, and a damaged report leaves the tree open",
    ),
    together(
        "checksum-and-edges-ignored",
        "Neither the checksum of frames nor the bytes behind edges are compared.",
        "checksum-ignored",
        "edge-of-counts",
    ),
    mutant(
        "surplus-after-the-end",
        "A frame that arrives after the counts have matched changes nothing any more.",
        Patch(
            "coordinated_bolt/batches/coordinated_bolt.py",
            "        if result is None or self._tracking.status(attempt) is not TrackingStatus.COMPLETE:",
            "        if result is None:",
        ),
        dies_in="tests/coordinated_bolt/batches/test_coordinated_bolt.py::test_a_surplus_after_the_batch_was_finished_fails_it_and_reaches_no_bolt",
        spared="a surplus changes the edge that its receiver computes",
    ),
)
