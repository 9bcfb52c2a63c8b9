"""``txbatch plan``: how a run would execute a topology, as text or Mermaid; starts nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from coordinator.operating.cli.command import AsJson, FactoryTarget, Parameters, Slots, command
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.operating.topology_plan import plan as plan_of
from state.errors import TopologyError


class PictureFormat(StrEnum):
    TEXT = "text"
    MERMAID = "mermaid"


@command
def plan(
    *,
    target: FactoryTarget,
    parameters: Parameters = None,
    picture_format: Annotated[
        PictureFormat | None, typer.Option("--format", help="text or mermaid. [default: text]", show_default=False)
    ] = None,
    slots: Slots = None,
    as_json: AsJson = False,
) -> None:
    """Show how a run would execute a topology: stages, chains, phases, groupings, states. Starts nothing.

    --format mermaid prints a flowchart for Markdown.
    """
    if as_json and picture_format is not None:
        raise TopologyError(f"--json and --format {picture_format} exclude each other; give one of them")
    with user_output_aside():
        topology, _ = load_topology(target, parameters)
        made = plan_of(topology, slots=slots)
    if as_json:
        say_json(made.to_dict())
        return
    text = made.mermaid().rstrip("\n") if picture_format is PictureFormat.MERMAID else made.text()
    say(*text.split("\n"))
