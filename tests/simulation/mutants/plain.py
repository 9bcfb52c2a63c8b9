"""Bugs in plain topologies and the Kafka spout: acks, values, timeouts, retries, stored offsets."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant
from tests.simulation.mutants.patch import Patch

ACKER = "coordinated_bolt/completeness/acker.py"
PARTITION = "coordinator/plain/kafka/partition_manager.py"
GOLDEN_ACKS = "tests/golden/test_acks.py"
KAFKA_SPOUT = "tests/coordinator/plain/kafka/test_kafka_spout.py"
FEW = "one seed in seven is a plain topology, and of those played none needs it"
NO_KAFKA = "the plain topologies of the simulation do not read Kafka"
NO_TIMEOUTS = "a wave of the simulation ends with everything acked or failed, so nothing times out"

MUTANTS = (
    mutant(
        "plain-ack-before-tree-closed",
        "A message is acked with the first ack of its tree.",
        Patch(ACKER, "        if tree.value == 0:", "        if tree.value == 0 or not tree.failed:"),
    ),
    mutant(
        "plain-wave-ack-before-tree-closed",
        "A message is acked at the end of its wave with any ack of its tree.",
        Patch(
            "coordinated_bolt/completeness/acker.py",
            "if acked.get(root, 0) == edges}",
            "if acked.get(root, edges) is not None}",
        ),
        dies_in="tests/coordinated_bolt/completeness/test_wave_trees.py",
        spared=FEW,
    ),
    mutant(
        "plain-chain-shares-values",
        "Bolts of a chain are handed the values of one tuple together, so one of them changes what another was given.",
        Patch(
            "coordinated_bolt/batches/hand_over.py", "            return _through_codec(row)", "            return row"
        ),
        dies_in="tests/coordinator/plain/test_chained_waves.py",
        spared="the bolts of the simulation are given numbers",
    ),
    mutant(
        "plain-chain-cleanup-lost",
        "What a bolt emits in its cleanup stays in the inbox of the bolt chained to it.",
        Patch("coordinator/plain/tasks/bolt_chain.py", "else self._handed_over(place)", "else None"),
        dies_in="tests/coordinator/plain/test_chained_waves.py",
        spared="the bolts of the simulation emit nothing in their cleanup",
    ),
    mutant(
        "plain-ack-value-not-xored",
        "An ack reports the edge that came, and not those that went.",
        Patch("coordinator/plain/tasks/output_collector.py", "ack(root, edge ^ ack_value)", "ack(root, edge)"),
        Patch("coordinator/plain/tasks/bolt_task.py", "ack(root, edge ^ tup.ack_value)", "ack(root, edge)"),
        dies_in="tests/coordinator/plain/tasks/test_output_collector.py",
        spared=FEW,
    ),
    mutant(
        "plain-second-init-cancels",
        "A second INIT of a tree is xored in like the first.",
        Patch(
            ACKER,
            "        if not tree.initialised:\n            tree.initialised = True",
            "        if True:\n            tree.initialised = True",
        ),
        dies_in=GOLDEN_ACKS,
        spared="messages inside a wave are neither doubled nor reordered: its frames are",
    ),
    mutant(
        "plain-fail-before-init-lost",
        "A FAIL that overtakes its INIT is forgotten, as in JStorm.",
        Patch(ACKER, "        tree.failed = True", "        tree.failed = tree.initialised"),
        dies_in="tests/coordinator/plain/tasks/test_acker_task.py::test_jstorm_a_fail_before_init_is_kept",
        spared="an acker of a wave tells only what is acked, and a tree that failed stays open",
    ),
    mutant(
        "plain-timeout-resets-twice",
        "A put leaves the key in its old bucket, too: the message times out at its old time and at its new one.",
        Patch(
            "coordinated_bolt/rotating_map.py",
            "        self.remove(key)\n        self._buckets[0][key] = value",
            "        self._buckets[0][key] = value",
        ),
        dies_in="tests/coordinated_bolt/test_rotating_map.py",
        spared=NO_TIMEOUTS,
    ),
    mutant(
        "plain-ack-leaves-pending",
        "An ack leaves its message pending, so it times out all the same.",
        Patch(
            "coordinator/plain/tasks/spout_task.py",
            "pop, done, now_ns = self.collector.pending.pop,",
            "pop, done, now_ns = self.collector.pending.get,",
        ),
        dies_in="tests/coordinator/plain/tasks/test_spout_task.py",
        spared=NO_TIMEOUTS,
    ),
    mutant(
        "plain-unnamed-root-acked",
        "A message that no acker has named after a wave is acked.",
        Patch(
            "coordinator/plain/tasks/spout_task.py",
            "self._ack(message, now_ns) if root in acked else",
            "self._ack(message, now_ns) if True else",
        ),
        dies_in="tests/coordinator/plain/test_coordinator.py",
        spared="one seed in seven is a plain topology; a simulation of those alone finds it, in test_simulation.py",
    ),
    mutant(
        "plain-edge-not-anchored",
        "What a bolt emits leaves no edge in the trees of its anchors.",
        Patch(
            "coordinator/plain/tasks/output_collector.py",
            "            anchor.ack_value ^= edge  # only now",
            "            del edge  # only now",
        ),
        Patch(
            "coordinator/plain/tasks/output_collector.py",
            "strict=True):\n            anchor.ack_value ^= edge",
            "strict=True):\n            del anchor, edge",
        ),
        dies_in="tests/coordinator/plain/tasks/test_output_collector.py",
        spared=FEW,
    ),
    mutant(
        "offset-ahead-of-acks",
        "The offset that is stored is the one after the last message emitted, acked or not.",
        Patch(
            PARTITION, "        return self.emitted_to if lowest is None else lowest", "        return self.emitted_to"
        ),
        dies_in=KAFKA_SPOUT,
        spared=NO_KAFKA,
    ),
    mutant(
        "first-ack-completes-message",
        "The first ack of the tuples of one message completes it.",
        Patch(PARTITION, "        if found.out or found.failed:\n            return False\n", ""),
        dies_in=KAFKA_SPOUT,
        spared=NO_KAFKA,
    ),
    mutant(
        "acks-of-an-earlier-epoch",
        "An ack of before a restart of the partition completes the message that has its offset now.",
        Patch(PARTITION, "        if tuple_id.epoch != self.epoch:\n            return None\n", ""),
        dies_in=KAFKA_SPOUT,
        spared=NO_KAFKA,
    ),
    mutant(
        "retry-without-wait",
        "A message that failed is due at once.",
        Patch(
            "coordinator/plain/kafka/retry_manager.py",
            "        found.due_ms = max(found.due_ms or 0, now_ms + self._rules.wait_ms(found.retries[number]))",
            "        found.due_ms = now_ms",
        ),
        dies_in="tests/golden/test_retry_manager.py",
        spared=NO_KAFKA,
    ),
    mutant(
        "sub-batch-report-not-held",
        "A batch inside a plain topology acks its tree without the edges of the reports it was sent.",
        Patch(
            "coordinator/plain/tasks/coordinated_task.py",
            "self._outbox.ack(root, reduce(xor, (roots[root] for roots in kept.held.values()), sent))",
            "self._outbox.ack(root, sent)",
        ),
        dies_in="tests/coordinator/plain/tasks/test_coordinated_task.py",
        spared="the plain topologies of the simulation hold no batches",
    ),
)
