"""Bugs in what notices half of a write that the server had lost, and in what keeps it out of a topology's next life."""

from __future__ import annotations

from tests.simulation.mutants.mutant import mutant
from tests.simulation.mutants.patch import LIBRARY, Patch

MUTANTS = (
    mutant(
        "half-a-write-unnoticed",
        "Nothing compares the writes that were begun with those that were ended.",
        Patch(LIBRARY, "  if begun == ended then\n    return nil\n", "  if true then\n    return nil\n"),
    ),
    mutant(
        "begun-assigned",
        "A write sets the number of begun ones instead of counting it up, so half of a lost one leaves no trace.",
        Patch(
            LIBRARY,
            "  write.begun = decimal(redis.call('HINCRBY', control, 'begun', step or 1))\n",
            "  write.begun = decimal(tonumber(redis.call('HGET', control, 'begun') or '0') + (step or 1))\n"
            "  redis.call('HSET', control, 'begun', write.begun)\n",
        ),
    ),
    mutant(
        "begun-counted-last",
        "A commit counts itself as begun after its data.",
        Patch(
            LIBRARY,
            "  begin_write(control, owner)\n"
            "  local expired = run_steps(steps)\n"
            "  local oldest = write_history(keys, group, kept, argv, forgets + 1, sections - 1)\n",
            "  local expired = run_steps(steps)\n"
            "  local oldest = write_history(keys, group, kept, argv, forgets + 1, sections - 1)\n"
            "  begin_write(control, owner)\n",
        ),
    ),
    mutant(
        "readers-see-halves",
        "A committer may read state to which half of a lost write was applied.",
        Patch(LIBRARY, "  if torn then\n", "  if false then\n"),
    ),
    mutant(
        "drop-names-what-it-finds",
        "A drop names only the keys that are there, so half of a lost write creates the others in the topology's next life.",
        Patch("state/redis_admin/drop.py", "[*own, *record_types(keys), *map(keys.state, owned.whole())]", "[*own]"),
        dies_in="tests/state/redis_owner/test_half_a_write.py"
        "::test_half_a_write_is_not_in_the_next_life_of_a_topology_that_was_dropped",
        spared="it takes a write that is torn before the first commit, a drop and one more start of the server",
    ),
    mutant(
        "lives-count-alike",
        "Every life of a topology counts its writes from the same number.",
        Patch(LIBRARY, "  return decimal(1 + (tonumber(string.sub(generation, 1, 8), 16) or 0))\n", "  return '1'\n"),
        dies_in="tests/state/redis_owner/test_half_a_write.py"
        "::test_two_lives_of_a_topology_do_not_count_their_writes_alike",
        spared="it takes two cuts with a drop and a new start between them, and two lives that come equally far",
    ),
)
