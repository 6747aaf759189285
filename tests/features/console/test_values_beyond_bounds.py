"""Times, numbers and forms that no request can carry: pages show a problem, and do not fail."""

from __future__ import annotations

import httpx2
import pytest

from tests.support.pages import checked_page, page, submit

BASE = "/console/datasets/orders"
LATEST = "9999-12-31T23:59:59-23:59"
EARLIEST = "0001-01-01T00:00:00%2B23:00"
MOMENTS = ("999999d", LATEST, EARLIEST)
REFUSED = (
    *(f"{BASE}/rows/csv?at={moment}" for moment in MOMENTS),
    "/console/usage?from=0001-01-01&to=9999-12-31",
)
MARKED = (
    *(f"{BASE}/rows?at={moment}" for moment in MOMENTS),
    *(f"{BASE}/rows/row?key=1&at={moment}" for moment in MOMENTS),
    *(f"{BASE}/changes?since={moment}" for moment in MOMENTS),
)
SHOWN = (
    f"{BASE}/timeline?instant=00010101000000000000-x",
    f"{BASE}/timeline?instant=99991231235959999999-x",
    "/console/usage?to=0001-01-01",
    "/console/usage?to=9999-12-31",
    "/console/usage?from=0001-01-01&to=0001-01-01",
)
OF_API = (
    *(f"/datasets/orders/rows?as_of={moment}" for moment in MOMENTS[1:]),
    *(f"/datasets/orders/changes?since_time={moment}" for moment in MOMENTS[1:]),
    *(f"/datasets/orders/timeline?since_time={moment}" for moment in MOMENTS[1:]),
    *(f"/console/datasets/orders/timeline?since={moment}" for moment in MOMENTS[1:]),
)


@pytest.mark.parametrize("address", REFUSED)
def test_a_value_beyond_the_bounds_is_refused(visitor: httpx2.Client, orders: str, address: str) -> None:
    assert page(visitor, address, status=400)


@pytest.mark.parametrize("address", MARKED)
def test_a_time_beyond_the_bounds_is_marked_in_its_field(
    visitor: httpx2.Client, orders: str, address: str
) -> None:
    root = page(visitor, address)
    assert [each.attributes["name"] for each in root.all("input", aria_invalid="true")]


@pytest.mark.parametrize("address", SHOWN)
def test_a_value_at_the_bounds_is_shown(visitor: httpx2.Client, orders: str, address: str) -> None:
    assert page(visitor, address)


@pytest.mark.parametrize("address", OF_API)
def test_the_api_answers_a_time_beyond_the_bounds(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, address: str
) -> None:
    sender = visitor if address.startswith("/console") else client
    assert sender.get(address).status_code < 500


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00"])
def test_the_end_of_a_key_beyond_the_bounds_is_refused(
    client: httpx2.Client, visitor: httpx2.Client, end: str
) -> None:
    refused = client.post("/keys", json={"name": "loader", "scopes": ["read"], "expires_at": end})
    assert refused.status_code == 400, refused.text
    assert [each["pointer"] for each in refused.json()["errors"]] == ["/expires_at"]
    fields = {"name": "loader", "expires_at": end}
    answer = submit(visitor, page(visitor, "/console/keys"), "/console/keys", **fields)
    assert answer.status_code == 400
    assert "expires_at: expected a date and a time" in checked_page(answer).text


DEEP = "[" * 5_000


@pytest.mark.parametrize(
    ("path", "action", "fields"),
    [
        ("/console/keys", "/console/keys", {"name": "deep", "grants": DEEP}),
        (f"{BASE}/write", f"{BASE}/write", {"rows": DEEP}),
        (f"{BASE}/write", f"{BASE}/write", {"rows": '{"id": ' + DEEP}),
        (f"{BASE}/write", f"{BASE}/write", {"rows": DEEP, "dry": "on"}),
        (f"{BASE}/settings", f"{BASE}/settings", {"services": DEEP}),
        ("/console/sources", "/console/sources", {"definition": DEEP}),
    ],
    ids=["grants", "rows", "an object", "a dry run", "settings", "a source"],
)
def test_what_is_nested_too_deeply_is_refused(
    visitor: httpx2.Client, orders: str, path: str, action: str, fields: dict[str, str]
) -> None:
    answer = submit(visitor, page(visitor, path), action, **fields)
    assert answer.status_code in (303, 400), answer.text
    if answer.status_code == 400:
        assert checked_page(answer).all("div", role="alert")


def test_a_record_that_is_nested_too_deeply_is_repaired_as_a_text(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    root = page(visitor, f"{BASE}/quarantine")
    token = root.all("input", name="token")[0].attributes["value"]
    fields = {"token": token, "id": "x", "original": '{"a": ' + DEEP, "value of a": DEEP}
    answer = visitor.post(f"{BASE}/quarantine/redrive", data=fields)
    assert answer.status_code in (400, 404), answer.text


@pytest.mark.parametrize("number", ["1e999", "-1e999", "nan", "inf"])
def test_a_number_that_json_has_not_removes_no_limit(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, number: str
) -> None:
    tenant = client.get("/me").json()["tenant"]["id"]
    address = f"/console/tenants/{tenant}"
    assert client.patch(f"/tenants/{tenant}", json={"quotas": {"weight": 2.5}}).status_code == 200
    fields = {"quota.weight": number}
    answer = submit(visitor, page(visitor, address), f"{address}/quotas", **fields)
    assert answer.status_code == 400, answer.text
    assert client.get(f"/tenants/{tenant}").json()["quotas"] == {"weight": 2.5}
    assert client.patch(f"/tenants/{tenant}", json={"quotas": {"weight": None}}).status_code == 200
    before = client.get(orders).json()
    answer = submit(
        visitor, page(visitor, f"{BASE}/settings"), f"{BASE}/settings", **{"services.compaction.logs": number}
    )
    assert answer.status_code == 400, answer.text
    assert client.get(orders).json() == before


@pytest.mark.parametrize("digits", [19, 5_000])
def test_a_number_of_too_many_digits_is_refused(visitor: httpx2.Client, orders: str, digits: int) -> None:
    fields = {"dataset": "orders", "url": "https://example.com/", "batch_changes_max": "9" * digits}
    answer = submit(visitor, page(visitor, "/console/webhooks"), "/console/webhooks", **fields)
    assert answer.status_code == 400
    assert "batch_changes_max" in checked_page(answer).text


def test_a_setting_of_too_many_digits_is_refused(visitor: httpx2.Client, orders: str) -> None:
    fields = {"services.compaction.logs": "9" * 5_000}
    answer = submit(visitor, page(visitor, f"{BASE}/settings"), f"{BASE}/settings", **fields)
    assert answer.status_code == 400
    assert "/services/compaction/logs" in checked_page(answer).one("div", role="alert").text


def test_settings_without_a_required_value_are_refused(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    before = client.get(orders).json()
    root = page(visitor, f"{BASE}/settings")
    answer = submit(visitor, root, f"{BASE}/settings", name="")
    assert answer.status_code == 400
    assert "expected a value" in checked_page(answer).one("div", role="alert").text
    assert client.get(orders).json() == before


def test_a_required_setting_that_a_form_lacks_stays(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    root = page(visitor, f"{BASE}/settings")
    form = root.all("form", action=f"{BASE}/settings", method="post")[0]
    del form.one("input", name="name").attributes["name"]
    answer = submit(visitor, root, f"{BASE}/settings", description="All orders")
    assert answer.status_code == 303, answer.text
    dataset = client.get(orders).json()
    assert (dataset["name"], dataset["description"]) == ("orders", "All orders")
