"""The direction of imports, as pyproject.toml declares it."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
WINGS = "Imports between wings point down"
FEATURES = "Imports between the rooms of features point down"
KERNEL = "The kernel is plain values: no framework, no store, no I/O layer"
HANDLERS = "Handlers and tasks reach Postgres through use cases only"
SURFACE = "The rooms of core are imported by their surface"
PARTS = (
    "api",
    "compose",
    "problems",
    "providers",
    "handlers",
    "schemas",
    "service",
    "repository",
    "tables",
    "values",
    "errors",
)
# `http` is one room. The folders of the others are rooms.
WINGS_OF_ROOMS = sorted(
    path.parent.name for path in (ROOT / "app").glob("*/__init__.py") if path.parent.name != "http"
)


def modules_of(expression: str) -> list[str]:
    """The modules of the tree that an expression of a contract names."""
    pattern = expression.replace("**", "*").replace(".", "/")
    packages = sorted(path.parent for path in ROOT.glob(f"{pattern}/__init__.py"))
    paths = [*packages, *sorted(ROOT.glob(f"{pattern}.py"))]
    modules = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return [module for module in modules if not module.endswith("__init__")]


def surface() -> Iterator[str]:
    """The modules by which the rooms of core are imported."""
    [contract] = [contract for contract in CONTRACTS if contract["type"] == "surface"]
    for expression in contract["surface"]:
        modules = modules_of(expression)
        assert modules, f"there is no {expression}"
        yield from modules


def own_parts() -> Iterator[str]:
    """The parts that no other room may import."""
    [contract] = [contract for contract in CONTRACTS if contract["type"] == "own_parts"]
    for expression in contract["parts"]:
        parts = modules_of(expression)
        assert parts, f"there is no {expression}"
        yield from parts


# A wrong import, and the contract that must name it.
WRONG = [
    ("app.core.jobs.repository.wrong", "app.features.views.repository", WINGS),
    ("app.core.catalog.repository.wrong", "app.core.timeline.values", "Imports between the rooms of core point down"),
    ("app.kernel.commit.wrong", "app.kernel.changelog", "Imports between the rooms of kernel point down"),
    ("app.kernel.sql.wrong", "app.infra.settings", WINGS),
    ("app.infra.files.wrong", "app.access.tenants.values", WINGS),
    ("app.infra.files.wrong", "app.infra.kafka", "Imports between the rooms of infra point down"),
    ("app.access.tenants.wrong", "app.access.oidc", "Imports between the rooms of access point down"),
    ("app.access.tenants.wrong", "app.http.auth", WINGS),
    ("app.process.features", "app.process.api", "Imports between the rooms of process point down"),
    ("app.process.features", "app.main", WINGS),
    ("app.features.writes.service.wrong", "app.features.versions.service", FEATURES),
    ("app.http.wrong", "app.core.idempotency.service", WINGS),
    ("app.core.jobs.handlers.wrong", "app.core.jobs.providers", "Imports within a feature point down"),
    ("app.features.views.service.wrong", "app.process.features", WINGS),
    ("workers.engine.wrong", "workers.wiring", "Imports within the worker point down"),
    ("workers.engine.wrong", "workers.jobs", "Imports within the worker point down"),
    ("app.features.webhooks.service.wrong", "app.features.webhooks.handlers", "Imports within a feature point down"),
    ("app.features.exports.repository.wrong", "app.features.exports.service", "Imports within a feature point down"),
    ("app.features.exports.handlers.wrong", "app.features.exports.compose", "Imports within a feature point down"),
    ("app.features.versions.repository.wrong", "app.features.versions.service", "Imports within a feature point down"),
    ("app.features.exports.errors", "app.features.exports.values", "Imports within a feature point down"),
    ("app.features.exports.service.wrong", "app.features.exports.problems", "Imports within a feature point down"),
    ("app.kernel.format.wrong", "sqlalchemy", KERNEL),
    ("app.kernel.codecs.wrong", "app.infra.files", KERNEL),
    ("app.core.timeline.service.wrong", "sqlalchemy", "Use cases know no framework and no SQL"),
    ("app.core.timeline.service.wrong", "app.core.timeline.tables", "Use cases know no framework and no SQL"),
    ("app.features.exports.service.wrong", "app.http", "Use cases know no framework and no SQL"),
    ("app.features.webhooks.values", "app.infra.db", "Values are plain"),
    ("app.features.webhooks.values", "app.kernel.sql.conditions.parse", "Values are plain"),
    ("app.core.jobs.repository.wrong", "litestar", "Repositories and files know neither HTTP nor jobs"),
    ("app.infra.files.wrong", "celery", "Repositories and files know neither HTTP nor jobs"),
    ("app.features.webhooks.handlers.wrong", "sqlalchemy", HANDLERS),
    ("app.features.reads.handlers.wrong", "app.features.reads.repository", HANDLERS),
    ("app.features.reads.schemas", "app.features.reads.repository", HANDLERS),
    ("workers.jobs.wrong", "app.infra.db", HANDLERS),
    ("app.infra.outbound.wrong", "httpx2", "What posts to users' URLs knows nothing but the message"),
    ("workers.engine.wrong", "app.infra.db", "Executors see neither Postgres nor the queue"),
    ("workers.engine.wrong", "celery", "Executors see neither Postgres nor the queue"),
    ("workers.engine.wrong", "app.features.reads.service", "Executors see neither Postgres nor the queue"),
    ("app.infra.runtime.wrong", "app.infra.db", "The embedded runtime starts processes; it is part of none of them"),
    ("workers.jobs.wrong", "clients", "Nothing in the service depends on its clients"),
    ("headwater_client.transport.wrong", "headwater_client.calls", "Imports within the Python client point down"),
    ("headwater_client.models.wrong", "headwater_client.problem", "Imports within the Python client point down"),
    ("headwater_client.calls.wrong", "app.infra.settings", "The Python client depends on nothing of the service"),
    ("app.features.writes.repository", "app.core.jobs.repository.claim", SURFACE),
    ("app.core.timeline.repository.wrong", "app.core.jobs.repository.writer_batches", SURFACE),
    ("app.core.platform", "app.core.changes.service.feed_starts", SURFACE),
    ("workers.jobs.wrong", "app.features.exports.api", "A worker serves nothing over HTTP"),
    ("workers.wiring", "litestar", "A worker serves nothing over HTTP"),
    *(("app.core.platform", part, "The parts of a room are its own") for part in own_parts()),
]  # fmt: skip


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    # One kind of contract is ours. The modules of the folder come before those of this tree.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [program, "--no-cache"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def module_file(folder: Path, module: str) -> Path:
    """The file of a module in the folder; it and the packages above it are made if they are not there."""
    path = folder.joinpath(*module.split("."))
    if (path / "__init__.py").is_file():
        return path / "__init__.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    for package in path.relative_to(folder).parents:
        if package != Path():
            (folder / package / "__init__.py").touch()
    path.with_suffix(".py").touch()
    return path.with_suffix(".py")


def modules() -> Iterator[tuple[str, bool]]:
    """The wings, their rooms and the parts of these, as they are in the tree; whether each is a package."""
    wings = [each for root in ("app", "workers", "clients") for each in sorted((ROOT / root).iterdir())]
    rooms = [room for wing in wings if wing.is_dir() for room in sorted(wing.iterdir())]
    parts = [room / part for room in rooms for part in PARTS]
    yield "headwater_client", True
    for path in sorted((ROOT / "clients" / "python" / "headwater_client").iterdir()):
        if (path / "__init__.py").is_file() or (path.suffix == ".py" and path.stem != "__init__"):
            yield f"headwater_client.{path.stem}", path.is_dir()
    for path in [*wings, *rooms, *parts, *(part.with_suffix(".py") for part in parts)]:
        if (path / "__init__.py").is_file() or (
            path.suffix == ".py" and path.is_file() and path.stem != "__init__"
        ):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path.is_dir()


def forbidden() -> Iterator[str]:
    """The modules of the project that contracts forbid by their whole name: each has to be there."""
    for contract in CONTRACTS:
        for name in contract.get("forbidden_modules", ()):
            if name.startswith("app.") and "*" not in name:
                yield name


def exceptions() -> Iterator[tuple[str, str]]:
    """The imports that contracts do not check, each as an example: each has to be there."""
    for contract in CONTRACTS:
        for line in contract.get("ignore_imports", ()):
            importer, imported = line.split(" -> ")
            yield importer, modules_of(imported)[0] if "*" in imported else imported


@pytest.fixture
def small_tree(tmp_path: Path) -> Path:
    """The rooms and their parts, without anything in them."""
    for name, package in modules():
        module_file(tmp_path, f"{name}.__init__" if package else name)
    for name in [*forbidden(), *own_parts(), *surface()]:
        module_file(tmp_path, name)
    for importer, imported in exceptions():
        module_file(tmp_path, imported)
        with module_file(tmp_path, importer).open("a") as file:
            file.write(f"import {imported}\n")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    return tmp_path


def broken(output: str) -> dict[str, str]:
    """What is reported of each broken contract, by its name."""
    _, _, report = output.partition("Broken contracts")
    parts = re.split(r"\n([^\n]+)\n-{4,}\n", report)
    return {name: re.sub(r"\s+", " ", text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_imports_keep_every_contract():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_each_kind_of_wrong_import_is_caught(small_tree: Path):
    # Contracts that name no module of the tree any more would be kept whatever is imported.
    clean = lint_imports(small_tree)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    for importer, imported, contract in WRONG:
        if contract == SURFACE:
            module_file(small_tree, imported)
        with module_file(small_tree, importer).open("a") as file:
            file.write(f"import {imported}\n")
    result = lint_imports(small_tree)
    found = broken(result.stdout)
    for importer, imported, contract in WRONG:
        assert f"{importer} -> {imported} " in found.get(contract, ""), (importer, imported, contract)
    assert found.keys() == {contract["name"] for contract in CONTRACTS}, "each contract has an example here"


def test_every_room_has_a_place_in_the_order(small_tree: Path):
    novelties = {"app.novelties", *(f"app.{wing}.novelties" for wing in WINGS_OF_ROOMS)}
    assert len(novelties) == 7
    for novelty in novelties:
        module_file(small_tree, f"{novelty}.values")
    result = lint_imports(small_tree)
    assert result.returncode == 1
    assert novelties == set(re.findall(r"app\.(?:\w+\.)?novelties", result.stdout))
