"""Seeds that have failed once, each with what it found; they are played by every run of the tests."""

from __future__ import annotations

PERMANENT = {
    123: "a committer's error on input that another execution had left stopped the run",
    208: "a damaged verdict ended the run instead of the group",
    246: "a committer's error on input that another execution had left stopped the run",
    358: "two ackers read two executions of one emitter task, and a row was committed twice",
    702052: "a group that crashed late made waves larger than those that had taken too long",
    706990: "an error of the simulation: after a stopped run had stored an older offset, no other began",
    912001: "an error of the simulation: a run stopped after its last answer was blamed for damage that came later",
    912208: "the same, found in another kind of spout",
    922628: "half of a write, a drop and a new start, applied under a takeover of the old life, were counted alike",
}
"""Seed -> what it found. A seed stands for a schedule only as long as nothing draws otherwise; keep them anyway."""
