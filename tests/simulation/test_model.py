"""The model in docs/model does what the code does: traces of simulated servers and runs are played by its rules.

SPIN plays each trace as a program with one schedule. Without SPIN the tests are skipped at a desk and fail in CI.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.simulation import durable
from tests.simulation.model_trace import MODEL, STEPS_MAX, Executed, Trace, program, traced
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.patch import LIBRARY, Patch, planted
from tests.simulation.poison import PoisonSimulation
from tests.simulation.scenario import Scenario
from tests.simulation.simulation import simulate

SEEDS = max(4, int(os.environ.get("TXBATCH_SIMULATION_SEEDS", "60")) // 100)
KINDS = ("cut", "partitioned", "opaque", "told cut")
FEW = 40
"""Steps of a trace of changed code, which may never end."""
AGREE = "all steps agree"
NAMED = re.compile(r"(\w+\.(?:lua|py)): ([\w.]+(?:, [\w.]+)*)(?=[;:.]| \*/)")
"""A file and the functions of it that a rule stands for."""


@pytest.fixture
def spin() -> str:
    return shutil.which("spin") or absent("spin on PATH")


def trace_of(seed: int, kind: str, most: int = STEPS_MAX) -> Trace:
    with traced(most) as trace:
        simulate(Scenario.of(seed, kind))
    return trace


def play(trace: Trace, folder: Path, definitions: Iterable[str] = ()) -> str:
    """Returns the end of what SPIN says about a trace."""
    text = "".join(f"#define {each}\n" for each in definitions) + program(trace)
    (folder / "trace.pml").write_text(text)
    command = ["spin", "-T", "-B", "trace.pml"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return "\n".join((said.stdout + said.stderr).splitlines()[-12:])


@pytest.mark.parametrize("rules", ["server.pml", "run.pml"])
def test_the_functions_that_rules_stand_for_are_there(rules):
    named = NAMED.findall((MODEL / rules).read_text())
    for file, names in named:
        [path] = [
            path
            for room in ("state", "coordinator")
            for path in (MODEL.parents[1] / room).rglob(file)
            if "plain" not in path.parts
        ]
        for name in names.strip(".").split(", "):
            assert re.search(rf"(function|def|class) {name.rpartition('.')[2]}\b", path.read_text()), (
                f"{file} has no {name}"
            )
    assert len(named) > 15


@pytest.mark.often("cut", "partitioned")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_answer_and_change_what_the_function_library_does(spin, tmp_path, kind):
    answers, wanted = set[str](), {"OK", "ALREADY", "REGRESSED", "RACED"}
    for seed in range(5 * SEEDS):
        if seed >= SEEDS and answers >= wanted:  # which seeds meet what changes with every call that a run makes
            break
        trace = trace_of(seed, kind)
        answers |= {step.status for step in trace.steps if isinstance(step, Executed)}
        said = play(trace, tmp_path)
        assert AGREE in said, f"seed {seed}, {kind}: {said}"
    assert answers >= wanted


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", ["fsync", "replica"])
def test_the_rules_follow_a_run_that_asks_for_barriers(spin, tmp_path, level):
    with traced(most=sys.maxsize) as trace:
        durable.play(0, level, "told cut")
    assert any(isinstance(step, Executed) and step.call["kind"] == "BARRIER" for step in trace.steps)
    assert AGREE in play(trace, tmp_path)


@pytest.mark.timeout(600)
def test_the_rules_follow_batches_into_quarantine_and_out_of_it(spin, tmp_path):
    fields = set[str]()
    for seed in range(4):
        with traced() as trace, suppress(Exception):  # a trace that is long enough ends its simulation
            PoisonSimulation(Scenario.of(seed, "cut")).play()
        fields |= {name for step in trace.steps if isinstance(step, Executed) for name in step.call}
        assert AGREE in play(trace, tmp_path)
    assert fields >= {"aside_limit", "taken"}


# Whether these tests can fail --------------------------------------------------------------------------------------


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mistake",
    [
        "TAKEOVER_KEEPS_REVISION",
        "NO_FENCE",
        "NO_REVISION",
        "NEVER_ALREADY",
        "ACQUIRE_WITHOUT_COMPARE",
        "METADATA_CLEANED_ONE_TOO_FAR",
    ],
)
def test_a_rule_that_is_changed_in_the_model_alone_is_found(spin, tmp_path, mistake):
    said = (play(trace_of(seed, "cut"), tmp_path, [mistake]) for seed in range(4))
    assert any("assertion violated" in each for each in said)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "patch",
    [
        Patch(LIBRARY, "decimal(tonumber(found[5]) + 1)", "found[5]"),
        Patch(LIBRARY, "  put_pairs(metadata, argv, puts + 1, forgets - 1)\n  delete_fields", "  delete_fields"),
        *MUTANTS["metadata-cleaned-one-too-far"].patches,
    ],
    ids=["a takeover keeps the revision", "a commit stores no metadata", "a commit forgets its own position"],
)
def test_a_rule_that_is_changed_in_the_code_alone_is_found(spin, tmp_path, patch):
    kind = "opaque" if "put_pairs" in patch.old else "cut"
    for seed in range(4):
        with planted([patch]):
            trace = trace_of(seed, kind, FEW)
        if "assertion violated" in play(trace, tmp_path):
            return
    pytest.fail("four traces of the changed code agree with the rules")
