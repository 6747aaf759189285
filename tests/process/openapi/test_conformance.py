"""Generated requests, valid and not: whatever is sent, the answer is one that the document describes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.kernel.changelog.delivery_forms import ChangeForm
from tests.support.examples import a_third_of
from tests.support.http import ORDERS, upsert

COMMITTED = Path(__file__).parents[3] / "openapi" / "openapi.json"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# The health of the service rightly is 503 where no worker is.
LEFT_OUT = ["get_service_health"]
requests = schemathesis.openapi.from_dict(json.loads(COMMITTED.read_text())).exclude(operation_id=LEFT_OUT)
OPERATIONS = {each.ok().label: each.ok() for each in requests.get_all_operations()}


# The one schema that fits the changes of a form, so that generated code takes none for another.
FORMS = {
    **dict.fromkeys(("two_event", "single_event", "retract", "upsert"), "Change"),
    "debezium": "DebeziumChange",
    "delta": "DeltaChange",
}


def _types_of(change):
    """The schemas of the union that the change fits."""
    document = json.loads(COMMITTED.read_text())
    named = document["components"]["schemas"]["AnyChange"]["anyOf"]
    return [
        each["$ref"].rsplit("/", 1)[-1]
        for each in named
        if jsonschema_rs.validator_for({**document, **each}).is_valid(change)
    ]


@pytest.fixture(scope="module")
def credential(service):
    """The key of a tenant that has a dataset called `orders`."""
    key = service.new_key("conformance")
    with service.client(key) as client:
        assert client.post("/datasets", json=ORDERS).status_code == 201
    return key


def test_operations_are_those_of_the_document():
    methods = [method for path in json.loads(COMMITTED.read_text())["paths"].values() for method in path]
    assert len(OPERATIONS) == len(methods) - len(LEFT_OUT)


# Not by `requests.parametrize()`: its tests have the same node id, by which xdist keeps one of them.
@pytest.mark.parametrize("label", OPERATIONS)
@given(data=st.data())
@settings(
    max_examples=a_third_of(15),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
def test_responses_match_the_document(label, data, service, credential):
    case = data.draw(
        st.one_of(OPERATIONS[label].as_strategy(generation_mode=mode) for mode in GenerationMode)
    )
    # Half of the requests are for a dataset that exists; the others, and those that would end it, hardly do.
    reference = case.path_parameters.get("dataset", "-")
    if len(reference) % 2 == 0 and case.method != "DELETE":
        case.path_parameters["dataset"] = "orders"
    if case.query and case.query.get("feed") == "longpoll":
        case.query["timeout"] = 0
    # A stream of changes has no other end.
    if case.operation.path.endswith("/changes/events"):
        case.query = {"until": 0, **(case.query or {})}
        if isinstance(case.query["until"], int):
            case.query["until"] = 0
    if case.query and "wait" in case.query:
        case.query["wait"] = 0
    case.headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "prefer"}
    case.call_and_validate(
        base_url=service.url, headers={"Authorization": f"Bearer {credential}"}, checks=CHECKS
    )


@pytest.mark.parametrize("form", [form.value for form in ChangeForm])
def test_changes_of_every_form_match_the_document(form, service, credential):
    with service.client(credential) as client:
        path = client.post("/datasets", json={**ORDERS, "name": f"as_{form}"}).headers["location"]
        for note in ("a", "b"):
            client.post(f"{path}/writes", json=upsert({"id": 1, "note": note}))
            service.work()
        client.post(f"{path}/writes", json={**upsert({"id": 1}), "operation": "delete"})
        service.work()
    case = requests["/datasets/{dataset}/changes"]["GET"].Case(
        path_parameters={"dataset": f"as_{form}"}, query={"form": form}
    )
    answer = case.call_and_validate(
        base_url=service.url, headers={"Authorization": f"Bearer {credential}"}, checks=CHECKS
    )
    assert {type_ for change in answer.json()["changes"] for type_ in _types_of(change)} == {FORMS[form]}


@pytest.mark.parametrize("form", [form.value for form in ChangeForm])
def test_streams_match_the_document(form, service, credential):
    with service.client(credential) as client:
        path = client.post("/datasets", json={**ORDERS, "name": f"stream_{form}"}).headers["location"]
        for note in ("a", "b"):
            job = client.post(f"{path}/writes", json=upsert({"id": 1, "note": note})).json()
            service.work()
    streams = [
        requests["/datasets/{dataset}/changes/events"]["GET"].Case(
            path_parameters={"dataset": f"stream_{form}"}, query={"form": form, "since": "0", "until": 3}
        ),
        requests["/jobs/{job}/events"]["GET"].Case(path_parameters={"job": job["id"]}),
    ]
    events = [
        case.call_and_validate(
            base_url=service.url, headers={"Authorization": f"Bearer {credential}"}, checks=CHECKS
        ).text.count("\ndata: ")
        for case in streams
    ]
    # An update is two events where the form has both rows as changes of their own.
    assert events == [3 if form in ("two_event", "retract", "delta") else 2, 1]


def test_dataset_survives_the_generated_requests(service, credential):
    with service.client(credential) as client:
        assert client.get("/datasets/orders").status_code == 200
