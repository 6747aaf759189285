"""The committed OpenAPI document: up to date, and in the form that generators read well."""

import json
import re
from pathlib import Path

import httpx2
import jsonschema_rs
import pytest

from app.http.openapi.operation_docs import documentation_of
from app.process.api import PROVIDERS, ROUTES
from app.process.openapi import schema_json
from tests.support.http import TLS

COMMITTED = Path(__file__).parents[3] / "openapi" / "openapi.json"
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


def test_committed_document_equals_the_served_one(service):
    assert COMMITTED.read_bytes() == schema_json(ROUTES, PROVIDERS), (
        "it has drifted; `make openapi` writes it again"
    )
    with httpx2.Client(base_url=service.url, trust_env=False, verify=TLS) as client:
        assert client.get("/schema").content == COMMITTED.read_bytes()


def test_every_handler_is_documented():
    assert set(OPERATIONS) == {handler.operation_id for handler in ROUTES}
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    for operation_id, operation in OPERATIONS.items():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", operation_id)
        assert operation["summary"]
        assert operation["description"]
        assert len(operation["tags"]) == 1
        assert set(operation["tags"]) <= tags
        assert all(_target(each)["description"] for each in operation.get("parameters", []))


def test_references_resolve():
    for where, node in every(DOCUMENT):
        if "$ref" in node:
            assert set(node) <= {"$ref", "description"}, where
            assert _target(node), where


def test_integers_are_int64_and_parameters_are_never_null():
    for where, node in every(DOCUMENT):
        if node.get("type") == "integer":
            assert node.get("format") == "int64", where
        if "/parameters/" in where:
            assert node.get("type") != "null", where
            assert node.get("default", "") is not None, where


def test_components_are_closed_except_problems():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is (name in ("Problem", "Row")), name


def test_unions_have_a_discriminator():
    for where, node in every(DOCUMENT):
        # Who requests the form of another system knows what comes; its shape is not ours to change.
        if where == "/components/schemas/AnyChange":
            continue
        members = [each for each in node.get("oneOf", node.get("anyOf", [])) if each.get("type") != "null"]
        # The data of an event is named by the event, and no generator decodes it.
        if where.endswith("/contentSchema"):
            continue
        # A number or a word needs none: no two of them look alike.
        objects = [each for each in map(_target, members) if each.get("type") == "object"]
        assert len(objects) < 2 or "discriminator" in node, where


def _target(node):
    """The node, or the component that it refers to."""
    target = DOCUMENT
    for step in node.get("$ref", "#").split("/")[1:]:
        target = target[step]
    return node if target is DOCUMENT else target


TYPED = {handler.operation_id for handler in ROUTES if documentation_of(handler).answers is None}


def _schemas_of(node, found):
    """The schemas that a part of the document refers to."""
    for _, each in every(node):
        name = each.get("$ref", "").removeprefix("#/components/schemas/")
        if name in DOCUMENT["components"]["schemas"] and name not in found:
            found.add(name)
            _schemas_of(DOCUMENT["components"]["schemas"][name], found)
    return found


@pytest.mark.parametrize("name", sorted(_schemas_of([OPERATIONS[each] for each in TYPED], set())))
def test_each_property_of_a_typed_operation_is_described(name):
    schema = DOCUMENT["components"]["schemas"][name]
    assert schema.get("description") or {"oneOf", "anyOf"} & set(schema) or "enum" in schema
    for member, each in schema.get("properties", {}).items():
        assert each.get("description"), f"{name}.{member}"


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_each_schema_has_an_example_that_fits_it(name):
    schema = DOCUMENT["components"]["schemas"][name]
    if "enum" in schema:
        return
    (example,) = schema["examples"]
    reference = {"$ref": f"#/components/schemas/{name}"}
    validator = jsonschema_rs.validator_for({"components": DOCUMENT["components"], **reference})
    assert [f"{error.instance_path} {error.message}" for error in validator.iter_errors(example)] == []


def test_types_in_examples_are_types_of_columns_or_of_problems():
    schemas = DOCUMENT["components"]["schemas"]
    types = {name: schemas[name]["examples"][0]["type"] for name in ("CreateField", "WidenField", "Problem")}
    assert types == {"CreateField": "string", "WidenField": "string", "Problem": "/problems/not-found"}


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_each_body_of_an_operation_has_an_example(operation_id):
    operation = OPERATIONS[operation_id]
    for body in (operation.get("requestBody", {}), *operation["responses"].values()):
        for media in body.get("content", {}).values():
            if "$ref" in media["schema"]:
                assert all(_target(example)["value"] is not None for example in media["examples"].values())


def test_parameters_and_problems_are_stated_once():
    inline = [
        json.dumps(each, sort_keys=True)
        for operation in OPERATIONS.values()
        for each in operation.get("parameters", [])
        if "$ref" not in each
    ]
    named = {each["name"] for each in DOCUMENT["components"]["parameters"].values()}
    twice = {each for each in inline if inline.count(each) > 1}
    assert {json.loads(each)["name"] for each in twice} <= named


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_errors_are_problem_documents_and_json_is_the_first_media_type(operation_id):
    operation = OPERATIONS[operation_id]
    public = operation.get("security") == []
    assert public == (operation_id in ("get_liveness", "get_readiness"))
    for status, answer in operation["responses"].items():
        media_types = list(_target(answer).get("content", {}))
        if int(status) >= 400 and not (operation["tags"] == ["health"] and status == "503"):
            assert media_types == ["application/problem+json"]
        elif len(media_types) > 1:
            assert media_types[0] == "application/json"
    if not public:
        assert {"401", "403", "500", "503"} <= set(operation["responses"])


def test_parameters_of_a_path_are_in_its_order():
    for path, operations in DOCUMENT["paths"].items():
        for operation in operations.values():
            parameters = [_target(each) for each in operation.get("parameters", [])]
            named = [each["name"] for each in parameters if each["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path), operation["operationId"]


def test_each_success_but_an_empty_one_has_content():
    for path in DOCUMENT["paths"].values():
        for method, operation in path.items():
            for status, response in operation["responses"].items():
                if status.startswith("2") and status != "204" and method != "head":
                    assert _target(response).get("content"), operation["operationId"]
