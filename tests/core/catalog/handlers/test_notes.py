"""The description and the labels of a dataset, as users set them and find datasets by them."""

from __future__ import annotations

import pytest

from app.access.tenants.values import Grant
from tests.support.http import ORDERS, problem, upsert, without_engines

NOTES = {"description": "All orders.\nOne row each.", "labels": {"team": "ops", "example.org/tier": "gold"}}


def names(answer):
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["items"]]


def test_registration_has_notes_which_every_response_shows(client):
    made = client.post("/datasets", json={**ORDERS, **NOTES})
    assert made.status_code == 201, made.text
    for dataset in (
        made.json(),
        client.get("/datasets/orders").json(),
        client.get("/datasets").json()["items"][0],
    ):
        assert {name: dataset[name] for name in NOTES} == NOTES
    plain = client.post("/datasets", json={**ORDERS, "name": "plain"}).json()
    assert (plain["description"], plain["labels"]) == (None, {})


def test_notes_change_at_once_and_make_no_version(client, orders):
    changed = client.patch(orders, json=NOTES, headers={"If-Match": '"0"'})
    assert changed.status_code == 200, changed.text
    assert (changed.headers["etag"], changed.json()["version"]) == ('"0"', 0)
    assert without_engines(client.get(orders).json()) == changed.json()
    again = client.patch(orders, json={"labels": {"team": "sales"}}, headers={"If-Match": '"0"'}).json()
    assert (again["description"], again["labels"]) == (NOTES["description"], {"team": "sales"})
    bare = client.patch(orders, json={"description": None, "labels": {}}, headers={"If-Match": '"0"'}).json()
    assert (bare["description"], bare["labels"], bare["version"]) == (None, {}, 0)
    assert client.get(f"{orders}/timeline").json()["items"] == []
    assert client.get("/jobs").json()["items"] == []


def test_notes_and_a_rename_are_one_version(client, orders):
    answer = client.patch(orders, json={"name": "purchases", **NOTES}, headers={"If-Match": '"0"'})
    assert (answer.json()["version"], answer.json()["labels"]) == (1, NOTES["labels"])


def test_change_of_notes_requires_the_version(client, orders):
    problem(client.patch(orders, json=NOTES), 428, "precondition-required")
    problem(client.patch(orders, json=NOTES, headers={"If-Match": '"7"'}), 412, "precondition-failed")


def test_notes_stay_through_writes_and_schema_changes(client, orders, service):
    client.patch(orders, json=NOTES, headers={"If-Match": '"0"'})
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    field = {"kind": "add", "field": {"name": "more", "type": "string"}}
    changed = client.patch(orders, json={"changes": [field]}, headers={"If-Match": '"0"'}).json()
    assert {name: changed[name] for name in NOTES} == NOTES


@pytest.mark.parametrize(
    ("notes", "pointer"),
    [
        ({"description": ""}, "/description"),
        ({"description": "x" * 4_097}, "/description"),
        ({"description": "a\0b"}, "/description"),
        ({"labels": {f"k{number}": "v" for number in range(65)}}, "/labels"),
        ({"labels": {"": "v"}}, "/labels/"),
        ({"labels": {"a b": "v"}}, "/labels/a b"),
        ({"labels": {"-a": "v"}}, "/labels/-a"),
        ({"labels": {"a" * 64: "v"}}, "/labels/" + "a" * 64),
        ({"labels": {"Example.org/a": "v"}}, "/labels/Example.org~1a"),
        ({"labels": {"team": "ops\n"}}, "/labels/team"),
        ({"labels": {"team": "v" * 64}}, "/labels/team"),
        ({"labels": {"team": "a:b"}}, "/labels/team"),
    ],
)
def test_notes_that_break_a_rule_are_refused_with_their_place(client, orders, notes, pointer):
    for answer in (
        client.post("/datasets", json={**ORDERS, "name": "other", **notes}),
        client.patch(orders, json=notes, headers={"If-Match": '"0"'}),
    ):
        refused = problem(answer, 422, "invalid-dataset")
        assert [error["pointer"] for error in refused["errors"]] == [pointer]
    assert client.get(orders).json()["labels"] == {}


@pytest.mark.parametrize(
    "notes", [{"labels": {"team": 1}}, {"labels": ["team"]}, {"labels": None}, {"description": 1}]
)
def test_notes_of_another_type_are_refused(client, orders, notes):
    [name] = notes
    for answer in (
        client.post("/datasets", json={**ORDERS, "name": "other", **notes}),
        client.patch(orders, json=notes, headers={"If-Match": '"0"'}),
    ):
        assert answer.status_code == 400, answer.text
        assert answer.json()["errors"][0]["pointer"].startswith(f"/{name}")


def test_lists_are_filtered_by_labels(client):
    for name, labels in {
        "a": {"team": "ops", "env": "prod"},
        "b": {"team": "ops"},
        "c": {"tier": ""},
    }.items():
        assert client.post("/datasets", json={**ORDERS, "name": name, "labels": labels}).status_code == 201
    assert names(client.get("/datasets", params={"label": "team:ops"})) == ["a", "b"]
    assert names(client.get("/datasets", params={"label": ["team:ops", "env:prod"]})) == ["a"]
    assert names(client.get("/datasets", params={"label": "tier:"})) == ["c"]
    assert names(client.get("/datasets", params={"label": "team:sales"})) == []
    page = client.get("/datasets", params={"label": "team:ops", "page_size": 1}).json()
    rest = client.get("/datasets", params={"label": "team:ops", "page_token": page["next_page_token"]})
    assert names(rest) == ["b"]
    problem(client.get("/datasets", params={"page_token": page["next_page_token"]}), 400, "invalid-request")


@pytest.mark.parametrize("label", ["", "team", "team=ops", ":ops", "team:a:b", "te am:ops", "team:ops\n"])
def test_label_of_another_form_is_refused_with_its_place(client, label):
    refused = problem(client.get("/datasets", params={"label": label}), 400, "invalid-request")
    [error] = refused["errors"]
    assert error["pointer"].startswith("/label")
    assert "key:value" in error["detail"]


def test_key_finds_no_dataset_by_a_label_that_it_is_not_granted(service):
    tenant_id = service.tenants.add_tenant("noting")
    whole = service.client(service.tenants.make_key(tenant_id, ("read", "write", "manage")).api_key)
    grants = (Grant(datasets="orders*"),)
    part = service.client(service.tenants.make_key(tenant_id, ("read",), grants=grants).api_key)
    for name in ("orders", "salaries"):
        whole.post("/datasets", json={**ORDERS, "name": name, "labels": {"team": "ops"}})
    assert names(whole.get("/datasets", params={"label": "team:ops"})) == ["orders", "salaries"]
    assert names(part.get("/datasets", params={"label": "team:ops"})) == ["orders"]
    problem(part.get("/datasets/salaries"), 404, "not-found")


def test_key_without_manage_changes_no_notes(service):
    tenant_id = service.tenants.add_tenant("reading")
    writer = service.client(service.tenants.make_key(tenant_id, ("read", "write")).api_key)
    made = writer.post("/datasets", json={**ORDERS, **NOTES})
    problem(
        writer.patch(made.headers["location"], json={"labels": {}}, headers={"If-Match": '"0"'}),
        403,
        "forbidden",
    )
