"""The values of the Python client: generated from the committed OpenAPI document, and decoded leniently."""

from __future__ import annotations

import copy
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from clients.generator import sources
from clients.generator.write import write_models
from headwater_client import models

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "clients" / "python" / "headwater_client" / "models"
DOCUMENT = json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))
STRUCTS = {
    name: value
    for name in models.__all__
    if isinstance(value := getattr(models, name), type) and issubclass(value, msgspec.Struct)
}
RESPONSES = {name: kind for name, kind in STRUCTS.items() if not name.startswith("Create")}


def text_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}


def module_of(text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A generated module under a name of its own."""
    module = ModuleType("generated")
    monkeypatch.setitem(sys.modules, "generated", module)
    exec(compile(text, "generated", "exec"), module.__dict__)
    return module


def test_committed_modules_equal_the_generated_ones(tmp_path: Path) -> None:
    (tmp_path / "of_a_deleted_tag.py").write_text("")
    write_models(folder=tmp_path)
    assert text_of(COMMITTED) == text_of(tmp_path), "they have drifted; `make openapi` writes them again"


def test_an_invalid_document_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "openapi.json"
    broken.write_text("{")
    with pytest.raises(ValueError):
        write_models(document=broken, folder=tmp_path)
    assert list(tmp_path.iterdir()) == [broken]


@pytest.mark.parametrize("name", STRUCTS)
def test_every_annotation_resolves(name: str) -> None:
    described = msgspec.inspect.type_info(STRUCTS[name])
    assert isinstance(described, msgspec.inspect.StructType)
    tags = {described.tag_field} - {None}
    assert {field.encode_name for field in described.fields} | tags == set(
        DOCUMENT["components"]["schemas"][name]["properties"]
    )


@pytest.mark.parametrize(
    "name", [name for name in RESPONSES if "examples" in DOCUMENT["components"]["schemas"][name]]
)
def test_examples_of_the_document_are_decoded(name: str) -> None:
    for example in DOCUMENT["components"]["schemas"][name]["examples"]:
        value = msgspec.convert(example | {"of_a_later_release": 1}, RESPONSES[name])
        assert msgspec.convert(msgspec.to_builtins(value), RESPONSES[name]) == value


def job(**members: Any) -> dict[str, Any]:
    example: dict[str, Any] = DOCUMENT["components"]["schemas"]["Job"]["examples"][0]
    return example | members


def test_a_new_state_breaks_no_client_and_times_are_times() -> None:
    found = msgspec.convert(job(state="suspended", kind="a_new_one"), models.Job)
    assert (found.state, found.kind) == ("suspended", "a_new_one")
    assert found.created_at == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert found.started_at is None
    [change] = DOCUMENT["components"]["schemas"]["Change"]["examples"]
    assert msgspec.convert(change, models.Change).before is None


def test_requests_contain_only_what_was_specified() -> None:
    assert msgspec.json.encode(models.CreateField(name="a", type="date")) == b'{"name":"a","type":"date"}'
    change = models.AddField(field=models.CreateField(name="a", type="date", nullable=False))
    assert msgspec.to_builtins(change) == {
        "kind": "add",
        "field": {"name": "a", "type": "date", "nullable": False},
    }
    # In a response null has a meaning of its own.
    assert msgspec.to_builtins(models.MaxLag(changes=1)) == {"changes": 1, "seconds": None}


def test_members_of_a_component_become_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    document = copy.deepcopy(DOCUMENT)
    properties = document["components"]["schemas"]["Liveness"]["properties"] = {
        "from": {"type": "string", "format": "date-time", "description": "A start."},
        "self": {"anyOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "null"}]},
        "parts": {"type": "array", "items": {"type": "number"}, "default": []},
        "state": {"$ref": "#/components/schemas/JobState"},
        "note": {"type": "string", "description": "word " * 40 + "\\"},
    }
    document["components"]["schemas"]["Liveness"]["required"] = ["from", "self"]
    document["paths"] = {"/live": document["paths"]["/health/live"]}
    document["paths"]["/live"]["get"]["tags"] = ["jobs"]
    generated = sources(document)
    assert set(generated) == {"__init__.py", "jobs.py"}
    kind = module_of(generated["jobs.py"], monkeypatch).Liveness
    value = msgspec.convert({"from": "2026-11-21T10:00:00Z", "self": {"title": "x"}}, kind)
    assert (value.from_, value.self_) == (datetime(2026, 11, 21, 10, tzinfo=UTC), {"title": "x"})
    assert (value.parts, value.state, value.note) == ((), None, None)
    assert set(properties) == {field.encode_name for field in msgspec.structs.fields(kind)}
    assert '"""A start."""' in generated["jobs.py"]
    assert max(map(len, generated["jobs.py"].splitlines())) <= 120
