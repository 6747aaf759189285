"""The list of guards fits the code: each is found once, its tests are there, and those of a share fail without it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.mutants.guard import ROOT, Guard, path_of
from tests.mutants.guards import GUARDS, share
from tests.support import shares
from tests.support.commit_seed import commit_seed

# Of each commit others; `make mutants` takes out all.
_SHARE: Final = 1


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.name for guard in GUARDS])
def test_guard_is_found_once_and_its_tests_exist(guard: Guard) -> None:
    source = guard.path().read_text(encoding="utf-8")
    assert guard.taken_out(source) != source
    assert guard.tests
    for test in guard.tests:
        module, function = test.split("::")
        assert function in functions(path_of(module)), f"{module} has no {function}"


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_names_of_guards_are_unique() -> None:
    names = [guard.name for guard in GUARDS]
    assert len(set(names)) == len(names)


def test_share_is_the_same_for_the_same_seed() -> None:
    first, second = share(GUARDS, 3, "a"), share(GUARDS, 3, "a")
    assert [guard.name for guard in first] == [guard.name for guard in second]
    assert len({guard.name for guard in first}) == 3
    assert share(GUARDS, 3, "b") != first
    assert len(share(GUARDS, 1_000, "a")) == len(GUARDS)


def test_guard_whose_text_is_not_found_once_is_refused() -> None:
    guard = Guard(name="g", module="app.main", text="x", tests=("t",))
    assert guard.taken_out("(x)") == "()"
    for source in ("", "x + x"):
        with pytest.raises(ValueError, match="not once"):
            guard.taken_out(source)
    with pytest.raises(SyntaxError):
        guard.taken_out("if x: pass")
    assert guard.path() == ROOT / "app" / "main.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a process without threads, and outside of the run of pytest that this is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@shares.share(2)
def test_guards_of_a_share_are_held_by_their_tests() -> None:
    done = run("-m", "tests.mutants", "--share", str(_SHARE), "--seed", commit_seed())
    assert done.returncode == 0, done.stdout
    assert f"{_SHARE} of {_SHARE} guards" in done.stdout


_THREE: Final = """
from msgspec import structs
from tests.mutants.guard import Guard
from tests.mutants.hunt import hunt

needless = Guard(
    name="needless",
    module="app.kernel.commit.conflict",
    text="Nothing that the commit read has changed.",
    tests=("tests.kernel.commit.test_conflict::test_commit_conflicts_with_changes_of_its_file_groups",),
)
held = structs.replace(needless, name="held", text="if not hits:", without="if True:")
gone = structs.replace(needless, name="gone", text="no such text")
for report in hunt([needless, held, gone]):
    print(report.guard.name, report.verdict.value, end=",")
"""


@shares.share(4)
def test_guard_that_no_test_needs_is_reported_as_survived() -> None:
    done = run("-c", _THREE)
    assert (done.returncode, done.stdout) == (0, "needless survived,held caught,gone broken,")
