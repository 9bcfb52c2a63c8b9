"""Bugs in what runs on executors: instances, order, draws, and in the driver's half of a job."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant, together
from tests.simulation.mutants.patch import Patch

BOLTS = "coordinated_bolt/batches/batch_bolt_executor.py"

MUTANTS = (
    mutant(
        "instance-shared",
        "One instance of a bolt serves all attempts of its task.",
        Patch(
            BOLTS,
            "        live = self._attempts.get(attempt)\n        if live is None:\n            spec:",
            "        live = next(iter(self._attempts.values()), None)\n        if live is None:\n            spec:",
        ),
        Patch(
            BOLTS,
            "        live = self._attempts.pop(attempt, None)\n        failure = None",
            "        live, failure = None, None",
        ),
    ),
    mutant(
        "frames-unsorted-by-stage",
        "A stage executes frames in the order in which it fetched them.",
        Patch(
            "coordinator/engines/waves/stage_context.py",
            "        return {task: sorted(frames) for task, frames in own.items()}",
            "        return {task: list(frames) for task, frames in own.items()}",
        ),
        dies_in="tests/coordinator/plain/test_waves.py",
        spared="the inbox puts frames in order, too",
    ),
    mutant(
        "frames-unsorted-by-inbox",
        "A task's inbox leaves the frames of an attempt in the order in which they are handed in.",
        Patch(
            "coordinated_bolt/transport/blocks.py",
            "        return Arrived(sorted(found.frames), ",
            "        return Arrived(found.frames, ",
        ),
        dies_in="tests/coordinated_bolt/batches/test_batch_task.py::test_a_stage_that_is_computed_again_does_the_same_again",
        spared="the stage puts frames in order, too",
    ),
    together(
        "frames-unsorted",
        "Frames are executed in the order in which they were fetched.",
        "frames-unsorted-by-stage",
        "frames-unsorted-by-inbox",
        dies_in="tests/coordinated_bolt/batches/test_batch_task.py::test_a_stage_that_is_computed_again_does_the_same_again",
        spared="its bolts do the same in any order, and edges would find a stage that did not",
    ),
    mutant(
        "grouping-unseeded",
        "A shuffle grouping draws at random: a task that runs again sends the same rows elsewhere.",
        Patch(
            "coordinated_bolt/batches/attempt_collector.py",
            '            seed = digest64(b"%d %d %d" % (attempt.txid, attempt.attempt_id, wiring.task_id))\n',
            "            from random import getrandbits\n\n            seed = getrandbits(64)\n",
        ),
        dies_in="tests/coordinated_bolt/batches/test_attempt_collector.py::test_random_choices_depend_on_attempt_and_task_and_are_made_again_alike",
        spared="edges find two executions that differ",
    ),
    together(
        "grouping-unseeded-tree-ignored",
        "A shuffle grouping draws at random, and nobody compares what bolts have read.",
        "grouping-unseeded",
        "tree-not-awaited",
    ),
    mutant(
        "emitter-continues-after-failure",
        "An emitter that failed an attempt emits the later ones of the wave, from a position that was never reached.",
        Patch(
            "coordinator/transactional/emitter_task.py",
            "        if self._failed is not None:\n            return AttemptResult(attempt, self._failed, metrics={component_id: metrics})\n",
            "",
        ),
        dies_in="tests/coordinator/transactional/test_emitter_task.py::test_an_emitter_that_fails_an_attempt_fails_every_later_one_of_the_wave",
        spared="a failure drops every later attempt of the wave",
    ),
    mutant(
        "void-frames-executed",
        "A task executes what has arrived for a place in a wave, whichever wave it is of.",
        Patch(
            "coordinated_bolt/transport/blocks.py",
            "                if block.wave_id == wave.key and block.kind",
            "                if block.kind",
        ),
        dies_in="tests/coordinated_bolt/transport/test_blocks.py::test_blocks_of_another_wave_and_of_another_kind_are_dropped",
        spared="a shuffle holds the blocks of one wave",
    ),
    mutant(
        "half-a-retry-sent",
        "What a task had sent before it was retried is sent once more with the retry.",
        Patch(
            "coordinator/engines/waves/stage_context.py",
            "        held, self._held = self._held, []\n        return held",
            "        held = list(self._held)\n        return held",
        ),
    ),
)
