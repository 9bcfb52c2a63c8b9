"""Which names a project may have."""

from __future__ import annotations

import pytest

from coordinator.operating.starter.project_name import LENGTH_MAX, check_project_name
from state.errors import TopologyError


def nowhere(name: str) -> str | None:
    return None


@pytest.mark.parametrize("name", ["visits", "my_shop", "a", "word2vec", "x" * LENGTH_MAX])
def test_a_package_name_is_taken(name: str) -> None:
    check_project_name(name, nowhere)


REFUSED = {
    "": "is not a package name",
    ".": "is not a package name",
    "../up": "is not a package name.*, such as up$",
    "My-Shop": "is not a package name.*, such as my_shop$",
    "2visits": "is not a package name.* beginning with a letter$",
    "_private": "is not a package name.*, such as private$",
    "visits ": "is not a package name.*, such as visits$",
    "vis\nits": "is not a package name",
    "größe": "is not a package name",
    "x" * (LENGTH_MAX + 1): "is not a package name; use up to 30 ",
    "state": "one of txbatch's own packages",
    "coordinated_bolt": "one of txbatch's own packages",
    "txbatch": "one of txbatch's own packages",
    "tests": "also a folder of every project",
    "data": "also a folder of every project",
    "class": "is a keyword of Python",
    "json": "module of Python's standard library",
}


@pytest.mark.parametrize(("name", "why"), REFUSED.items())
def test_any_other_name_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(TopologyError, match=why):
        check_project_name(name, nowhere)


def test_the_name_of_an_installed_package_is_refused_with_its_place() -> None:
    with pytest.raises(TopologyError, match=r"'shop' is taken: /lib/shop is installed"):
        check_project_name("shop", {"shop": "/lib/shop"}.get)
