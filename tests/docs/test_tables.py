"""Tables and names in the documents are those of the code."""

import json
import re
import subprocess
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from app.core.jobs.values import SERVICE_MADE
from app.features.reads.service.rows import QueryType
from app.features.writes.schemas import WriteMembers
from app.infra.settings import VARIABLES, Settings, variable_of
from app.kernel.commit.storing import Storing
from app.kernel.commit.write_effect import WriteEffect
from app.kernel.commit.write_options import OnError, OverwriteScope, SaveMode
from app.kernel.format.dataset import (
    Aggregate,
    BucketFunction,
    BucketMode,
    ChangelogProducer,
    IndexType,
    MergeMode,
    TableType,
)
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset
from app.kernel.format.index.index_answer import FileAnswer
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import MEDIA_TYPES
from app.kernel.format.schema.types import parse_type
from app.kernel.sql.queries import parse_view
from app.kernel.sql.queries.functions.functions import FUNCTIONS
from app.process.api import STATUSES

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
DOCUMENT = json.loads((ROOT / "openapi" / "openapi.json").read_text())
OPERATIONS = [(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods]


# What the service reads, and what the Python client does.
KNOWN = {*VARIABLES, "HEADWATER_URL", "HEADWATER_API_KEY", "HEADWATER_PROFILE"}


# Folders whose files and modules documents name, and files that exist only after a run.
FOLDERS = (
    "app",
    "workers",
    "clients",
    "migrations",
    "openapi",
    "tests",
    "requirements",
    "bench",
    "examples",
    "docs",
)
GENERATED = ("bench/results/NAME.json", "bench/results/write.json")


def name(document):
    return str(document.relative_to(ROOT))


def rows(document, first):
    """Rows of tables whose first cell matches, as lists of cells."""
    lines = re.findall(r"^\| (.*) \|$", document.read_text(encoding="utf-8"), re.MULTILINE)
    # A bar inside code is written with a backslash.
    cells = [[cell.strip() for cell in re.split(r"(?<!\\) \| ", line)] for line in lines]
    return [each for each in cells if re.fullmatch(first, each[0])]


def test_every_problem_is_documented_with_its_status():
    table = {
        row[0].strip("`").removeprefix("/problems/"): int(row[1])
        for row in rows(DOCS / "errors.md", r"`/problems/[a-z-]+`")
    }
    assert table == STATUSES
    assert list(table.values()) == sorted(table.values())
    failures = (DOCS / "errors.md").read_text().partition("## Which failures")[2]
    assert set(re.findall(r"`([a-z-]+)`", failures)) == set(SERVICE_MADE)


def test_every_setting_is_documented_with_its_default():
    table = {row[0].strip("`"): row[1] for row in rows(DOCS / "operations.md", r"`HEADWATER_[A-Z_]+`")}
    assert set(table) == set(VARIABLES)
    for setting in fields(Settings):
        shown = table[variable_of(setting.name)]
        if setting.default in (MISSING, None, "", ()):
            continue
        assert shown.strip("`").replace(",", "") == default_of(setting).replace(",", ""), setting.name


def default_of(setting):
    """The default as one would set it."""
    match setting.default:
        case tuple(items):
            return ",".join(item if isinstance(item, str) else f"{item:.15g}" for item in items)
        case bool(flag):
            return str(flag).lower()
        case float(number):
            return f"{number:.15g}"
        case other:
            return str(other)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_has_a_section(method, path):
    headings = re.findall(r"^#+ `(.*)`$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert f"{method} {path}" in headings


def parameters(method, path):
    """The parameters of an operation; those that several share are components."""
    shared = DOCUMENT["components"].get("parameters", {})
    stated = DOCUMENT["paths"][path][method.lower()].get("parameters", [])
    return [shared[each["$ref"].rsplit("/", 1)[1]] if "$ref" in each else each for each in stated]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_parameter_is_documented(method, path):
    reference_text = (DOCS / "api.md").read_text()
    conventions = reference_text.partition("## Conventions")[2].partition("## Datasets")[0]
    section = re.split(
        r"^#{1,3} ", reference_text.partition(f"### `{method} {path}`\n")[2], flags=re.MULTILINE
    )[0]
    for parameter in parameters(method, path):
        if parameter["in"] != "path":
            assert re.search(rf"\b{parameter['name']}\b", section + conventions), parameter["name"]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_parameter_limits_are_documented(method, path):
    reference_text = (DOCS / "api.md").read_text()
    for parameter in parameters(method, path):
        largest = int(parameter["schema"].get("maximum", 2**63))
        assert (
            largest >= 2**63 - 1 or f"–{largest:,}" in reference_text or f"{largest} s" in reference_text
        ), parameter["name"]


def test_deprecations_are_documented():
    deprecated = '"deprecated": true' in json.dumps(DOCUMENT)
    section = (DOCS / "api.md").read_text().partition("### Deprecation")[2]
    assert deprecated != ("No operation is deprecated at present" in section)


def test_every_section_is_an_existing_operation():
    headings = re.findall(r"^#+ `([A-Z]+) (.*)`$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert set(headings) == {*OPERATIONS, ("GET", "/schema")}


def test_media_types_operations_and_modes_are_documented():
    reference_text = (DOCS / "api.md").read_text()
    registered = [*MergeMode, *BucketMode, *BucketFunction, *TableType, *ChangelogProducer, *IndexType]
    written = [*Operation, *SaveMode, *OverwriteScope, *OnError, *FileAnswer, *WriteEffect, *Storing]
    for word in [*MEDIA_TYPES, *registered, *written, *QueryType]:
        assert f"`{getattr(word, 'value', word)}`" in reference_text, word


def test_registration_members_are_documented():
    reference_text = (DOCS / "api.md").read_text()
    for kind in (CreateDataset, CreateBucket, WriteMembers):
        for member in kind.__struct_fields__:
            assert f"`{member}" in reference_text, member


def test_dataset_kinds_are_documented():
    reference_text = (DOCS / "concepts.md").read_text()
    kinds = [*MergeMode, *BucketMode, *TableType, *ChangelogProducer, *IndexType, *Aggregate, *SaveMode]
    for word in [*kinds, *Operation]:
        assert f"`{word.value}`" in reference_text or f"### {word.value}" in reference_text, word


def test_rooms_are_listed_in_the_order_of_their_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers_of = {
        container: [layer.split(" | ") for layer in each["layers"]]
        for each in contracts
        if each["type"] == "layers" and each["name"].endswith(" point down")
        for container in each["containers"]
    }
    section = (DOCS / "ARCHITECTURE.md").read_text().partition("## Wings")[2].partition("\n## ")[0]
    tables = re.findall(r"^(?:### `(app\.\w+)`.*|\| `(\w+)` \|.*)$", section, re.MULTILINE)
    listed: dict[str, list[str]] = {"app": []}
    container = "app"
    for heading, room in tables:
        if heading:
            container = heading
            listed[container] = []
        else:
            listed[container].append(room)
    assert listed.keys() == {"app", *(f"app.{wing}" for wing in listed["app"] if (APP / wing).is_dir())} - {
        "app.http"
    }
    for container, rooms in listed.items():
        layer_of = {room: number for number, layer in enumerate(layers_of[container]) for room in layer}
        assert sorted(rooms) == sorted(layer_of), container
        assert [layer_of[room] for room in rooms] == sorted(layer_of.values()), container


def test_view_functions_equal_those_of_the_document():
    groups = {function.group for function in FUNCTIONS.values()}
    table = {row[0]: row[1].replace("`", "").split() for row in rows(DOCS / "views.md", "|".join(groups))}
    assert table == {
        group: [name for name, function in FUNCTIONS.items() if function.group == group] for group in groups
    }


def test_documented_views_parse():
    shown = re.findall(r"^```sql\n(.*?)^```$", (DOCS / "views.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(shown) > 1
    for sql in shown:
        assert parse_view(sql).inputs


def test_documented_types_equal_the_supported_ones():
    table = rows(DOCS / "types.md", r"`[a-z].*`")
    named = {cell.strip("`") for row in table for cell in row[0].split("`, `")}
    known = {"list<T>", "map<K, V>", "struct<name: T, …>", "decimal(p, s)"}
    for text in named - known:
        assert str(parse_type(text)) == text
    assert named >= known
    assert len(named) > 18


def module_paths(module):
    """The path of a module, and that of the module of a name: `app.infra.files.storage.Storage`."""
    path = module.replace(".", "/")
    return path, path.rpartition("/")[0]


@pytest.fixture(scope="module")
def tests():
    """The names of all tests."""
    listing = subprocess.run(
        ["git", "grep", "--untracked", "-hoE", r"def (test_\w+)", "--", "tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.removeprefix("def ") for line in listing.stdout.splitlines()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_documents_name_existing_tests_paths_and_settings(document, tests):
    text = document.read_text(encoding="utf-8")
    missing = {found for found in re.findall(r"`(test_\w+)`", text) if found not in tests}
    missing |= {
        path
        for path in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", text)
        if not (ROOT / path).exists() and path not in GENERATED
    }
    missing |= {
        module
        for module in re.findall(rf"`((?:{'|'.join(FOLDERS)})(?:\.\w+)+)`", text)
        if not any((ROOT / f"{path}{end}").exists() for path in module_paths(module) for end in ("", ".py"))
    }
    missing |= {word for word in re.findall(r"\bHEADWATER_[A-Z_]+[A-Z]\b", text) if word not in KNOWN}
    assert not missing
