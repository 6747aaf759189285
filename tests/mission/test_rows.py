"""Every row is held by tests that exist, or says what is not built."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.mission.rows import GROUPS, Row

TESTS = Path(__file__).parents[1]
EVERY = [(f"{group}: {row.name}", row) for group, rows in GROUPS.items() for row in rows]


@cache
def names_in(module: str) -> frozenset[str]:
    """The names of the tests of a module."""
    tree = ast.parse((TESTS / module).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


def missing(row: Row) -> list[str]:
    """The tests of a row that do not exist."""
    found = []
    for node in row.tests:
        module, _, name = node.partition("::")
        exists = (TESTS / module).is_file() and (name in names_in(module) if name else bool(names_in(module)))
        if not exists:
            found.append(node)
    return found


@pytest.mark.parametrize("row", [row for _, row in EVERY], ids=[name for name, _ in EVERY])
def test_row_is_held_by_tests_or_says_what_is_not_built(row: Row) -> None:
    assert row.tests or row.missing
    assert missing(row) == []


def test_rows_have_names_of_their_own() -> None:
    names = [name for name, _ in EVERY]
    assert len(set(names)) == len(names)


def test_every_test_of_this_folder_holds_a_row() -> None:
    named = {node for _, row in EVERY for node in row.tests}
    here = {
        f"mission/{path.name}::{name}"
        for path in Path(__file__).parent.glob("test_*.py")
        if path != Path(__file__)
        for name in names_in(f"mission/{path.name}")
    }
    assert here - named == set()


def test_tests_that_do_not_exist_are_found() -> None:
    row = Row(name="none", tests=("mission/test_rows.py::test_nothing", "mission/test_none.py"))
    assert missing(row) == list(row.tests)
