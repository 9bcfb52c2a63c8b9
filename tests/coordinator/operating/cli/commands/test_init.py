"""``txbatch init`` as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli.in_process import txbatch


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_init_writes_a_project_and_says_what_to_do_next(tmp_path: Path, output) -> None:
    said = output("init shop")
    assert said.startswith("shop/ has a topology, its tests and sample data in 7 files. Next:\n")
    assert "  txbatch run shop.topology:topology " in said
    assert (tmp_path / "shop" / "shop" / "topology.py").is_file()


@pytest.mark.parametrize(
    ("option", "source"),
    [("--csv", "CsvFiles("), ("--kafka", "KafkaTopic("), ("--classes", "TransactionalTopologyBuilder(")],
)
def test_a_project_may_read_something_else_or_have_classes(tmp_path: Path, output, option: str, source: str) -> None:
    said = output(f"init shop {option}")
    assert source in (tmp_path / "shop/shop/topology.py").read_text()
    assert ("count the messages of a topic, exactly once" in said) is (option == "--kafka")


def test_two_projects_in_one_are_refused(tmp_path: Path, complaint) -> None:
    assert complaint("init shop --csv --kafka").startswith("txbatch: init got --csv and --kafka; give one of them")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_fit_ends_with_2_and_writes_nothing(tmp_path: Path, complaint) -> None:
    assert complaint("init My-Shop").startswith("txbatch: project name 'My-Shop' is not a package name;")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_ends_with_2_and_the_reason(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "shop")

    monkeypatch.setattr(Path, "mkdir", refused)
    assert txbatch("init", "shop") == 2
    assert (
        "txbatch: project 'shop' cannot be written: [Errno 13] Permission denied: 'shop'; nothing of it is left\n"
        in capsys.readouterr().err
    )
