"""The attributes of modules that tests and benches read or replace exist.

CI runs a share of some tests only, so a name that was removed could otherwise fail for a later commit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import pytest

from tests.architecture.syntax import ROOT, tree_of
from tests.architecture.test_code_rules import PYTHON, name

CHECKED = [path for path in PYTHON if path.relative_to(ROOT).parts[0] in {"tests", "bench"}]
OURS = ("app", "workers", "tests", "bench", "headwater_client")
Function = ast.FunctionDef | ast.AsyncFunctionDef
# A line, the owner, and the name of its attribute.
Attribute = tuple[int, Any, str]


def imported(tree: ast.Module) -> dict[str, Any]:
    """What the module imports from this project, by the text that names it there."""
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for each in node.names:
                # `import a.b` names `a`, too.
                ends = [at for at, sign in enumerate(each.name) if sign == "." and not each.asname]
                found |= {each.name[:at]: each.name[:at] for at in ends} | {
                    each.asname or each.name: each.name
                }
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return {text: resolve_name(path) for text, path in found.items() if path.split(".")[0] in OURS}


def own_names(function: Function) -> set[str]:
    """Names that the function binds itself: its parameters, and what it assigns."""
    return {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} | {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def read_attributes(function: Function, names: dict[str, Any]) -> Iterator[Attribute]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            owner = names.get(ast.unparse(node.value))
            if isinstance(owner, ModuleType):
                yield node.lineno, owner, node.attr


def replaced_attributes(function: ast.AST, names: dict[str, Any]) -> Iterator[Attribute]:
    """Those of `setattr(owner, "name", ...)`, also with the owners of a loop `for owner in (a, b)`."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(dotted)), _]):
                module, _, attribute = dotted.rpartition(".")
                yield node.lineno, resolve_name(module), attribute
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[owner, ast.Constant(value=str(attribute)), _]
            ):
                if ast.unparse(owner) in names:
                    yield node.lineno, names[ast.unparse(owner)], attribute
            case ast.For(target=ast.Name(id=target), iter=ast.Tuple(elts=owners)):
                for each in map(ast.unparse, owners):
                    if each in names:
                        yield from replaced_attributes(node, {target: names[each]})


def missing(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and name of each attribute that does not exist."""
    modules = imported(tree)
    found = []
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        own = own_names(function)
        names = {each: value for each, value in modules.items() if each not in own}
        for line, owner, attribute in [
            *read_attributes(function, names),
            *replaced_attributes(function, names),
        ]:
            if not hasattr(owner, attribute):
                found.append((line, attribute))
    return found


def test_attributes_of_modules_exist() -> None:
    assert not {name(path): each for path in CHECKED if (each := missing(tree_of(path)))}


@pytest.mark.parametrize(
    "line",
    [
        'patch.setattr(lookup, "GONE", 1)',
        'patch.setattr("app.infra.files.lookups.lookup.GONE", 1)',
        'for module in (hot_copy, lookup): patch.setattr(module, "COPIED_ROWS_MIN", 1)',
        'patch.setattr(HotFolder, "gone", None)',
        "lookup.gone()",
        'patch.setattr(app.settings, "VARIABLES", {})',
    ],
)
def test_missing_attribute_is_found(line: str) -> None:
    source = f"""
from app.infra.files.lookups import hot_copy, lookup
from app.infra.files.lookups.hot_folder import HotFolder; import app.infra.settings
def test(patch):
    {line}
def test_of_another(lookup):
    lookup.gone()
"""
    assert [number for number, _ in missing(ast.parse(source))] == [5]


def test_checked_files_include_tests_and_benches() -> None:
    assert {"tests", "bench"} == {path.relative_to(ROOT).parts[0] for path in CHECKED}
