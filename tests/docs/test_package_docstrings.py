"""Every package of the service has a docstring of its own, and the examples in it run."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    ".".join(path.parent.relative_to(ROOT).parts): path
    for room in ("app", "workers")
    for path in sorted((ROOT / room).rglob("__init__.py"))
}
DOCSTRINGS = {
    package: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    for package, path in PACKAGES.items()
}


@pytest.mark.parametrize("package", PACKAGES)
def test_docstring_says_more_than_the_name_of_the_package(package):
    assert DOCSTRINGS[package].strip(" .").lower() not in ("", package.rsplit(".", 1)[-1])


# The wings and their rooms. `http` is one room.
ROOMS = [
    name for name in PACKAGES if re.fullmatch(r"app\.\w+(\.\w+)?", name) and not name.startswith("app.http.")
]


def test_rooms_of_all_wings_are_checked():
    wings = {path.parent.name for path in (ROOT / "app").glob("*/__init__.py")}
    assert wings == {name.split(".")[1] for name in ROOMS if name.count(".") == 1}
    assert {"app.kernel.format", "app.infra.db", "app.access.tenants", "app.core.jobs"} <= set(ROOMS)
    assert {"app.features.writes", "app.process.doctor"} <= set(ROOMS)


@pytest.mark.parametrize("package", ROOMS)
def test_docstring_of_a_room_is_a_page(package):
    assert len(DOCSTRINGS[package].splitlines()) > 4


@pytest.mark.parametrize("package", PACKAGES)
def test_docstring_names_existing_modules(package):
    folder = PACKAGES[package].parent
    text = DOCSTRINGS[package]
    # `service/run`, app/kernel/changelog/fold_check.py, and head.py of any folder of the package.
    paths = re.findall(r"`((?:\w+/)+\w+)(?:\.py)?`", text)
    paths += re.findall(r"(?<![\w/])((?:\w+/)+\w+)\.py\b", text)
    modules = re.findall(r"(?<![\w/])(\w+\.py)\b", text)
    missing = [
        path
        for path in paths
        if not any((base / end).exists() for base in (folder, ROOT) for end in (path, f"{path}.py"))
    ]
    missing += [module for module in modules if not any(folder.rglob(module))]
    assert not missing


@pytest.mark.parametrize("package", [name for name, text in DOCSTRINGS.items() if ">>>" in text])
def test_examples_of_a_package_run(package):
    tests = doctest.DocTestFinder(recurse=False).find(importlib.import_module(package))
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert sum(runner.run(each).attempted for each in tests) > 0
    assert runner.failures == 0
