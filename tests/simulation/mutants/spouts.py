"""Bugs in how spouts are run: positions and their chain, what is told, and how a start compares its input."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant, together
from tests.simulation.mutants.patch import Patch

CHAIN = "coordinator/transactional/machine/positions.py"
OPAQUE = "coordinator/spouts/batch_emitters.py"
PARTITIONED = "coordinator/spouts/batch_emitters.py"
TOLD = "coordinator/transactional/spout_notifier.py"

MUTANTS = (
    mutant(
        "positions-unchained",
        "The batches of a partition need not follow one another.",
        Patch(
            CHAIN,
            "        loose = [scope for scope in outcome.metadata if not _follows(outcome, scope, below.get(scope, {}))]",
            "        loose: list[str] = []",
        ),
        dies_in="tests/coordinator/transactional/machine/test_positions.py",
        spared="it takes two ackers that read two executions of one emitter task which cut differently; a simulation of just these faults finds it, in test_simulation.py",
    ),
    mutant(
        "opaque-from-committed",
        "An opaque batch begins at the last committed position, whatever is in flight below it.",
        Patch(
            OPAQUE,
            "below = max((txid for txid in by_txid if txid < attempt.txid), default=None)",
            "below = min(by_txid, default=None)",
        ),
        dies_in="tests/coordinator/spouts/test_opaque.py::test_a_wave_starts_from_the_nearest_position_below_it",
        spared="each cut names where it began, and one that does not begin where those below it ended is replayed",
    ),
    mutant(
        "opaque-from-any-position",
        "An opaque replay begins at the last position there is, its own first try's and later ones' too.",
        Patch(
            OPAQUE,
            "below = max((txid for txid in by_txid if txid < attempt.txid), default=None)",
            "below = max(by_txid, default=None)",
        ),
        dies_in="tests/coordinator/spouts/test_opaque.py::test_a_position_of_the_txid_itself_or_of_a_later_one_is_never_reused",
        spared="a failure drops all later attempts, and their positions with them",
    ),
    together(
        "opaque-from-committed-unchained",
        "An opaque batch begins at the last committed position, and positions need not follow one another.",
        "opaque-from-committed",
        "positions-unchained",
    ),
    mutant(
        "partition-cut-again",
        "A replay of a partitioned spout cuts anew, although its cut is stored.",
        Patch(PARTITIONED, "            if state.has_cache(txid):", "            if False:"),
    ),
    together(
        "partition-cut-again-unchained",
        "A replay cuts again, and batches need not follow one another.",
        "partition-cut-again",
        "positions-unchained",
    ),
    mutant(
        "cut-below-a-later-cut",
        "A partition is cut below a txid that is cut already.",
        Patch("state/metadata.py", "        if not has_greater:", "        if True:"),
        dies_in="tests/coordinator/transactional/test_emitter_task.py::test_a_partition_of_which_a_later_batch_is_stored_emits_nothing_and_stores_that",
        spared="nothing leaves a hole below a cut",
    ),
    mutant(
        "uncommitted-positions-adopted",
        "An opaque spout continues from positions that another kind of spout stored ahead of its commits.",
        Patch(
            "coordinator/transactional/machine/metadata_log.py",
            "        if scope == COORDINATOR_SCOPE or (txid > committed_txid and not is_own_scope(scope)):",
            "        if scope == COORDINATOR_SCOPE:",
        ),
        dies_in="tests/coordinator/transactional/machine/test_metadata_log.py::test_an_opaque_spout_knows_nothing_of_what_was_stored_ahead_of_the_last_commit",
        spared="its topologies keep their kind of spout",
    ),
    together(
        "opaque-positions-before-commit-adopted",
        "The positions of an opaque spout are stored before the commit, and adopted by the next run.",
        "opaque-positions-before-commit",
        "uncommitted-positions-adopted",
    ),
    mutant(
        "cleanup-one-too-far",
        "The spout's committer is told to forget the last committed txid, too.",
        Patch(TOLD, "partial(committer.cleanup_before, last.txid)", "partial(committer.cleanup_before, last.txid + 1)"),
        dies_in="tests/coordinator/spouts/test_committing.py",
        spared="the spouts of the simulation keep nothing that they could forget",
    ),
    mutant(
        "last-group-not-told-again",
        "A run does not tell the spout what the one before it committed last.",
        Patch(
            TOLD,
            "        return None if unnotified is None else Resumed(unnotified())",
            "        return None if unnotified is None else Resumed()",
        ),
    ),
    mutant(
        "only-last-of-group-told",
        "Of a group the spout's committer is told the last transaction only.",
        Patch(TOLD, "        for attempt in attempts:\n", "        for attempt in attempts[-1:]:\n"),
    ),
    mutant(
        "adopted-input-not-compared",
        "Another input is adopted as soon as the user says so, whatever would be skipped or read again.",
        Patch(
            "coordinator/transactional/start/input_checks.py",
            "    if words is None or change is None or change.impossible or not _accepts(words, needed):",
            "    if words is None or change is None:",
        ),
        dies_in="tests/coordinator/transactional/start/test_adoption.py",
        spared="the input of the simulation grows and never becomes another one",
    ),
    mutant(
        "changed-input-not-noticed",
        "An input with the same fingerprint is taken for unchanged.",
        Patch(
            "coordinator/transactional/start/input_checks.py",
            "    if change.impossible or not _accepts(words, needed):\n        found",
            "    if False:\n        found",
        ),
        dies_in="tests/coordinator/transactional/start/test_adoption.py",
        spared="the input of the simulation grows and never becomes another one",
    ),
    mutant(
        "takeover-not-looked-at-again",
        "A takeover does not look again at what the former run wrote between the look and the takeover.",
        Patch(
            "coordinator/transactional/start/takeover.py",
            "        if _packed(acquired) != _packed(",
            "        if False and _packed(",
        ),
        dies_in="tests/coordinator/transactional/start/test_topology_changes.py",
        spared="it takes a run that commits between the look and the takeover of one with other states or another input",
    ),
    mutant(
        "takeover-compares-metadata-only",
        "A takeover looks again only if the metadata has changed, which a commit may leave as it was; a simulation "
        "of changing states found this one in our own code.",
        Patch(
            "coordinator/transactional/start/takeover.py",
            "    return pack([found.committed_txid, found.source_fingerprint, found.topology, found.metadata])",
            "    return pack(found.metadata)",
        ),
        dies_in="tests/coordinator/transactional/start/test_topology_changes.py",
        spared="it takes a run that commits between the look and the takeover of one with other states or another input",
    ),
)
