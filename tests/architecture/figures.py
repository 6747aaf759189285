"""Figures of the code's structure, measured from its text: `make figures` prints them.

Nothing is imported: modules, imports, classes and their fields are read from the syntax trees.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.architecture.participles import count_names, participle_figures
from tests.architecture.syntax import ROOT, nodes_of, tree_of

CODE: Final = ("app", "workers", "clients")
FEATURES: Final = {
    "webhooks": r"webhook",
    "exports": r"export",
    "read jobs": r"reads/|read_(job|result|handle)",
}

# Two classes restate each other if they share this part of the fields that either has.
_EQUAL_SHARE: Final = 0.7
_FIELDS_MIN: Final = 4
_PARTS: Final = frozenset({"service", "repository", "handlers"})
_PART_LINES_MIN: Final = 200
# The parts of a feature, the highest first.
_FEATURE_PARTS: Final = (
    "compose", "providers", "handlers", "schemas", "service", "repository", "tables", "ports", "values",
)  # fmt: skip
_TYPES: Final = "app.kernel.format.schema.types"
_NO_TYPES: Final = frozenset({"TypeSyntaxError", "Final"})
_GENERATED: Final = "Generated from openapi/openapi.json"


@cache
def modules(*roots: str) -> Mapping[str, Path]:
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


def modules_per_folder(names: Iterable[Path]) -> dict[str, int]:
    """How many modules lie in each folder, packages' own files not counted."""
    counts: dict[str, int] = defaultdict(int)
    for path in names:
        if path.name != "__init__.py":
            counts[str(path.parent.relative_to(ROOT))] += 1
    return dict(counts)


@cache
def imports() -> Mapping[str, set[str]]:
    """Which modules of the project each of its modules imports."""
    known = modules(*CODE)
    graph = {}
    for name, path in known.items():
        found: set[str] = set()
        for node in nodes_of(path):
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
        for node in nodes_of(path):
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
        for node in nodes_of(path)
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


def lonely_protocols() -> list[tuple[str, str, str]]:
    """Protocols whose methods one class of the service has, and no class of the tests: module, name, and its module."""
    served = [(name, cls, _methods(cls)) for name, cls in classes("app", "workers", "clients")]
    doubles = [_methods(cls) for _, cls in classes("tests", "bench")]
    found = []
    for name, cls, methods in served:
        if not _is_protocol(cls) or not methods:
            continue
        having = [place for place, other, theirs in served if methods <= theirs and not _is_protocol(other)]
        if len(having) == 1 and not any(methods <= theirs for theirs in doubles):
            found.append((name, cls.name, having[0]))
    return found


def names_in_app() -> list[str]:
    """What `ls app` shows, apart from the docstring of the package."""
    folder = ROOT / "app"
    packages = [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted([*packages, *(path.name for path in folder.glob("*.py") if path.stem != "__init__")])


def _contracts(type_: str) -> list[dict[str, Any]]:
    """The contracts of a type in pyproject.toml."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [each for each in contracts if each["type"] == type_]


@cache
def forbidden() -> list[tuple[list[str], list[str]]]:
    """Patterns of modules, with patterns of what they may not import."""
    return [(each["source_modules"], each["forbidden_modules"]) for each in _contracts("forbidden")]


def _is_within(module: str, pattern: str) -> bool:
    """Whether a module is the pattern's package or in it. A star stands for one part of the name."""
    parts, expected = module.split("."), pattern.split(".")
    return len(parts) >= len(expected) and all(
        each in ("*", part) for part, each in zip(parts, expected, strict=False)
    )


def is_forbidden(module: str, other: str) -> bool:
    """Whether a contract forbids this import by name, whatever the order of the rooms."""
    return any(
        any(_is_within(module, each) for each in sources) and any(_is_within(other, each) for each in targets)
        for sources, targets in forbidden()
    )


@cache
def layers(of: str) -> Mapping[str, int]:
    """The layers of a package as the contract states them, by the name of a child: the lowest is 0."""
    return {
        name.strip("() "): height
        for contract in _contracts("layers")
        if contract["containers"] == [of]
        for height, layer in enumerate(reversed(contract["layers"]))
        for name in layer.split("|")
    }


def upward_imports() -> list[str]:
    """Imports of a wing by a lower one."""
    heights = layers("app")

    def height(module: str) -> int:
        parts = module.split(".")
        return heights[parts[1]] if parts[0] == "app" and len(parts) > 1 else len(heights)

    return [
        f"{name} > {other}"
        for name, others in imports().items()
        for other in sorted(others)
        if name.startswith("app.") and other.startswith("app.") and height(name) < height(other)
    ]


def small_parts() -> list[str]:
    """Packages called service, repository or handlers that have one module, or fewer than 200 lines."""
    found = []
    for package in sorted((ROOT / "app").rglob("__init__.py")):
        if package.parent.name in _PARTS:
            files = sorted(package.parent.rglob("*.py"))
            if len(files) <= 2 or sum(_lines(path) for path in files) < _PART_LINES_MIN:
                found.append(str(package.parent.relative_to(ROOT)))
    return found


def protocols() -> list[tuple[str, ast.ClassDef]]:
    """Every Protocol of the service with its module."""
    return [(name, cls) for name, cls in classes("app", "workers") if _is_protocol(cls)]


def _is_protocol(cls: ast.ClassDef) -> bool:
    return "Protocol" in {ast.unparse(base).split("[")[0] for base in cls.bases}


def importable_ports() -> list[str]:
    """Ports with one implementation and no double, which a module that names the port may import."""
    graph = imports()
    found = []
    for place, port, implementation in lonely_protocols():
        users = [place, *(name for name, others in graph.items() if place in others)]
        if any(_names(user, port) and may_import(user, implementation) for user in users):
            found.append(f"{place}.{port}")
    return found


def _names(module: str, name: str) -> bool:
    """Whether the module names a class beside where it is declared."""
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes_of(modules(*CODE)[module]))


