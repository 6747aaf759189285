"""Every package of the service has a docstring of its own, and the examples in it run."""

import ast
import doctest
import importlib
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

# Not written yet.
PENDING = {
    f"app.{room}"
    for room in (
        "catalog",
        "changes",
        "consumers",
        "exports",
        "jobs",
        "maintenance",
        "metastore",
        "overview",
        "partitions",
        "quarantine",
        "reads",
        "retention",
        "timeline",
        "transactions",
        "verifications",
        "versions",
        "views",
        "webhooks",
    )
}


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in PENDING])
def test_docstring_says_more_than_the_name_of_the_package(package):
    assert DOCSTRINGS[package].strip(" .").lower() not in ("", package.rsplit(".", 1)[-1])


@pytest.mark.parametrize("package", [name for name, text in DOCSTRINGS.items() if ">>>" in text])
def test_examples_of_a_package_run(package):
    tests = doctest.DocTestFinder(recurse=False).find(importlib.import_module(package))
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert sum(runner.run(each).attempted for each in tests) > 0
    assert runner.failures == 0
