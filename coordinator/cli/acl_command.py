"""``txbatch acl``: the least a server's user must be allowed to run a topology."""

from __future__ import annotations

from state.keys import Keys, check_name
from state.redis_rights import acl_rules


def show_acl(topology_id: str, user: str | None, *, loads_functions: bool) -> None:
    """Prints one line for the server's ACL file; after ``ACL SETUSER`` it reads the same without ``user``.

    Args:
        topology_id: the topology the user runs.
        user: name of the user; None takes the topology's.
        loads_functions: whether the user loads the function library too.

    Raises:
        TopologyError: the topology id or user name is not a valid name.
    """
    rules = acl_rules(Keys(topology_id), loads_functions=loads_functions)
    name = topology_id if user is None else check_name("user name", user)
    print(f"user {name} {' '.join(rules)} >PASSWORD")
