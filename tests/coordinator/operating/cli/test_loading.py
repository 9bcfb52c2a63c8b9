"""``MODULE:FACTORY`` is found, or a sentence says what is wrong and where."""

from __future__ import annotations

import json
import re
import sys
from functools import partial

import pytest

import state
from coordinator.operating.cli.loading import load_factory, make_topology
from coordinator.plain.plain_topology import PlainTopology
from coordinator.topology.building.topology import Topology
from state.errors import TopologyError
from tests.support.approved import approved, refusals
from tests.support.cli.jobs import JobFolder


def make(target: str) -> Topology | PlainTopology:
    factory, _ = load_factory(target)
    return make_topology(factory, target, {})


def refusal_of(target: str) -> str:
    with pytest.raises(TopologyError) as refusal:
        make(target)
    return str(refusal.value)


def test_a_module_of_the_current_directory_comes_first(folder: JobFolder) -> None:
    folder.write_job()
    factory, module_name = load_factory("job_of_lines:topology")
    assert module_name == "job_of_lines"
    assert make_topology(factory, "f", {"topology_id": "mine"}).topology_id == "mine"


def test_a_folder_is_a_package_without_an_init(folder: JobFolder) -> None:
    folder.write_job("some_jobs/lines.py")
    assert load_factory("some_jobs.lines:topology")[1] == "some_jobs.lines"


def test_a_file_is_imported_from_its_folder_and_finds_its_neighbours(folder: JobFolder) -> None:
    folder.write_job("some_jobs/job_of_lines.py", "import job_neighbour, job_library")
    folder.write("some_jobs/job_neighbour.py", "")
    folder.write("job_library.py", "")
    assert load_factory("some_jobs/job_of_lines.py:topology")[1] == "job_of_lines"


def test_a_file_of_a_package_is_imported_as_a_part_of_it(folder: JobFolder) -> None:
    folder.write("src/job_package/__init__.py", "")
    folder.write("src/job_package/other.py", "")
    folder.write_job("src/job_package/lines.py", "from . import other")
    assert load_factory("src/job_package/lines.py:topology")[1] == "job_package.lines"


def test_packages_named_like_ours_do_not_get_in_the_way(folder: JobFolder) -> None:
    folder.write("state/__init__.py", "raise RuntimeError('not this one')")
    folder.write("coordinator/__init__.py", "raise RuntimeError('nor this one')")
    folder.write_job()
    load_factory("job_of_lines:topology")
    assert sys.modules["state"] is state


MISNAMED = [
    *("", "job", "job:", ":topology", "job.py", "no_such_job:topology", "some_jobs/lines:topology"),
    *("some_jobs/lines.py:topology", "job_of_lines:topologie", "job_of_lines:broken"),
    *("json.py:topology", "state.py:topology", "my-job.py:topology"),
]


def test_what_is_missing_or_misnamed_is_said_with_what_is_there(folder: JobFolder) -> None:
    folder.write_job(more="def another(): ...\ndef _hidden(): ...\nbroken = 3\n")
    for name in ("json.py", "state.py", "my-job.py"):
        folder.write_job(name)
    said = refusals({target: partial(make, target) for target in MISNAMED}, TopologyError)
    approved(said, "factories", FOLDER=folder.path, LIBRARY=json.__file__, OURS=state.__file__)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "import json\n\njson.loads('{')\n",
            r"importing 'job_bad' raised json\.decoder\.JSONDecodeError: .*\(FILE, line 3\)",
        ),
        (
            "\nimport no_such_library\n",
            r"importing 'job_bad' raised ModuleNotFoundError: No module named 'no_such_library' \(FILE, line 2\)",
        ),
        ("def topology(:\n", r"importing 'job_bad' raised SyntaxError: invalid syntax \(FILE, line 1\)"),
        ("import sys\nsys.exit('bye')\n", r"importing 'job_bad' raised SystemExit: bye.*"),
        (
            "def topology():\n    return {}['key']\n",
            r"factory 'job_bad:topology' raised KeyError: 'key' \(FILE, line 2\)",
        ),
        (
            "def topology(): return 'lines'\n",
            r"factory 'job_bad:topology' returned 'lines'; return the result of build\(\), of a "
            r"TransactionalTopologyBuilder or TopologyBuilder, or of topology\(id\), of a stream",
        ),
    ],
    ids=["raises", "imports what is missing", "syntax error", "exits", "factory raises", "factory returns text"],
)
def test_a_module_or_factory_that_fails_is_refused_with_its_place(folder: JobFolder, text: str, refusal: str) -> None:
    file = folder.write("job_bad.py", text)
    assert re.fullmatch(refusal.replace("FILE", re.escape(str(file))), refusal_of("job_bad:topology"))


def test_a_refusal_of_the_builder_is_handed_on_as_it_is(folder: JobFolder) -> None:
    folder.write("job_bad.py", "from coordinator import TextFiles\ndef topology(): TextFiles('*.txt', 0)\n")
    assert refusal_of("job_bad:topology").startswith("lines_per_batch=0 of TextFiles has to be")
