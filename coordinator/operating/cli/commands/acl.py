"""``txbatch acl``: the least rights that a server's user needs to run a topology."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.operating.cli.command import command
from coordinator.operating.cli.command_options import Level, TopologyId
from coordinator.operating.cli.terminal import say
from state.keys import Keys, check_name
from state.records.durability import DurabilityLevel
from state.redis_client.rights import acl_rules


def show_acl(
    topology_id: str, user: str | None, *, loads_functions: bool, level: DurabilityLevel = DurabilityLevel.MEMORY
) -> None:
    """Prints one line for the server's ACL file; drop the leading ``user`` to give it to ``ACL SETUSER``.

    Args:
        topology_id: the topology the user runs.
        user: name of the user; None uses the topology id.
        loads_functions: whether the user may also load the function library.
        level: the durability that the topology's runs ask for.

    Raises:
        TopologyError: the topology id or user name is not a valid name.
    """
    rules = acl_rules(Keys(topology_id), loads_functions=loads_functions, level=level)
    name = topology_id if user is None else check_name("user name", user)
    say(f"user {name} {' '.join(rules)} >PASSWORD")


@command
def acl(
    *,
    topology_id: TopologyId,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the user.  [default: the topology id]")
    ] = None,
    functions: Annotated[
        bool,
        typer.Option(
            "--functions/--no-functions", help="Whether the user may load the function library, or finds it loaded."
        ),
    ] = True,
    durability: Level = None,
) -> None:
    """Print a line for the server's ACL file: a user with the least rights that the topology needs."""
    show_acl(topology_id, user, loads_functions=functions, level=durability or DurabilityLevel.MEMORY)
