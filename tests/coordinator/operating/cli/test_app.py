"""The list of commands: by purpose, at once, and in the words of the commands themselves."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from coordinator.operating.cli.app import PLACES, Commands
from tests.support.cli.in_process import txbatch

SLOW = {"pyspark", "py4j", "redis", "fakeredis", "msgpack", "rich", "pyarrow", "numpy", "asyncio", "opentelemetry"}
GROUPS = ("quarantine", "dead-letters")
PROGRAM = """
import json, sys
sys.argv = ["txbatch", *{arguments}]
from coordinator.operating.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    """Returns the modules that a command has imported."""
    program = PROGRAM.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_waits_for_no_library_and_no_room_but_that_of_the_command_line() -> None:
    modules = imported("--help")
    assert {name.partition(".")[0] for name in modules} & SLOW == set()
    ours = {
        name for name in modules if name.partition(".")[0] in ("state", "coordinated_bolt", "committers", "coordinator")
    }
    cli = "coordinator.operating.cli"
    assert ours == {
        *("coordinated_bolt", "coordinated_bolt.neighbours", "coordinator", "coordinator.operating", cli),
        *(f"{cli}.app", f"{cli}.entry", f"{cli}.standard_streams", f"{cli}.terminal"),
        *("state", "state.lazy_exports", "state.printable"),
    }


def test_an_explanation_needs_neither_spark_nor_a_client_of_redis() -> None:
    assert {name.partition(".")[0] for name in imported("explain", "fenced")} & {"pyspark", "py4j"} == set()


def test_the_list_has_every_command_in_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    listed = {name: summary for commands in PLACES.values() for name, (_, summary) in commands.items()}
    for name, command in Commands().items():
        said = " ".join((command.help or "").split())
        assert said.startswith(listed[name]), name
        rest = said.removeprefix(listed[name])
        assert not rest or listed[name].endswith(".") or rest[0] in ".,:;", f"{name} is cut within a phrase"
    txbatch("--help")
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{heading}") for heading in ("Start:", "Look:", "Repair:", "Develop:")]
    assert places == sorted(places)
    assert shown.index("  init ") < shown.index("  prove ")


def test_the_options_of_a_run_are_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    txbatch("run", "--help")
    shown = capsys.readouterr().out
    (options,) = [part for part in shown.split("\n\n") if part.startswith("Options:")]
    assert options.count("\n  -") <= 5
    for heading, option in (("Spark:", "--master"), ("Failures:", "--on-poison"), ("Watching:", "--traces")):
        (group,) = [part for part in shown.split("\n\n") if part.startswith(heading)]
        assert option in group


def test_an_interruption_of_the_imports_is_a_sentence(monkeypatch: pytest.MonkeyPatch, complaint) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert complaint("status words", code=130) == "txbatch: stopped before anything was started\n"


def test_an_interruption_before_the_list_of_commands_is_there_is_a_sentence(monkeypatch, complaint) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "coordinator.operating.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "coordinator.operating.cli.app")
    monkeypatch.delattr("coordinator.operating.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert complaint("--help", code=130) == "txbatch: stopped before anything was started\n"


def test_an_unknown_command_is_refused_with_one_that_is_spelled_alike(complaint) -> None:
    assert "No such command 'statsu'" in complaint("statsu")
