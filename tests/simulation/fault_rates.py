"""The faults of the simulation, and how often each may strike in a swarm."""

from __future__ import annotations

from coordinator.testing.simulated.fault_plan import DRIVER_POINTS, PLAIN_POINTS, TASK_POINTS, swarm_of

RATES: dict[str, tuple[float, ...]] = {
    # the server, at each call
    "server.loses_request": (0.01, 0.05, 0.2),
    "server.loses_answer": (0.01, 0.05, 0.2),
    "server.answers_late": (0.02, 0.1),
    "server.applies_later": (0.02, 0.1),
    "server.repeats_earlier_call": (0.02, 0.1),
    "server.goes_back": (0.005, 0.03, 0.1),
    "server.comes_back_empty": (0.005,),
    "server.is_restored": (0.005, 0.02),
    "server.loses_library": (0.01, 0.05),
    "server.is_busy": (0.02, 0.1),
    "server.refuses": (0.005, 0.02),
    "server.has_another_version": (0.0, 0.0, 0.002, 0.01),
    "server.is_unfit": (0.0, 0.002, 0.01),
    "server.lends_a_key": (0.0, 0.0, 0.005, 0.02),
    # the driver's process, at each call and each wait
    "driver.is_killed": (0.002, 0.01, 0.03),
    "driver.is_stopped": (0.005, 0.02),
    "driver.has_a_rival": (0.005, 0.02),
    # the operator, at each start
    "operator.drops": (0.0, 0.0, 0.01, 0.05),
    "operator.changes_input": (0.0, 0.0, 0.1, 0.3),
    "operator.changes_states": (0.0, 0.1, 0.3),
    "operator.changes_code": (0.3,),
    "operator.accepts_changes": (0.3,),
    # tasks of a wave
    "task.is_retried": (0.02, 0.1),
    "task.has_a_twin": (0.02, 0.1),
    "stage.is_recomputed": (0.05, 0.3),
    "wave.is_lost": (0.01, 0.05),
    "wave.hangs": (0.005, 0.02),
    # frames on their way
    "frame.is_lost": (0.002, 0.01),
    "frame.is_doubled": (0.005, 0.02),
    "frame.is_altered": (0.002, 0.01),
    # user code
    "bolt.fails": (0.005, 0.03),
    "bolt.draws": (0.2,),
    "bolt.exceeds": (0.0, 0.02, 0.1),
    "spout.fails": (0.01,),
    "input.moves": (0.3,),
}
"""Name -> the rates a swarm may draw, apart from as many zeros."""

RATES |= {f"kill@{point}": (0.0, 0.0, 0.0, 0.03, 0.2) for point in (*DRIVER_POINTS, *PLAIN_POINTS)}
RATES |= {f"stop@{point}": (0.0, 0.0, 0.0, 0.03, 0.1) for point in (*DRIVER_POINTS, *PLAIN_POINTS)}
RATES |= {f"die@{point}": (0.0, 0.003, 0.02) for point in TASK_POINTS if point != "frame.packed"}
RATES["die@frame.packed"] = (0.0, 0.0002, 0.001)
RATES["server.tears_a_write"] = (0.0, 0.005, 0.02)
RATES["server.moves"] = (0.005, 0.02)
"""The last of them, so that older seeds draw the other faults as they always did."""


def swarm_rates(seed: object) -> dict[str, float]:
    """How often each fault of a seed's swarm strikes."""
    return swarm_of(RATES, seed)
