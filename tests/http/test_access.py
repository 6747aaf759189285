"""Credentials, scopes, tenants, and what applies to every resource alike."""

import time

import httpx2
import pytest

from tests.support.http import ORDERS, TLS, problem, upsert

PATHS = ["", "/schema", "/changes", "/rows", "/timeline"]


@pytest.fixture
def anonymous(service):
    with httpx2.Client(base_url=service.url, trust_env=False, verify=TLS) as client:
        yield client


def test_request_without_a_credential_is_challenged(anonymous):
    answer = anonymous.get("/datasets")
    problem(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == 'Bearer realm="headwater"'


@pytest.mark.parametrize(
    "credential",
    ["Bearer hw_no", "Bearer", "Basic aGVsbG86d29ybGQ=", "hw_" + "a" * 43, "Bearer hw_" + "a" * 43],
)
def test_invalid_credential_is_refused(anonymous, credential):
    answer = anonymous.get("/datasets", headers={"Authorization": credential})
    problem(answer, 401, "unauthorized")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_scopes_limit_what_a_key_may_do(new_client):
    reader = new_client(("read",))
    assert reader.get("/datasets").status_code == 200
    assert problem(reader.post("/datasets", json=ORDERS), 403, "forbidden")["required_scope"] == "write"
    writer = new_client(("write",))
    orders = writer.post("/datasets", json=ORDERS).headers["location"]
    problem(writer.get(orders), 403, "forbidden")
    assert writer.head(orders).status_code == 403


def test_resources_of_another_tenant_are_not_found(client, orders, new_client):
    other = new_client()
    job = client.post(f"{orders}/writes", json=upsert({"id": 1})).json()["links"]["self"]
    for path in PATHS:
        problem(other.get(orders + path), 404, "not-found")
    problem(other.get("/datasets/orders"), 404, "not-found")
    problem(other.post(f"{orders}/writes", json=upsert({"id": 1})), 404, "not-found")
    problem(other.delete(orders), 404, "not-found")
    problem(other.get(job), 404, "not-found")
    problem(other.get(f"{job}/events"), 404, "not-found")
    problem(other.post(f"{job}/cancel"), 404, "not-found")
    assert other.get("/datasets").json()["items"] == []
    upload = other.post(
        f"{orders}/uploads", content=b"x", headers={"Content-Type": "application/octet-stream"}
    )
    problem(upload, 404, "not-found")


def test_upload_of_another_tenant_cannot_be_written(client, orders, new_client):
    upload = client.post(
        f"{orders}/uploads", content=b"id\n1\n", headers={"Content-Type": "application/octet-stream"}
    ).json()
    other = new_client()
    theirs = other.post("/datasets", json=ORDERS).headers["location"]
    source = {"kind": "upload", "upload_id": upload["id"], "format": "csv"}
    problem(other.post(f"{theirs}/writes", json={"operation": "upsert", "source": source}), 404, "not-found")


def test_unknown_paths_and_methods_return_problems(client):
    problem(client.get("/nowhere"), 404, "not-found")
    for path in ("/datasets", "/jobs/1/cancel", "/health/live"):
        answer = client.put(path, json={})
        problem(answer, 405, "method-not-allowed")
        assert answer.headers["allow"] == client.options(path).headers["allow"]


def test_unknown_parameter_is_refused(client, orders):
    for path in ("", "/changes", "/rows", "/timeline"):
        members = problem(client.get(orders + path, params={"sinse": 3}), 400, "invalid-request")
        assert members["errors"][0]["pointer"] == "/sinse"
    answer = client.post(f"{orders}/writes", params={"mode": "overwrite"}, json=upsert({"id": 1}))
    assert problem(answer, 400, "invalid-request")["errors"][0]["pointer"] == "/mode"


def test_head_returns_the_headers_of_get_without_a_body(client, orders):
    head, get = client.head(orders), client.get(orders)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(get.content))
    assert head.headers["etag"] == get.headers["etag"]


def test_response_has_a_request_id_and_keeps_a_valid_one(client):
    assert client.get("/datasets").headers["x-request-id"] != client.get("/datasets").headers["x-request-id"]
    kept = client.get("/datasets", headers={"X-Request-Id": "my-request-1"})
    assert kept.headers["x-request-id"] == "my-request-1"
    made = client.get("/datasets", headers={"X-Request-Id": "a b\tc"})
    assert made.headers["x-request-id"] != "a b\tc"


def test_access_log_has_one_line_per_request_and_no_secrets(client, orders, caplog):
    caplog.set_level("INFO", logger="headwater.access")
    client.get(f"{orders}/changes", params={"since": "0"})

    def lines():
        messages = [record.getMessage() for record in caplog.records if record.name == "headwater.access"]
        return [line for line in messages if "/changes" in line]

    # The line is written once the answer has been sent, so the client may be ahead of it.
    deadline = time.monotonic() + 5
    while not lines() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(lines()) == 1
    assert lines()[0].startswith(f"GET {orders}/changes 200")
    assert "hw_" not in caplog.text
    assert "since" not in caplog.text


def test_unexpected_error_returns_an_id_and_hides_its_cause(client, service, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("secret: the moon")

    monkeypatch.setattr("app.core.catalog.service.Datasets.list", broken)
    answer = client.get("/datasets")
    members = problem(answer, 500, "internal")
    assert members["request_id"] == answer.headers["x-request-id"]
    assert "moon" not in answer.text
    assert members["request_id"] in caplog.text
    assert "secret: the moon" in caplog.text


def test_health_requires_no_credential(anonymous):
    assert anonymous.get("/health/live").json() == {"live": True}
    ready = anonymous.get("/health/ready")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)


def test_openapi_schema_requires_no_credential_and_names_no_other_host(anonymous):
    for path in ("/schema", "/schema/openapi.json"):
        answer = anonymous.get(path)
        assert answer.json()["openapi"].startswith("3.1")
        assert b"cdn" not in answer.content


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/datasets", "GET, HEAD, OPTIONS, POST"),
        ("/health/live", "GET, HEAD, OPTIONS"),
        ("/jobs/1/cancel", "OPTIONS, POST"),
    ],
)
def test_options_answers_with_the_methods_of_a_path(service, path, allowed):
    with httpx2.Client(base_url=service.url, trust_env=False, verify=TLS) as anonymous:
        answer = anonymous.options(path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["allow"] == allowed


def test_json_ends_with_a_newline_for_terminals(client):
    assert client.get("/health/live").content.endswith(b"}\n")
    assert client.get("/nowhere").content.endswith(b"}\n")
