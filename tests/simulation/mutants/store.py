"""Bugs in the function library, and in what the driver makes of its answers."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant, together
from tests.simulation.mutants.patch import LIBRARY, Patch

STORE = "state/redis_owner/store.py"
REGRESSED = "if not revision or revision < owner.revision then"
LATER = "elseif revision > owner.revision then"
SUITE = "tests/state/redis_owner/test_store.py"
COMMITS = "tests/state/redis_owner/test_commit.py"

MUTANTS = (
    mutant(
        "no-fence",
        "The owner's fence is not compared: a coordinator that was replaced keeps writing.",
        Patch(LIBRARY, "elseif found[2] ~= owner.fence then", "elseif false then"),
    ),
    mutant(
        "no-revision",
        "The expected revision is not compared: a server that has lost writes takes the next one.",
        Patch(LIBRARY, REGRESSED, "if false then"),
        Patch(LIBRARY, LATER, "elseif false then"),
    ),
    together("no-fence-no-revision", "Neither fence nor revision is compared.", "no-fence", "no-revision"),
    mutant(
        "no-generation",
        "The generation is not compared: another life of the topology is taken for this one.",
        Patch(LIBRARY, "if found[3] ~= owner.generation then", "if false then"),
        dies_in=COMMITS,
        spared="the fence has 128 random bits of its own, so another life has another fence",
    ),
    mutant(
        "no-order",
        "A group need not follow the last committed txid.",
        Patch(LIBRARY, "if decimal(group.first) == decimal(tonumber(committed) + 1) then", "if true then"),
        dies_in=COMMITS,
        spared="the revision admits no other call than the next",
    ),
    together("no-revision-no-order", "Neither revision nor order is compared.", "no-revision", "no-order"),
    mutant(
        "already-for-anything",
        "Whatever call stands at the next revision is taken for this one, and answered ALREADY.",
        Patch(LIBRARY, "and owner.digest and found[7] == owner.digest then", "and owner.digest then"),
        dies_in=COMMITS,
        spared="a run sends nothing else until it is answered, and a newer run has another fence",
    ),
    mutant(
        "digest-without-attempts",
        "The digest of a commit leaves out who made it and what it holds: only the number of arguments counts.",
        Patch(
            STORE, "digest = call_digest([*descriptions, *arguments])", "digest = call_digest([str(len(arguments))])"
        ),
        dies_in=COMMITS,
        spared="a run sends nothing else until it is answered, and a newer run has another fence",
    ),
    mutant(
        "no-last-call",
        "A repeated call is not recognised: what was applied and not answered is refused as a conflict.",
        Patch(LIBRARY, "'last_call', owner.digest, 'metadata_sum'", "'last_call', '', 'metadata_sum'"),
    ),
    mutant(
        "metadata-without-witness",
        "Only commits have a revision; metadata is stored at any: the first critical of the last review.",
        Patch(
            LIBRARY,
            "  local owner = read_owner(argv)\n  local reply = check_owner(keys[1], owner)\n",
            "  local owner = read_owner(argv)\n"
            "  owner.revision = tonumber(redis.call('HGET', keys[1], 'revision') or '') or owner.revision\n"
            "  local reply = check_owner(keys[1], owner)\n",
        ),
        Patch(
            LIBRARY,
            "  write_control(keys[1], owner)\n",
            "  redis.call('HSET', keys[1], 'metadata_sum', owner.sum, 'ended', owner.begun)\n"
            "  if owner.source ~= '' then redis.call('HSET', keys[1], 'source_fingerprint', owner.source) end\n"
            "  if owner.topology ~= '' then redis.call('HSET', keys[1], 'topology', owner.topology) end\n",
        ),
        Patch(
            STORE,
            "if self._owned.advance(reply):",
            'if self._owned.advance(reply) if name == "commit" else reply.status in ("OK", "ALREADY"):',
        ),
        dies_in=SUITE,
        spared="a start finds the hole that it leaves, by the checksum and by looking, and refuses",
    ),
    mutant(
        "hole-accepted",
        "A start does not look for holes in the stored metadata: the second critical of the last review.",
        Patch(
            "coordinator/transactional/start/input_checks.py", "        if txid not in metadata:", "        if False:"
        ),
        Patch(
            "coordinator/transactional/start/input_checks.py",
            "            if txid not in partitions.get(partition_scope(partition), {}):",
            "            if False:",
        ),
        dies_in="tests/coordinator/transactional/start/test_input_checks.py",
        spared="the revision leaves no hole, and the checksum would find one",
    ),
    mutant(
        "metadata-sum-ignored",
        "A start does not compare the checksum over the stored metadata.",
        Patch("state/metadata.py", "    if str(found_sum) != stored_sum:", "    if False:"),
        dies_in=SUITE,
        spared="the revision leaves no server with other metadata than the last write left",
    ),
    together(
        "hole-and-sum-ignored",
        "A start neither compares the checksum nor looks for holes.",
        "hole-accepted",
        "metadata-sum-ignored",
        dies_in="tests/coordinator/transactional/start/test_input_checks.py",
        spared="the revision leaves no hole and no server with other metadata than the last write left",
    ),
    together(
        "critical-hole-in-metadata",
        "The code before the last review: metadata without witness, and a start that accepts the hole it leaves.",
        "metadata-without-witness",
        "hole-accepted",
        "metadata-sum-ignored",
    ),
    mutant(
        "receipts-dropped",
        "A commit of one transaction writes no receipt.",
        Patch(
            LIBRARY,
            "  write_receipts(receipts, group)\n",
            "  if group.count > 1 then write_receipts(receipts, group) end\n",
        ),
    ),
    mutant(
        "receipts-rewritten",
        "The receipt of the transaction below the group is written again with the group's.",
        Patch(
            LIBRARY,
            "  for txid = math.max(1, group.first - RECEIPTS), group.last - RECEIPTS do",
            "  if group.first > 1 then\n"
            "    redis.call('HSET', receipts, decimal(group.first - 1), group.attempts[1] .. ' ' .. group.receipt)\n"
            "  end\n"
            "  for txid = math.max(1, group.first - RECEIPTS), group.last - RECEIPTS do",
        ),
    ),
    mutant(
        "committed-lags",
        "A commit moves the position to the first txid of its group.",
        Patch(LIBRARY, "'committed', decimal(group.last))", "'committed', decimal(group.first))"),
    ),
    mutant(
        "data-before-position",
        "A commit in two steps: the data one by one, then the position.",
        Patch(
            STORE,
            "            keys, arguments = commit_arguments(self.keys, commit, packed)\n",
            "            for name, writes in commit.write_set.states.items():\n"
            "                writes = writes.unpacked() if hasattr(writes, 'blocks') else writes\n"
            "                for field, amount in writes.increments.items():\n"
            "                    key = self.keys.state(name)\n"
            '                    stored = int(self._connection.call("HGET", key, str(field)) or 0)\n'
            '                    self._connection.call("HSET", key, str(field), str(stored + amount))\n'
            "            commit.write_set.states.clear()\n"
            "            keys, arguments = commit_arguments(self.keys, commit, packed)\n",
        ),
    ),
    mutant(
        "position-before-data",
        "A commit in two steps: the position, then the data one by one.",
        Patch(
            STORE,
            "            keys, arguments = commit_arguments(self.keys, commit, packed)\n",
            "            self._writes = dict(commit.write_set.states)\n"
            "            commit.write_set.states.clear()\n"
            "            keys, arguments = commit_arguments(self.keys, commit, packed)\n",
        ),
        Patch(
            STORE,
            '        reached("commit.answered")\n',
            "        for name, changes in self._writes.items():\n"
            "            changes = changes.unpacked() if hasattr(changes, 'blocks') else changes\n"
            "            for field, amount in changes.increments.items():\n"
            "                key = self.keys.state(name)\n"
            '                stored = int(self._connection.call("HGET", key, str(field)) or 0)\n'
            '                self._connection.call("HSET", key, str(field), str(stored + amount))\n'
            '        reached("commit.answered")\n',
        ),
    ),
    mutant(
        "metadata-before-commit",
        "A commit in two steps: what it stores of the input is stored by a call of its own, before the data.",
        Patch(
            STORE,
            "        packed = {field: pack_exact(value) for field, value in commit.metadata.items()}\n        try:",
            "        self.store_metadata(commit.metadata, commit.forget)\n        packed = {}\n        try:",
        ),
        Patch(STORE, "self._metadata_sum.change(packed, forget))", "self._metadata_sum.change(packed, ()))"),
        Patch(
            STORE,
            "            keys, arguments = commit_arguments(self.keys, commit, packed)",
            "            keys, arguments = commit_arguments(\n"
            "                self.keys, Commit(commit.attempts, commit.write_set, {}, ()), packed\n"
            "            )",
        ),
    ),
    mutant(
        "conflict-means-done",
        "The driver takes a conflict, too, for the answer to a commit that was applied before.",
        Patch(
            "coordinator/transactional/publisher.py",
            "        if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY):\n",
            "        if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY, CommitStatus.CONFLICT):\n",
        ),
        dies_in="tests/coordinator/transactional/test_publisher.py",
        spared="a run sends nothing else until it is answered, so no run ever hears of a conflict",
    ),
    mutant(
        "sum-not-updated",
        "A commit leaves the checksum over the metadata as it was.",
        Patch(
            STORE,
            "            head = [*self.ownership.arguments(), digest, str(change), *descriptions]",
            "            head = [*self.ownership.arguments(), digest, str(self._metadata_sum), *descriptions]",
        ),
    ),
    mutant(
        "acquire-without-compare",
        "A takeover does not compare the fence it saw: one that was delayed fences a newer run out.",
        Patch(
            LIBRARY,
            "  elseif fence ~= given.previous_fence then\n    return {'RACED', fence}\n  elseif found[3] ~= given.source",
            "  elseif found[3] ~= given.source",
        ),
    ),
    mutant(
        "acquire-keeps-revision",
        "A takeover does not raise the revision.",
        Patch(
            LIBRARY,
            "local write, revision = {}, decimal(tonumber(found[5]) + 1)",
            "local write, revision = {}, found[5]",
        ),
        dies_in=SUITE,
        spared="the fence admits no call of a former owner",
    ),
    mutant(
        "drop-without-fence",
        "A drop does not look whether the topology is still its own: a late one deletes what was started since.",
        Patch(
            LIBRARY,
            "  return kind_of(control) == 'hash' and redis.call('HGET', control, 'fence') == fence",
            "  return true",
        ),
        dies_in="tests/state/redis_owner/test_store.py",
        spared="it takes a late call of a drop that finds a topology started since",
    ),
    mutant(
        "rights-not-proved",
        "A commit does not prove its rights before the first write: one that lacks a right in the middle is torn.",
        Patch(LIBRARY, "  if require_steps(steps) or kept == 0", "  if kept == 0"),
        dies_in="tests/state/redis_client/test_rights.py",
        spared="fakeredis knows no rights",
    ),
    mutant(
        "done-unconfirmed",
        "A run says it is done without asking whether the server still holds its last commit.",
        Patch(
            "coordinator/transactional/coordinator.py",
            "            self._publisher.finish(machine.released_txid, machine.unstored_notes())\n",
            "",
        ),
        dies_in="tests/coordinator/transactional/test_forgetful_server.py"
        "::test_a_run_that_cannot_be_told_its_last_write_was_lost_does_not_say_done",
        spared="in the simulation the server goes back when it is called, and after the last commit this run calls no more",
    ),
    mutant(
        "reads-of-any-moment",
        "An executor believes what it reads, at whatever txid and of whichever run the state is.",
        Patch(
            "state/redis_owner/reader.py", "        if not is_own or committed_txid != as_of_txid:", "        if False:"
        ),
        Patch("state/redis_owner/reader.py", "        if is_own and committed_txid < as_of_txid:", "        if False:"),
    ),
)
