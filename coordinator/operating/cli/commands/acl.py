"""``txbatch acl``: the least rights that a server's user needs to run a topology."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.operating.cli.command import Level, TopologyId, command
from coordinator.operating.cli.terminal import say
from state.keys import Keys, check_name
from state.records.durability import DurabilityLevel
from state.redis_client.rights import acl_rules


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
    level = durability or DurabilityLevel.MEMORY
    rules = acl_rules(Keys(topology_id), loads_functions=functions, level=level)
    name = topology_id if user is None else check_name("user name", user)
    say(f"user {name} {' '.join(rules)} >PASSWORD")  # without the leading ``user``, for ACL SETUSER
