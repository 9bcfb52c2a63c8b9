"""``txbatch init``: writes a small project that runs and tests at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.operating.cli.command import command
from coordinator.operating.cli.terminal import say
from coordinator.operating.starter.new_project import write_project
from state.errors import TopologyError
from state.printable import counted

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the project, its folder and its Python package.")]
NEXT = """{name}/ has a topology, its tests and sample data in {files}. Next:

  cd {name}
  txbatch run {name}.topology:topology    count the sample data, exactly once
  pip install -e '.[dev]' && pytest       run the tests: no Spark, no server
  less README.md                          what is where, and how to make it yours"""


@command
def init(*, name: Name) -> None:
    """Write a small project into a new folder: a topology, its tests, sample data and a README."""
    try:
        files = write_project(name, Path.cwd())
    except OSError as error:
        raise TopologyError(f"project {name!r} cannot be written: {error}; nothing of it is left") from error
    say(*NEXT.format(name=name, files=counted(len(files), "file")).split("\n"))
