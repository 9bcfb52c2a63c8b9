"""Bugs in the run machine: which attempts are current, what fails with what, what goes out when."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant, together
from tests.simulation.mutants.patch import Patch

MACHINE = "coordinator/transactional/machine/run_machine.py"
PROCESSING = "coordinator/transactional/machine/processing.py"
CUTTING = "coordinator/transactional/machine/cutting.py"
RECORDS = "coordinator/transactional/machine/transaction_records.py"
COMMITS = "coordinator/transactional/machine/commits.py"
RANDOM_RUNS = "tests/coordinator/transactional/machine/test_random_runs.py"

MUTANTS = (
    mutant(
        "stale-acks-accepted",
        "What is reported of an attempt is applied to the current attempt of its txid.",
        Patch(
            RECORDS,
            "return self._records[attempt.txid] if current is not None and current.attempt == attempt else None",
            "return self._records[attempt.txid] if current is not None else None",
        ),
    ),
    mutant(
        "old-crash-hits-new-attempts",
        "A crash of a wave drops the current attempts of its txids, whichever they are.",
        Patch(
            "coordinator/transactional/machine/failures.py",
            "live = tuple(attempt for attempt in attempts if self._books.transactions.is_current(attempt))",
            "live = tuple(attempt for attempt in attempts if attempt.txid in self._books.transactions)",
        ),
        dies_in=RANDOM_RUNS,
        spared="attempts are dropped too often and replayed, which changes no result",
    ),
    mutant(
        "given-up-group-believed",
        "What a group reports counts, although the group was given up and another is in its commit phase.",
        Patch(
            COMMITS,
            "        if self.phase is not None and self.phase.attempts == event.attempts:  # else",
            "        if self.phase is not None:  # else",
        ),
        dies_in="tests/coordinator/transactional/machine/test_run_machine.py",
        spared="a group in its commit phase is the lowest there is, so nothing but its own end gives it up",
    ),
    mutant(
        "failure-drops-itself-only",
        "A failure drops its own attempt, and none of the later ones.",
        Patch(
            RECORDS,
            "dropped = [record for record in map(self._records.__getitem__, self.known()) if record.txid >= txid]",
            "dropped = [record for record in map(self._records.__getitem__, self.known()) if record.txid == txid]",
        ),
    ),
    mutant(
        "lower-txids-not-awaited",
        "A group takes whatever is processed, and does not wait for what is below it.",
        Patch(
            RECORDS,
            "            if current is None or current.state is not AttemptState.PROCESSED:\n                break\n",
            "            if current is None or current.state is not AttemptState.PROCESSED:\n                continue\n",
        ),
        dies_in="tests/coordinator/transactional/machine/test_run_machine.py",
        spared="a failure drops whatever is above it, so nothing is processed above a gap",
    ),
    together(
        "gap-above-a-failure",
        "A failure drops itself only, and a group does not wait for what is below it.",
        "failure-drops-itself-only",
        "lower-txids-not-awaited",
    ),
    mutant(
        "group-over-two-waves",
        "A group continues into the next wave, whose shuffle its job does not read.",
        Patch(RECORDS, "            if group and current.wave_id != group[0].wave_id:\n                break\n", ""),
        dies_in="tests/coordinator/transactional/machine/test_run_machine.py",
        spared="what the job does not read is missed by the counts, and replayed",
    ),
    mutant(
        "cuts-past-a-failure-stored",
        "What emitters cut is stored beyond the first failure of a wave, which leaves a hole.",
        Patch(
            PROCESSING,
            "            if outcome.failure is not None or not self._transactions.is_current(outcome.attempt):\n                break\n",
            "            if outcome.failure is not None or not self._transactions.is_current(outcome.attempt):\n                continue\n",
        ),
    ),
    mutant(
        "cuts-not-stored",
        "What emitters cut is not stored before the commit phase.",
        Patch(
            PROCESSING,
            "        if entries := self._books.metadata.note_positions(good):",
            "        if not (entries := self._books.metadata.note_positions(good)):",
        ),
    ),
    mutant(
        "cut-not-stored",
        "What the spout's coordinator cut is not stored.",
        Patch(CUTTING, "        if cut and not self", "        if not cut and not self"),
    ),
    mutant(
        "cut-again-on-replay",
        "A replay asks the spout's coordinator to cut the transaction again.",
        Patch(
            CUTTING,
            "        return self._is_opaque and self._transactions[txid].republished is None",
            "        return self._is_opaque or bool(self._transactions[txid].failure_count)",
        ),
    ),
    mutant(
        "opaque-positions-before-commit",
        "The positions of an opaque spout are stored when its attempts are processed.",
        Patch(PROCESSING, "        if self._plan.is_opaque:\n            return\n        good", "        good"),
        dies_in="tests/coordinator/transactional/machine/test_opaque_run_machine.py",
        spared="a start discards positions of what is not committed",
    ),
    mutant(
        "told-before-durable",
        "The spout's committer is told of a group, and then the group is published.",
        Patch(
            COMMITS,
            "            yield phase.publish",
            "            from coordinator.transactional.machine.run_events import NotifySpout\n\n"
            "            yield NotifySpout(step.attempts)\n"
            "            yield phase.publish",
        ),
    ),
    mutant(
        "commit-reissued",
        "A commit that was sent and not answered is taken for refused, and its transactions are committed otherwise.",
        Patch(
            "coordinator/transactional/publisher.py",
            "        reply = self._store.commit(commit)\n",
            "        try:\n            reply = self._store.commit(commit)\n"
            "        except TransactionError as error:\n            return Refused(error)\n",
        ),
        dies_in="tests/coordinator/transactional/test_coordinator.py",
        spared="the digest and the revision tell another commit from the one that was sent",
    ),
    together(
        "commit-reissued-already-for-anything",
        "A commit that was not answered is sent otherwise, and whatever stands at its revision is taken for it.",
        "commit-reissued",
        "already-for-anything",
    ),
    together(
        "commit-reissued-no-revision",
        "A commit that was not answered is sent otherwise, at whatever revision.",
        "commit-reissued",
        "no-revision",
    ),
    mutant(
        "cut-stored-after-wave",
        "A wave is started, and then the metadata of its transactions is stored.",
        Patch(CUTTING, "            yield StoreMetadata(", "            self.late = StoreMetadata("),
        Patch(
            MACHINE,
            "            yield from self._processing.start()\n        if self.is_idle() and not",
            "            yield from self._processing.start()\n"
            "        if 'late' in vars(self._cutting):\n"
            "            yield vars(self._cutting).pop('late')\n"
            "        if self.is_idle() and not",
        ),
        dies_in="tests/coordinator/transactional/machine/test_run_machine.py",
        spared="nothing commits within the turn that stores it",
    ),
    mutant(
        "attempts-without-limit",
        "A transaction that always fails is replayed for ever.",
        Patch(
            "coordinator/transactional/machine/failures.py",
            "            if record.failure_count >= options.max_attempts:",
            "            if False:",
        ),
        dies_in="tests/coordinator/transactional/machine/test_run_machine.py",
        spared="its faults end, so every transaction gets through",
    ),
    mutant(
        "window-ignored",
        "The window has no end: whatever the input holds is cut at once.",
        Patch(
            CUTTING,
            "        end = self._transactions.currtx + self._books.waves.size.window()",
            "        end = self._transactions.currtx + 1_000",
        ),
    ),
    mutant(
        "missing-outcome-is-processed",
        "An attempt that no acker has reported on counts as processed.",
        Patch(
            "coordinator/transactional/machine/wave_records.py",
            "return [found.get(attempt) or AttemptResult(attempt, unknown) for attempt in attempts]",
            "return [found.get(attempt) or AttemptResult(attempt) for attempt in attempts]",
        ),
        dies_in="tests/coordinator/transactional/machine/test_run_machine.py",
        spared="its ackers report on every attempt that they were given, as those on Spark do, or the job crashes",
    ),
    mutant(
        "early-commit-of-void-attempts",
        "A group that ran early is taken for its txids, although its attempts were replaced.",
        Patch(
            "coordinator/transactional/machine/early_commits.py",
            "return group if group is not None and group.attempts == attempts else None",
            "return group",
        ),
        Patch(
            "coordinator/transactional/machine/early_commits.py",
            "self._kept = {first: group for first, group in self._kept.items() if all(map(is_current, group.attempts))}",
            "pass",
        ),
        dies_in="tests/coordinator/transactional/machine/test_run_machine.py",
        spared="the turn that follows its report takes a group, before a failure can replace its attempts",
    ),
    mutant(
        "early-commit-of-readers-believed",
        "A group that ran early counts, although its committers wanted to read.",
        Patch(
            "coordinator/transactional/machine/early_commits.py",
            "            if any(report.results.reads for report in group.reports):",
            "            if False:",
        ),
    ),
    mutant(
        "metadata-cleaned-one-too-far",
        "A commit forgets the metadata of the txid it has committed, from which the next one is cut.",
        Patch(
            "coordinator/transactional/machine/metadata_log.py",
            "        return [txid for txid in txids if txid < max(last, newest)]",
            "        return [txid for txid in txids if txid <= max(last, newest)]",
        ),
    ),
    mutant(
        "metadata-never-cleaned",
        "A commit forgets no metadata: it grows for ever.",
        Patch(
            "coordinator/transactional/machine/metadata_log.py",
            "        return [txid for txid in txids if txid < max(last, newest)]",
            "        return []",
        ),
    ),
)
