"""Bugs in group commit and in the tasks that run committers: what is published, and what of it."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant, together
from tests.simulation.mutants.patch import Patch

GROUP = "committers/group_commit.py"
EXECUTOR = "committers/committer_executor.py"
SESSION = "state/kinds/session.py"

MUTANTS = (
    mutant(
        "residue-ignored",
        "What commit tasks have read is not compared with what the processing phase sent them.",
        Patch(
            GROUP,
            "        has_read_other = edges != 0 and (group.is_flat or not failures)",
            "        has_read_other = False",
        ),
    ),
    mutant(
        "past-the-first-failure",
        "A group is published beyond the good prefix, with what its tasks composed.",
        Patch(GROUP, "    if any(report.results.good_count() != good for report in reports):", "    if False:"),
    ),
    mutant(
        "failed-verdict-is-good",
        "A verdict that failed does not end the prefix.",
        Patch(GROUP, "        if failures:\n            return place, most_telling(failures)", "        del failures"),
    ),
    mutant(
        "missing-verdict-is-good",
        "A task that sent no verdict on an attempt has nothing against it.",
        Patch(
            GROUP,
            '            failures.append(_incomplete(f"task {report.task_id} sent no verdict on attempt {attempt}"))\n',
            "            continue\n",
        ),
        dies_in="tests/committers/test_group_commit.py::test_a_missing_verdict_is_a_failure",
        spared="a task leaves out only verdicts above one that failed",
    ),
    mutant(
        "missing-report-is-good",
        "A group is published with the reports that are there, whichever commit tasks sent them.",
        Patch(GROUP, "    if sorted(task_ids) != sorted(group.commit_tasks):", "    if False:"),
        dies_in="tests/committers/test_group_commit.py::test_one_report_from_each_commit_task_is_asked_for",
        spared="a job of the simulation, as of Spark, returns what all of its tasks report or fails",
    ),
    mutant(
        "reads-not-recorded",
        "A session does not note what was read.",
        Patch(SESSION, "        self.reads.update((name, field) for field in open_fields)\n", ""),
    ),
    mutant(
        "read-conflict-ignored",
        "A group goes on past a transaction that read what a lower one wrote on another task.",
        Patch(GROUP, "        if place and _reads_anothers_write(reports, place, written):\n            break\n", ""),
        dies_in="tests/committers/test_group_commit.py",
        spared="no two of its tasks read and write the same field",
    ),
    together(
        "reads-neither-recorded-nor-cut",
        "Reads are neither noted nor do they end a group.",
        "reads-not-recorded",
        "read-conflict-ignored",
    ),
    mutant(
        "earlier-writes-kept",
        "A finish_batch finds what the one before it wrote still in its write set.",
        Patch(
            SESSION,
            "        self.writes, self.earlier = WriteSet(), earlier if earlier is not None else WriteSet()\n        self.reads",
            "        self.earlier = earlier if earlier is not None else WriteSet()\n        self.reads",
        ),
    ),
    mutant(
        "own-earlier-writes-unseen",
        "A read does not see what the same task wrote in lower transactions of the group.",
        Patch(
            SESSION,
            "        layers = [unpacked(self.earlier.states[name])] if name in self.earlier.states else []\n",
            "        layers = []\n",
        ),
    ),
    mutant(
        "last-transaction-composed-twice",
        "A task that composes its prefix adds a failed attempt's writes, too.",
        Patch(
            EXECUTOR,
            "        if result.failure is not None:\n            return False\n",
            "        if result.failure is not None:\n"
            "            self._executor.earlier.then(session.writes)\n"
            "            return False\n",
        ),
        dies_in="tests/committers/test_commit_task.py",
        spared="where a task failed and others did not, the commit phase runs again",
    ),
    mutant(
        "failed-attempt-ends-no-task",
        "A task goes on to the attempts after the one that failed on it.",
        Patch(
            EXECUTOR,
            "            elif not self._add(result):\n                break",
            "            else:\n                self._add(result)",
        ),
        dies_in="tests/committers/test_commit_task.py",
        spared="nobody looks at what a task reports above its first failure",
    ),
    mutant(
        "writes-of-the-last-group-kept",
        "A task begins a group with what it wrote in the last one.",
        Patch(EXECUTOR, "        self._executor.earlier = WriteSet()\n        if composed:", "        if composed:"),
    ),
    mutant(
        "equal-fields-overwrite",
        "Where two tasks add to one field, the second wins.",
        Patch(
            "state/commits/state_writes.py",
            "            other.increments[key] += self.increments[key]\n",
            "            other.increments[key] += 0\n",
        ),
        dies_in="tests/state/commits/test_write_set.py",
        spared="each of its fields is written by one task",
    ),
    mutant(
        "shared-field-stays-packed",
        "What two tasks packed is passed on although both add to one field; the server adds only one of them.",
        Patch(
            "state/commits/packed_writes.py",
            "        if not all(self._pieces",
            "        if False and not all(self._pieces",
        ),
        dies_in="tests/state/commits/test_packed_increments.py",
        spared="each of its fields is written by one task",
    ),
)
