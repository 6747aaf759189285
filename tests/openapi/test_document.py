"""The committed OpenAPI document: up to date, and in the form that generators read well."""

import json
import re
from pathlib import Path

import httpx
import pytest

from app.openapi import schema_json
from app.routes import ROUTES

COMMITTED = Path(__file__).parents[2] / "openapi" / "openapi.json"
DOCUMENT = json.loads(COMMITTED.read_text())
OPERATIONS = {
    operation["operationId"]: operation for path in DOCUMENT["paths"].values() for operation in path.values()
}


def every(node, where=""):
    """Every object of the document with its place."""
    if isinstance(node, dict):
        yield where, node
        for key, value in node.items():
            yield from every(value, f"{where}/{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from every(value, f"{where}/{number}")


def test_the_document_is_what_the_service_serves_now(service):
    assert COMMITTED.read_bytes() == schema_json(), "it has drifted; `make openapi` writes it anew"
    with httpx.Client(base_url=service.url, trust_env=False) as client:
        assert client.get("/schema").content == COMMITTED.read_bytes()


def test_every_handler_is_described():
    assert set(OPERATIONS) == {handler.operation_id for handler in ROUTES}
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    for operation_id, operation in OPERATIONS.items():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", operation_id)
        assert operation["summary"]
        assert operation["description"]
        assert len(operation["tags"]) == 1
        assert set(operation["tags"]) <= tags
        assert all(each["description"] for each in operation.get("parameters", []))


def test_references_lead_somewhere():
    for where, node in every(DOCUMENT):
        if "$ref" in node:
            assert list(node) == ["$ref"], where
            target = DOCUMENT
            for step in node["$ref"].removeprefix("#/").split("/"):
                assert step in target, f"{where}: {node['$ref']}"
                target = target[step]


def test_integers_have_64_bits_and_parameters_are_never_null():
    for where, node in every(DOCUMENT):
        if node.get("type") == "integer" and "example" not in where:
            assert node.get("format") == "int64", where
        if "/parameters/" in where:
            assert node.get("type") != "null", where
            assert node.get("default", "") is not None, where


def test_components_are_closed_but_for_problems():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is (name == "Problem"), name


def test_unions_have_a_discriminator():
    for where, node in every(DOCUMENT):
        # Whoever asks for the form of another system knows what comes; its shape is not ours to change.
        if where == "/components/schemas/ChangesPage/properties/changes/items":
            continue
        members = [each for each in node.get("oneOf", node.get("anyOf", [])) if each.get("type") != "null"]
        # A number or a word needs none: no two of them look alike.
        objects = [each for each in map(_resolved, members) if each.get("type") == "object"]
        assert len(objects) < 2 or "discriminator" in node, where


def _resolved(schema):
    reference = schema.get("$ref")
    return schema if reference is None else DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]]


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_failures_are_problem_documents_and_json_comes_first(operation_id):
    operation = OPERATIONS[operation_id]
    public = operation.get("security") == []
    assert public == (operation["tags"] == ["health"])
    for status, answer in operation["responses"].items():
        media_types = list(answer.get("content", {}))
        if int(status) >= 400 and not (public and status == "503"):
            assert media_types == ["application/problem+json"]
        elif len(media_types) > 1:
            assert media_types[0] == "application/json"
    if not public:
        assert {"401", "403", "500", "503"} <= set(operation["responses"])
