"""Idempotency-Key on requests that create something and are not jobs."""

import json

import pytest
from sqlalchemy import select

from app.access.tenants.errors import AdministrationUnavailable
from app.access.tenants.values import Grant, KeyScope
from app.core.catalog.errors import SchemaChanged
from app.core.idempotency.tables import idempotency_keys
from app.http.problems import is_final
from app.infra.errors import Unavailable
from app.kernel.format.errors import InvalidRequest
from tests.support.exports import ONCE
from tests.support.http import ORDERS, problem
from tests.support.service import SCOPES

KEY = {"Idempotency-Key": "k-1"}


def test_a_retry_gets_the_first_reply(client):
    first = client.post("/datasets", json=ORDERS, headers=KEY)
    assert first.status_code == 201
    assert "idempotency-replayed" not in first.headers
    client.patch("/datasets/orders", json={"changelog": {"retention": None}}, headers={"If-Match": '"0"'})
    retry = client.post("/datasets", json=ORDERS, headers=KEY)
    assert (retry.status_code, retry.content) == (201, first.content)
    assert retry.headers["idempotency-replayed"] == "true"
    for name in ("location", "etag", "content-type"):
        assert retry.headers[name] == first.headers[name]


def test_the_same_members_in_another_order_are_the_same_request(client):
    first = client.post("/datasets", json=ORDERS, headers=KEY)
    text = json.dumps(dict(reversed(ORDERS.items())), indent=2)
    headers = {**KEY, "Content-Type": "application/json"}
    assert client.post("/datasets", content=text, headers=headers).content == first.content


def test_another_body_with_the_key_is_refused(client):
    client.post("/datasets", json=ORDERS, headers=KEY)
    other = client.post("/datasets", json={**ORDERS, "name": "returns"}, headers=KEY)
    assert "send a new key" in problem(other, 422, "idempotency-mismatch")["detail"]
    problem(client.get("/datasets/returns"), 404, "not-found")


def test_a_refusal_is_replayed_too(client, orders):
    first = client.post("/datasets", json=ORDERS, headers=KEY)
    problem(first, 409, "dataset-exists")
    client.delete(orders)
    retry = client.post("/datasets", json=ORDERS, headers=KEY)
    assert problem(retry, 409, "dataset-exists") == first.json()
    assert retry.headers["idempotency-replayed"] == "true"
    assert client.post("/datasets", json=ORDERS, headers={"Idempotency-Key": "k-2"}).status_code == 201


def test_a_key_belongs_to_a_dataset_and_not_to_its_name(client, orders):
    def upload():
        return client.post(
            "/datasets/orders/uploads",
            content=b"1\n",
            headers={**KEY, "Content-Type": "application/octet-stream"},
        )

    first = upload().json()
    assert upload().json() == first
    client.delete(orders)
    client.post("/datasets", json=ORDERS)
    again = upload()
    assert again.status_code == 201
    assert "idempotency-replayed" not in again.headers
    assert again.json()["id"] != first["id"]


def test_a_key_belongs_to_its_tenant(client, new_client):
    client.post("/datasets", json=ORDERS, headers=KEY)
    other = new_client().post("/datasets", json={**ORDERS, "name": "returns"}, headers=KEY)
    assert other.status_code == 201


def test_a_body_that_does_not_fit_leaves_the_key_free(client):
    problem(client.post("/datasets", json={"name": "orders"}, headers=KEY), 400, "invalid-request")
    assert client.post("/datasets", json=ORDERS, headers=KEY).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 256, "ü"])
def test_malformed_idempotency_key_is_refused(client, key):
    answer = client.post("/datasets", json=ORDERS, headers={"Idempotency-Key": key.encode()})
    problem(answer, 400, "invalid-request")


def test_missing_resource_leaves_the_key_free(client, service, receiver):
    webhook = {"dataset": "orders", "url": receiver.url}
    problem(client.post("/webhooks", json=webhook, headers=KEY), 404, "not-found")
    client.post("/datasets", json=ORDERS)
    assert client.post("/webhooks", json=webhook, headers=KEY).status_code == 201


def test_secret_is_replayed_to_its_client_and_stored_encrypted(service, receiver):
    tenant_id = service.tenants.add_tenant("secretive")
    client, colleague = (
        service.client(service.tenants.make_key(tenant_id, SCOPES).api_key) for _ in range(2)
    )
    client.post("/datasets", json=ORDERS)
    webhook = {"dataset": "orders", "url": receiver.url}
    first = client.post("/webhooks", json=webhook, headers=KEY)
    secret = first.json()["secret"]
    retry = client.post("/webhooks", json=webhook, headers=KEY)
    assert (retry.status_code, retry.content) == (201, first.content)
    assert retry.headers["idempotency-replayed"] == "true"
    assert "headwater-sealed" not in retry.headers
    with service.database.tenant(tenant_id) as connection:
        stored = connection.execute(select(idempotency_keys)).all()
    assert b"webhook" not in stored[0].body
    assert secret not in repr(stored)
    other = colleague.post("/webhooks", json=webhook, headers=KEY)
    assert "only the API key of that request" in problem(other, 422, "idempotency-mismatch")["detail"]
    assert secret not in other.text
    client.close()
    colleague.close()


def test_key_with_grants_gets_no_reply_of_another_key(service):
    tenant_id = service.tenants.add_tenant("granting")
    part = (Grant(datasets="orders", scopes=(KeyScope.READ,), where="id = 1", mask=("note",)),)
    whole, limited, other = (
        service.client(service.tenants.make_key(tenant_id, ("read", "write"), grants=grants).api_key)
        for grants in (None, part, part)
    )
    whole.post("/datasets", json=ORDERS)

    def export(client, key):
        answer = client.post("/datasets/orders/exports", json=ONCE, headers={"Idempotency-Key": key})
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    orders_of_requests = ((whole, limited, other), (limited, whole, other))
    for key, clients in enumerate(orders_of_requests):
        made = [export(client, str(key)) for client in clients]
        assert len(set(made)) == 3
        assert [export(client, str(key)) for client in clients] == made
    for client in (whole, limited, other):
        client.close()


def test_failures_of_the_service_are_not_final():
    assert is_final(InvalidRequest("no"))
    assert not is_final(Unavailable("away"))
    assert not is_final(SchemaChanged("just now"))
    assert not is_final(AdministrationUnavailable("not here"))
