"""Planted bugs die: the quickest in every run of the tests, all of them with TXBATCH_MUTANTS=all.

``python -m tests.simulation.mutants`` hunts any of them and makes mutants/README.md.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinated_bolt.completeness import tracking
from coordinator.transactional.machine.transaction_records import TransactionRecords
from state.redis_client import function_library
from state.redis_client.function_library import library_code
from tests.simulation.mutants import results
from tests.simulation.mutants.catalogue import MUTANTS, THEMES
from tests.simulation.mutants.hunt import Hunt, hunt, quiet_violations
from tests.simulation.mutants.mutant import SIMULATION
from tests.simulation.mutants.patch import LIBRARY, ROOT, Patch, PatchError, mutated, planted
from tests.simulation.mutants.table import markdown

QUICK = (
    "no-revision-no-order",
    "no-fence-no-revision",
    "no-last-call",
    "critical-hole-in-metadata",
    "receipts-dropped",
    "receipts-rewritten",
    "committed-lags",
    "data-before-position",
    "position-before-data",
    "metadata-before-commit",
    "acquire-without-compare",
    "reads-of-any-moment",
    "failure-drops-itself-only",
    "gap-above-a-failure",
    "told-before-durable",
    "window-ignored",
    "early-commit-of-readers-believed",
    "metadata-cleaned-one-too-far",
    "failed-verdict-is-good",
    "residue-ignored",
    "reads-not-recorded",
    "earlier-writes-kept",
    "own-earlier-writes-unseen",
    "counts-and-residue-ignored",
    "instance-shared",
)
"""Found by one of the first seeds, in less than a minute together."""
SHOWN_WITHOUT_FAULTS = {
    "receipts-dropped",
    "receipts-rewritten",
    "metadata-before-commit",
    "told-before-durable",
    "window-ignored",
    "metadata-cleaned-one-too-far",
    "half-a-retry-sent",
    "opaque-from-committed-unchained",
    "plain-ack-value-not-xored",
    "plain-ack-leaves-pending",
    "plain-edge-not-anchored",
}
"""They break an invariant whenever they run, even if nothing goes wrong."""
HUNTED = [*MUTANTS] if os.environ.get("TXBATCH_MUTANTS") == "all" else [*QUICK]
SEEDS = int(os.environ.get("TXBATCH_MUTANT_SEEDS", "400"))
"""A mutant has to be found within this many seeds."""
TRACKING = "coordinated_bolt/completeness/tracking.py"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", HUNTED)
def test_a_planted_bug_is_found(name):
    ended = hunt(MUTANTS[name], range(SEEDS), spared_seeds=0)
    assert not ended.is_alive, f"{name} is alive after {ended.played} seeds: {MUTANTS[name].mistake}"


# What is true of all mutants, whether they are hunted or not -----------------------------------------------------


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_still_fits_the_code_and_leaves_it_as_it_was(name):
    mutant = MUTANTS[name]
    before = library_code()
    with planted(mutant.patches):
        assert mutated(mutant.patches)
    assert function_library.library_code() == before


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_every_mutant_plays_a_quiet_schedule_to_its_end_or_breaks_an_invariant_there():
    """None ends by an error of its own; most are right as long as nothing goes wrong, and these are never."""
    shown = {}
    for name, mutant in MUTANTS.items():
        if found := quiet_violations(mutant):
            shown[name] = set(found.values())
    assert shown.keys() == SHOWN_WITHOUT_FAULTS
    kinds = {name: {text.partition(":")[0] for text in texts} for name, texts in shown.items()}
    assert set().union(*kinds.values()) <= {"ViolatedError", "AssertionError", "SimulationStuckError"}, kinds


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own():
    names = [mutant.name for theme in THEMES.values() for mutant in theme]
    assert len(names) == len(set(names)) == len(MUTANTS)
    assert sum(mutant.dies_in == SIMULATION for mutant in MUTANTS.values()) >= 40
    assert len(set(QUICK)) >= 20


def test_a_mutant_that_is_spared_says_why_and_names_a_test_that_is_there():
    for mutant in MUTANTS.values():
        assert (mutant.dies_in == SIMULATION) == (not mutant.spared), mutant.name
        if mutant.spared:
            path, _, test = mutant.dies_in.partition("::")
            assert (ROOT / path).exists(), mutant.dies_in
            assert not test or f"def {test.rpartition('::')[2]}(" in (ROOT / path).read_text(), mutant.dies_in


def test_the_documentation_lists_them_all():
    text = (Path(__file__).parent / "mutants" / "README.md").read_text(encoding="utf-8")
    assert [name for name in MUTANTS if f"| **{name}** |" not in text] == []
    assert text.count("| **") == len(MUTANTS)


# How they are planted --------------------------------------------------------------------------------------------


def test_a_planted_method_runs_the_mutated_code_in_objects_that_exist_already():
    records = TransactionRecords([], committed_txid=4, new_attempt_id=lambda: 1)
    patch = Patch(
        "coordinator/transactional/machine/transaction_records.py",
        "return max(self._records, default=self.currtx - 1)",
        "return 77",
    )
    with planted([patch]):
        assert records.last_txid() == 77
    assert records.last_txid() == 4


def test_several_patches_of_one_file_apply_one_after_the_other():
    first = Patch(LIBRARY, "local RECEIPTS = 1024", "local RECEIPTS = 7")
    second = Patch(LIBRARY, "local RECEIPTS = 7", "local RECEIPTS = 8")
    with planted([first, second]):
        assert "local RECEIPTS = 8" in function_library.library_code()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("no such line", "", "occurs 0 times"),
        ("self", "this", r"occurs \d\d+ times"),
        ('SINGLE = "single"', 'SINGLE = "double"', "change no function"),
        ("    def id(self", "    def idea(self", r"adds or removes \['Tracking.id', 'Tracking.idea'\]"),
    ],
    ids=["missing", "ambiguous", "no function", "another function"],
)
def test_a_patch_that_does_not_fit_is_refused_and_plants_nothing(old, new, reason):
    code = tracking.Tracking.id.__code__
    with pytest.raises(PatchError, match=reason), planted([Patch(TRACKING, old, new)]):
        pytest.fail("it was planted")
    assert tracking.Tracking.id.__code__ is code


def test_results_survive_their_file_and_make_the_table(tmp_path):
    found = Hunt("no-fence", 7, 6, "one | two", "", 1.5)
    spared = Hunt("no-order", 30, None, "", "test_order", 2.5)
    results.write(tmp_path / "kept.json", {"no-fence": found, "no-order": spared})
    hunts = results.read(tmp_path / "kept.json")
    assert hunts == {"no-fence": found, "no-order": spared}
    table = markdown(hunts)
    assert f"| **no-fence** | {MUTANTS['no-fence'].mistake} | 7 | one / two |" in table
    assert f"| none in 30 | {MUTANTS['no-order'].spared}: *test_order* |" in table
    assert results.read(tmp_path / "none.json") == {}