def may_import(module: str, other: str) -> bool:
    """Whether the contracts let a module of `app` import another one, of a lower wing, room or part."""
    if is_forbidden(module, other):
        return False
    ours, theirs = module.split("."), other.split(".")
    for depth in range(1, max(len(ours), len(theirs))):
        if ours[:depth] != theirs[:depth]:
            return False
        if ours[depth : depth + 1] == theirs[depth : depth + 1]:
            continue
        if len(ours) == depth or len(theirs) == depth:
            return False
        heights = layers(".".join(ours[:depth])) or dict(
            zip(reversed(_FEATURE_PARTS), range(9), strict=False)
        )
        if ours[depth] not in heights or theirs[depth] not in heights:
            return False
        return heights[ours[depth]] > heights[theirs[depth]]
    return False


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def lines(*roots: str) -> int:
    return sum(map(_lines, modules(*roots).values()))


def code_lines(*roots: str) -> int:
    """Lines that are neither blank, nor a comment, nor of a docstring."""
    return sum(code_lines_of(path) for path in modules(*roots).values())


def code_lines_of(path: Path) -> int:
    docstrings = {
        line
        for node in nodes_of(path)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        number not in docstrings and bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    )


def function_lines(*roots: str) -> list[int]:
    """The lines of every function, the shortest first."""
    return sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in modules(*roots).values()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def type_matches() -> dict[str, int]:
    """The modules of the service that match on column types, with the number of places: `case` and `isinstance`."""
    counts = {}
    for name, path in modules("app", "workers").items():
        nodes = nodes_of(path)
        types = {
            alias.asname or alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_TYPES)
            for alias in node.names
            if alias.name[0].isupper() and alias.name not in _NO_TYPES
        }
        if name.startswith(_TYPES):
            types |= {cls.name for cls in nodes if isinstance(cls, ast.ClassDef)} - _NO_TYPES
        if count := sum(matched_types(node, types) for node in nodes):
            counts[name] = count
    return counts


def matched_types(node: ast.AST, types: set[str]) -> int:
    """How many of the types a pattern, or a call of `isinstance`, names."""
    match node:
        case ast.MatchClass(cls=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in types
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            return sum(isinstance(each, ast.Name) and each.id in types for each in ast.walk(kinds))
        case _:
            return 0


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
    folders = modules_per_folder(path for path in modules(*CODE).values() if not is_generated(path))
    most = max(folders, key=lambda name: folders[name])
    chain = longest_chain(imports())
    with_text, properties = described(document)
    with_example, number = operations(document)
    groups = restated(*CODE)
    sizes, matches = function_lines("app", "workers"), type_matches()
    ports = importable_ports()
    return {
        "names in app": f"{len(names_in_app())} ({' '.join(names_in_app())})",
        "imports that point up between wings": len(upward_imports()),
        "modules in one folder, at most": f"{folders[most]} ({most})",
        "lines of functions, 95th percentile": sizes[len(sizes) * 95 // 100],
        "small packages service, repository, handlers": _listed(small_parts()),
        **{
            f"folders with code of {name}": len(feature_folders(pattern))
            for name, pattern in FEATURES.items()
        },
        "longest import chain": f"{len(chain)} ({' > '.join(chain)})",
        "classes with 70 % equal fields": f"{sum(map(len, groups))} in {len(groups)} groups",
        "handlers that return Response[Any]": len(untyped_handlers()),
        "ports": len(protocols()),
        "ports with one implementation and no double": len(lonely_protocols()),
        "ports whose implementation their user may import": _listed(ports),
        "modules that match on column types": f"{len(matches)}, at {sum(matches.values())} places",
        **participle_figures(service_names()),
        "lines of app, workers and clients": f"{lines(*CODE):,}",
        "code lines of app and workers": f"{code_lines('app', 'workers'):,}",
        "code lines of bench": f"{code_lines('bench'):,}",
        "code lines of tests/mutants": f"{code_lines('tests/mutants'):,}",
        "lines of bench and of tests/mutants": f"{lines('bench'):,} and {lines('tests/mutants'):,}",
        "OpenAPI: properties described": f"{with_text} of {properties}",
        "OpenAPI: operations with an example": f"{with_example} of {number}",
        "OpenAPI: lines of the document": len((ROOT / "openapi" / "openapi.json").read_text().splitlines()),
    }


def service_names() -> Counter[str]:
    """How often each name is bound in app and workers."""
    return count_names(node for path in modules("app", "workers").values() for node in nodes_of(path))


def _listed(names: Iterable[str]) -> str:
    """How many there are, and which."""
    names = list(names)
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def main() -> None:
    for name, figure in figures().items():
        print(f"{name}: {figure}")


if __name__ == "__main__":
    main()
