"""A run that leaves out a test without a word fails, and one that says so passes, in one process and in two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shares import VARIABLE

ROOT = Path(__file__).parents[2]

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_number(number):
    pass
"""
# A test that a plugin takes away, of which no report is made.
TAKEN_AWAY = """
def pytest_runtest_protocol(item):
    return True if item.name == "test_number[2]" else None
"""
EQUAL_IDS = """
def pytest_collection_modifyitems(items):
    items.append(items[0])
"""
LEFT_OUT = """
from tests.support.left_out import left_out

def pytest_collection_modifyitems(items):
    for item in items[:3]:
        item.add_marker(left_out("NO_SUCH_VARIABLE", "test-numbers"))
"""
SHARED = """
from tests.support.shares import share

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(share(4))
"""
PROCESSES = pytest.mark.parametrize("processes", ["0", "2"])


def run(folder: Path, conftest: str, *arguments: str) -> tuple[int, str]:
    """Runs the four tests beside this conftest: the exit code, and what was printed."""
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_numbers.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_") and name != VARIABLE
    }
    own = ["-p", "tests.support.complete_runs", "-p", "tests.support.left_out", "-p", "tests.support.pace"]
    plugins = [*own, "-p", "xdist.plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@PROCESSES
def test_run_with_a_test_that_does_not_end_fails(tmp_path: Path, processes: str) -> None:
    code, printed = run(tmp_path, TAKEN_AWAY, "-n", processes)
    assert code == pytest.ExitCode.TESTS_FAILED, printed
    assert "1 of 4 tests did not run: test_numbers.py::test_number[2]" in printed


@PROCESSES
def test_run_of_tests_with_equal_ids_fails(tmp_path: Path, processes: str) -> None:
    code, printed = run(tmp_path, EQUAL_IDS, "-n", processes)
    assert code == pytest.ExitCode.USAGE_ERROR, printed
    assert "tests with equal node ids: test_numbers.py::test_number[0] (2 times)" in printed


@PROCESSES
def test_complete_run_passes(tmp_path: Path, processes: str) -> None:
    code, printed = run(tmp_path, "", "-n", processes)
    assert code == pytest.ExitCode.OK, printed
    assert "did not run" not in printed


@PROCESSES
@pytest.mark.parametrize(("conftest", "target"), [(LEFT_OUT, "test-numbers"), (SHARED, "test-shares")])
def test_tests_that_are_left_out_are_counted(
    tmp_path: Path, conftest: str, target: str, processes: str
) -> None:
    code, printed = run(tmp_path, conftest, "-n", processes)
    assert code == pytest.ExitCode.OK, printed
    assert f"left out: 3 tests that `make {target}` runs" in printed
    assert "1 passed" in printed


def test_list_of_tests_is_complete_without_running_them(tmp_path: Path) -> None:
    assert run(tmp_path, "", "--collect-only")[0] == pytest.ExitCode.OK
