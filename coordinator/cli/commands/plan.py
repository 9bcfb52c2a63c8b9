"""``txbatch plan``: how a run would execute a topology, as text, SVG or Mermaid; starts nothing."""

from __future__ import annotations

import contextlib
import sys
from enum import StrEnum
from typing import Annotated

import typer

from coordinator.cli.command_options import AsJson, Debug, Parameters, Slots, command_errors
from coordinator.cli.loading import load_factory, make_topology
from coordinator.cli.parameters import parse_pairs
from coordinator.cli.streams.terminal import say, say_json
from coordinator.planning.topology_plan import TopologyPlan
from coordinator.planning.topology_plan import plan as plan_of
from state.errors import TopologyError


class PictureFormat(StrEnum):
    """What a plan is printed as."""

    TEXT = "text"
    SVG = "svg"
    MERMAID = "mermaid"


def plan(
    *,
    target: Annotated[str, typer.Argument(metavar="MODULE:FACTORY", help="Makes the topology, as for `txbatch run`.")],
    parameters: Parameters = None,
    picture_format: Annotated[
        PictureFormat | None, typer.Option("--format", help="text, svg or mermaid. [default: text]", show_default=False)
    ] = None,
    slots: Slots = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show how a run would execute a topology: stages, chains, phases, groupings, states. Starts nothing.

    --format svg prints a picture to keep in a file, --format mermaid a flowchart for Markdown.
    """
    with command_errors(debug=debug):
        if as_json and picture_format is not None:
            raise TopologyError(f"--json and --format {picture_format} exclude each other; give one of them")
        # standard output is for the result: what user code prints goes to standard error
        with contextlib.redirect_stdout(sys.stderr):
            factory, _ = load_factory(target)
            made = plan_of(make_topology(factory, target, parse_pairs("-p", parameters or ())), slots=slots)
        if as_json:
            say_json(made.to_dict())
        else:
            say(*_shown(made, picture_format).split("\n"))


def _shown(made: TopologyPlan, picture_format: PictureFormat | None) -> str:
    match picture_format:
        case PictureFormat.SVG:
            return made.svg().rstrip("\n")
        case PictureFormat.MERMAID:
            return made.mermaid().rstrip("\n")
    return made.text()
