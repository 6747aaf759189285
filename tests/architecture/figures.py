"""Figures of the code's structure, measured from its text: `make figures` prints them.

Nothing is imported: modules, imports, classes and their fields are read from the syntax trees.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
CODE: Final = ("app", "workers", "clients")
FEATURES: Final = {
    "webhooks": r"webhook",
    "exports": r"export",
    "read jobs": r"reads/|read_(job|result|handle)",
}

# Two classes restate each other if they share this part of the fields that either has.
_EQUAL_SHARE: Final = 0.7
_FIELDS_MIN: Final = 4
_GENERATED: Final = "Generated from openapi/openapi.json"


def modules(*roots: str) -> dict[str, Path]:
    """Dotted name to file, of all Python modules below these top-level folders."""
    found = {}
    for root in roots:
        for path in sorted((ROOT / root).rglob("*.py")):
            if "node_modules" not in path.parts:
                # The Python client is a distribution of its own, below its folder.
                place = ROOT / "clients" / "python"
                parts = path.relative_to(place if path.is_relative_to(place) else ROOT).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules_per_folder(names: Iterable[Path]) -> dict[str, int]:
    """How many modules lie in each folder, packages' own files not counted."""
    counts: dict[str, int] = defaultdict(int)
    for path in names:
        if path.name != "__init__.py":
            counts[str(path.parent.relative_to(ROOT))] += 1
    return dict(counts)


def imports() -> dict[str, set[str]]:
    """Which modules of the project each of its modules imports."""
    known = modules(*CODE)
    graph = {}
    for name, path in known.items():
        found: set[str] = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names if alias.name in known}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    if inner in known:
                        found.add(inner)
                    elif node.module in known:
                        found.add(node.module)
        graph[name] = found - {name}
    return graph


def longest_chain(graph: Mapping[str, set[str]]) -> list[str]:
    """The longest path of imports. The graph has no circle: a test of its own holds that."""
    best: dict[str, list[str]] = {}

    def chain(name: str) -> list[str]:
        if name not in best:
            best[name] = []
            tails = [chain(other) for other in sorted(graph[name])]
            best[name] = [name, *max(tails, key=len, default=[])]
        return best[name]

    return max((chain(name) for name in graph), key=len)


def feature_folders(pattern: str) -> set[str]:
    """Rooms with a module that is named after a feature, or whose folder is."""
    places = [path.relative_to(ROOT) for path in modules("app", "workers").values()]
    return {room(place) for place in places if re.search(pattern, str(place))}


def room(place: Path) -> str:
    """The room of a module: below a wing of `app`, else below `workers`; the wing `http` is one room."""
    in_a_wing = place.parts[0] == "app" and len(place.parts) > 2 and place.parts[1] != "http"
    return str(Path(*place.parts[: 3 if in_a_wing else 2]))


def fields(cls: ast.ClassDef) -> frozenset[str]:
    """The names of the fields that a class declares itself."""
    return frozenset(
        node.target.id
        for node in cls.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    )


def classes(*roots: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class with its module."""
    for name, path in modules(*roots).items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                yield name, node


def is_generated(path: Path) -> bool:
    """Whether the module is generated from the OpenAPI document, which its docstring states."""
    return _GENERATED in (ast.get_docstring(tree_of(path)) or "")


def restated(*roots: str) -> list[list[str]]:
    """Groups of classes of different modules, most of whose fields are the same.

    Generated modules are left out: a generated shape is stated once, in what it is generated from.
    """
    places = modules(*roots)
    shapes = [
        (f"{module}.{cls.name}", module, names)
        for module, cls in classes(*roots)
        if len(names := fields(cls)) >= _FIELDS_MIN and not is_generated(places[module])
    ]
    leader = {name: name for name, _, _ in shapes}

    def first(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for index, (name, module, names) in enumerate(shapes):
        for other, other_module, other_names in shapes[:index]:
            share = len(names & other_names) / len(names | other_names)
            if module != other_module and share >= _EQUAL_SHARE:
                leader[first(name)] = first(other)
    groups = defaultdict(list)
    for name, _, _ in shapes:
        groups[first(name)].append(name)
    return sorted(group for group in groups.values() if len(group) > 1)


def untyped_handlers() -> list[str]:
    """Handlers that do not say what they answer with."""
    return [
        f"{name}.{node.name}"
        for name, path in modules("app").items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns) == "Response[Any]"
        and node.decorator_list
    ]


def _methods(cls: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        node.name
        for node in cls.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (not node.name.startswith("_") or node.name == "__call__")
    )


def lonely_protocols() -> list[str]:
    """Protocols whose methods one class of the service has, and no class of the tests."""
    served = [(name, cls, _methods(cls)) for name, cls in classes("app", "workers", "clients")]
    doubles = [_methods(cls) for _, cls in classes("tests", "bench")]
    found = []
    for name, cls, methods in served:
        if "Protocol" not in {ast.unparse(base).split("[")[0] for base in cls.bases} or not methods:
            continue
        having = [
            other
            for _, other, theirs in served
            if other is not cls
            and methods <= theirs
            and "Protocol" not in {ast.unparse(base).split("[")[0] for base in other.bases}
        ]
        if len(having) == 1 and not any(methods <= theirs for theirs in doubles):
            found.append(f"{name}.{cls.name}")
    return found


def lines(*roots: str) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*roots).values())


def described(document: Mapping[str, Any]) -> tuple[int, int]:
    """How many properties of the component schemas have a description, and how many there are."""
    properties = [
        shape
        for schema in document["components"]["schemas"].values()
        for shape in schema.get("properties", {}).values()
    ]
    return sum("description" in shape for shape in properties), len(properties)


def operations(document: Mapping[str, Any]) -> tuple[int, int]:
    """How many operations have an example, in a body or an answer, and how many there are."""
    found = [
        operation
        for path in document["paths"].values()
        for operation in path.values()
        if isinstance(operation, dict)
    ]
    return sum('"example' in json.dumps(operation) for operation in found), len(found)


def figures() -> dict[str, object]:
    """What `make figures` prints, by its name."""
    document = json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))
    folders = modules_per_folder(modules(*CODE).values())
    most = max(folders, key=lambda name: folders[name])
    chain = longest_chain(imports())
    with_text, properties = described(document)
    with_example, number = operations(document)
    return {
        "modules in one folder, at most": f"{folders[most]} ({most})",
        **{
            f"folders with code of {name}": len(feature_folders(pattern))
            for name, pattern in FEATURES.items()
        },
        "longest import chain": f"{len(chain)} ({' > '.join(chain)})",
        "groups of classes with 70 % equal fields": len(restated(*CODE)),
        "handlers that return Response[Any]": len(untyped_handlers()),
        "protocols with one implementation and no double": len(lonely_protocols()),
        "lines of app, workers and clients": lines(*CODE),
        "OpenAPI: properties described": f"{with_text} of {properties}",
        "OpenAPI: operations with an example": f"{with_example} of {number}",
        "OpenAPI: lines of the document": len((ROOT / "openapi" / "openapi.json").read_text().splitlines()),
    }


def main() -> None:
    for name, figure in figures().items():
        print(f"{name}: {figure}")


if __name__ == "__main__":
    main()
