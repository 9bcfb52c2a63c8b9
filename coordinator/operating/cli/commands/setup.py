"""``txbatch init`` and ``acl``: what is done once, before the first run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.operating.cli.command import Level, TopologyId, command
from coordinator.operating.cli.terminal import say
from coordinator.operating.starter.new_project import VARIANTS, write_project
from state.errors import TopologyError
from state.keys import Keys, check_name
from state.printable import counted
from state.records.durability import DurabilityLevel
from state.redis_client.rights import acl_rules
from state.values.shards import SHARDS_MAX

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the project, its folder and its Python package.")]
NEXT = """{name}/ has a topology, its tests and sample data in {files}. Next:

  cd {name}
  txbatch run {name}.topology:topology    {count}, exactly once
  pip install -e '.[dev]' && pytest       run the tests: no Spark, no server
  less README.md                          what is where, and how to make it yours"""


@command
def init(
    *,
    name: Name,
    classes: Annotated[bool, typer.Option("--classes", help="With bolt classes, in place of the short form.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Reads CSV files, in place of JSON Lines.")] = False,
    kafka: Annotated[bool, typer.Option("--kafka", help="Reads a Kafka topic, in place of JSON Lines.")] = False,
) -> None:
    """Write a small project into a new folder: a topology, its tests, sample data and a README."""
    chosen = [variant for variant, is_chosen in zip(VARIANTS, (classes, csv, kafka), strict=True) if is_chosen]
    if len(chosen) > 1:
        raise TopologyError(f"init got --{' and --'.join(chosen)}; give one of them")
    try:
        files = write_project(name, Path.cwd(), *chosen)
    except OSError as error:
        raise TopologyError(f"project {name!r} cannot be written: {error}; nothing of it is left") from error
    count = "count the messages of a topic" if kafka else "count the sample data"
    say(*NEXT.format(name=name, count=count, files=counted(len(files), "file")).split("\n"))


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
    expiring_fields: Annotated[
        bool, typer.Option("--expiring-fields", help="Fields of its hashes expire, which takes Redis 7.4 or Valkey 9.")
    ] = False,
    shards: Annotated[
        int, typer.Option("--shards", metavar="N", min=1, max=SHARDS_MAX, help="How many shards hold its state.")
    ] = 1,
    durability: Level = None,
) -> None:
    """Print a line for the server's ACL file: a user with the least rights that the topology needs."""
    level = durability or DurabilityLevel.MEMORY
    keys = [Keys(topology_id), *(Keys(topology_id).shard(number) for number in range(shards if shards > 1 else 0))]
    rules = acl_rules(*keys, loads_functions=functions, level=level, fields_expire=expiring_fields)
    name = topology_id if user is None else check_name("user name", user)
    say(f"user {name} {' '.join(rules)} >PASSWORD")  # without the leading ``user``, for ACL SETUSER
