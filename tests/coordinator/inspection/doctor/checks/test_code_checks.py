"""The way from a factory to tasks, judged up to the step that fails."""

from __future__ import annotations

import pytest

from coordinator.inspection.doctor.checks.code_checks import STEPS, CodeFacts, check_code
from coordinator.inspection.finding import Weight
from state.errors import SourceError, TopologyError

SOUND = CodeFacts("jobs.py:words", "words", 3, fingerprint="text files")


def test_code_that_is_ready_has_a_good_finding_for_each_step():
    findings = check_code(SOUND)
    assert [finding.subject for finding in findings] == list(STEPS)
    assert findings[0].found == "jobs.py:words makes topology 'words' of 3 components"
    assert {finding.weight for finding in findings} == {Weight.OK}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_is_the_last_and_keeps_what_the_error_says_to_do(step: str):
    error = TopologyError("it is broken; fix it; then run it")
    findings = check_code(CodeFacts("jobs.py:words", "words", 3, failed_at=step, error=error))
    assert [finding.subject for finding in findings] == list(STEPS)[: list(STEPS).index(step) + 1]
    assert (findings[-1].weight, findings[-1].found) == (Weight.FAIL, "it is broken")
    assert findings[-1].remedy == "fix it; then run it"


def test_an_error_without_a_remedy_still_says_where_to_look():
    findings = check_code(CodeFacts("jobs.py:words", failed_at="input", error=SourceError("gone")))
    assert (findings[-1].found, findings[-1].remedy) == ("gone", "see what it says")


def test_a_plain_topology_has_no_input_to_find():
    assert check_code(CodeFacts("jobs.py:words", "words", 2))[-1].found == "a plain topology"
