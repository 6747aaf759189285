"""Pages of keys, tenants, usage, the audit and the service: with data, empty, with problems and with hostile names."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from app.access.tenants.quotas import Quotas
from app.access.tenants.values import TenantChange, TenantState
from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.values import ProcessKind, ProcessReport
from app.features.console.pages.administration.service import stored_kinds
from app.features.retention.compose import sample_usage
from app.infra.db import answers
from tests.support.http import upsert
from tests.support.pages import checked_page, page, submit
from tests.support.postgres import TestServer
from tests.support.service import Service
from tests.support.waiting import until

HOSTILE = '<script>alert("x")</script>'
OPERATED = ("/console/tenants", "/console/service")
KINDS = ["Files of datasets", "Rendered files", "Postgres", "Other", "Free"]
MANAGED = ("/console/keys", "/console/audit")
_numbers = count(1)


@pytest.fixture
def tenant(visitor: httpx2.Client) -> str:
    """The path of the page of a new tenant."""
    root = page(visitor, "/console/tenants")
    name = f"made-{next(_numbers)}"
    made = checked_page(submit(visitor, root, "/console/tenants", name=name))
    assert "hw_" in made.text
    return made.link("The tenant")


@pytest.mark.parametrize("path", [*OPERATED, *MANAGED])
def test_page_names_the_scope_that_is_missing(
    service: Service, sign_in: Callable[[str], httpx2.Client], path: str
) -> None:
    reader = sign_in(service.new_key(f"console-reader-{next(_numbers)}", ("read",)))
    root = page(reader, path, 403)
    assert ("operate" if path in OPERATED else "manage") in root.text


def test_keys_are_listed_made_once_and_revoked(visitor: httpx2.Client) -> None:
    root = page(visitor, "/console/keys")
    assert "never" in root.text
    fields = {
        "name": HOSTILE,
        "datasets": "orders_* customers",
        "where": "region = 'eu'",
        "mask": "email, phone",
    }
    made = checked_page(submit(visitor, root, "/console/keys", **fields))
    key = made.all("pre")[0].text
    assert key.startswith("hw_")
    assert HOSTILE in made.text
    root = page(visitor, "/console/keys")
    assert key not in root.text
    [row] = [row for row in root.rows() if row and row[0].startswith(HOSTILE)]
    assert "orders_*, rows where region = 'eu', without the values of email, phone" in row[3]
    assert "customers, rows where" in row[3]
    [form] = [
        each
        for each in root.all("form")
        if any(field.attributes.get("value") == HOSTILE for field in each.all("input", name="name"))
    ]
    revoked = submit(visitor, root, form.attributes["action"])
    assert (revoked.status_code, revoked.headers["location"]) == (303, "/console/keys")
    root = page(visitor, "/console/keys")
    [row] = [row for row in root.rows() if row and row[0].startswith(HOSTILE)]
    assert "revoked" in row[1]
    assert f"The key {HOSTILE} is revoked." in root.text


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"name": "x", "requests_per_second": "many"}, 400, "requests_per_second: expected a whole number"),
        ({"name": "x", "expires_at": "soon"}, 400, "expires_at: expected a date and a time"),
        ({"name": "x", "expires_at": "2020-01-01T00:00"}, 400, "expected a time in the future"),
        ({"name": "x", "grants": "{"}, 400, "grants: expected JSON"),
        ({"name": "x", "grants": "3"}, 400, "expected a JSON list"),
        ({"name": "x", "where": "a = 1"}, 400, "expected the datasets"),
        ({"name": "x", "datasets": "a", "where": "a ="}, 400, "/grants/0/where"),
    ],
    ids=str,
)
def test_form_of_a_key_shows_what_is_wrong_and_what_was_typed(
    visitor: httpx2.Client, fields: dict[str, str], status: int, words: str
) -> None:
    answer = submit(visitor, page(visitor, "/console/keys"), "/console/keys", **fields)
    assert answer.status_code == status
    root = checked_page(answer)
    assert words in root.text
    assert root.one("input", id="field-name").attributes["value"] == "x"


def test_key_with_grants_sees_why_it_lists_no_keys(restricted: Callable[..., httpx2.Client]) -> None:
    reader = restricted({"datasets": "orders"}, scopes=("read", "manage"))
    assert "without grants" in page(reader, "/console/keys", 403).text


def test_tenant_is_made_limited_suspended_resumed_and_deleted(visitor: httpx2.Client, tenant: str) -> None:
    root = page(visitor, tenant)
    assert "active" in root.text
    action = f"{tenant}/quotas"
    assert submit(visitor, root, action, **{"quota.datasets": "2", "quota.weight": "1.5"}).status_code == 303
    root = page(visitor, tenant)
    assert "has other quotas" in root.text
    assert root.one("input", name="quota.datasets").attributes["value"] == "2"
    assert root.one("input", name="quota.weight").attributes["value"] == "1.5"
    assert [each.attributes["aria-label"] for each in root.all("svg", class_="meter")] == [
        "datasets: used of the limit"
    ]
    refused = checked_page(submit(visitor, root, action, **{"quota.datasets": "-1"}))
    assert "datasets" in refused.one("div", role="alert").text
    assert submit(visitor, root, action, **{"quota.datasets": ""}).status_code == 303
    assert page(visitor, tenant).one("input", name="quota.datasets").attributes["value"] == ""

    assert submit(visitor, root, f"{tenant}/suspend", reason=HOSTILE).status_code == 303
    root = page(visitor, tenant)
    assert HOSTILE in root.text
    assert HOSTILE in _all_tenants(visitor)
    assert submit(visitor, root, f"{tenant}/resume").status_code == 303
    root = page(visitor, tenant)
    wrong = submit(visitor, root, f"{tenant}/delete", confirm="other")
    assert wrong.status_code == 412
    assert "confirm" in checked_page(wrong).text
    name = root.one("h1").text.split()[0]
    assert submit(visitor, root, f"{tenant}/delete", confirm=name).status_code == 303
    deleted = page(visitor, tenant)
    assert "Files deleted" in deleted.text
    assert not deleted.all("form", action=f"/console{tenant}/delete")


def test_operator_makes_and_revokes_keys_of_a_tenant(visitor: httpx2.Client, tenant: str) -> None:
    root = page(visitor, tenant)
    made = checked_page(submit(visitor, root, f"{tenant}/keys", name="for them"))
    assert made.all("pre")[0].text.startswith("hw_")
    root = page(visitor, tenant)
    [form] = [
        each
        for each in root.all("form")
        if any(field.attributes.get("value") == "for them" for field in each.all("input", name="name"))
    ]
    revoked = submit(visitor, root, form.attributes["action"])
    assert (revoked.status_code, revoked.headers["location"]) == (303, tenant)
    assert "The key for them is revoked." in page(visitor, tenant).text


def test_wrong_name_of_a_tenant_is_shown_with_its_fault(visitor: httpx2.Client) -> None:
    answer = submit(visitor, page(visitor, "/console/tenants"), "/console/tenants", name="a b")
    assert answer.status_code == 400
    assert "letters, digits" in checked_page(answer).one("div", role="alert").text


def test_usage_has_charts_and_their_tables(
    visitor: httpx2.Client, client: httpx2.Client, orders: str, service: Service
) -> None:
    assert client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}, {"id": 2})).status_code == 202
    service.work()
    sample_usage(service.platform).run()
    root = page(visitor, "/console/usage")
    assert {"Rows written", "Bytes stored"} <= {
        each.text.partition(" 2")[0] for each in root.all("figcaption")
    } | {each.text for each in root.all("th")}
    assert page(visitor, "/console/usage?by=").one("h1").text == "Usage"
    [table] = [each for each in root.all("table") if each.rows()[0] == ["Day", "Rows written"]]
    assert len(table.rows()) == 32
    assert table.rows()[-1][1] == "2"
    by_dataset = page(visitor, "/console/usage?by=dataset")
    assert by_dataset.link("orders") == "/console/datasets/orders"
    assert client.delete(orders).status_code == 204
    cells = page(visitor, "/console/usage?by=dataset").rows()
    assert ["orders deleted", "2"] in [row[:2] for row in cells]
    key = next(name for name in (each.get("name") for each in client.get("/keys").json()["items"]))
    until(
        lambda: any(key in row[0] for row in page(visitor, "/console/usage?by=key").rows() if row),
        "the requests of the key",
        pause_seconds=0.5,
    )


@pytest.mark.parametrize("query", ["from=x", "from=2020-01-01", "by=planet", "to=2026-01-01&from=2026-01-02"])
def test_wrong_options_of_usage_are_a_problem(visitor: httpx2.Client, query: str) -> None:
    assert "not valid" in page(visitor, f"/console/usage?{query}", 400).one("h1").text


def test_usage_of_days_without_any_says_so(visitor: httpx2.Client) -> None:
    root = page(visitor, "/console/usage?from=2025-11-01&to=2025-11-02")
    assert "Nothing was used on these days." in root.text


def test_audit_is_filtered_by_its_address(visitor: httpx2.Client, client: httpx2.Client) -> None:
    made = client.post("/keys", json={"name": HOSTILE, "scopes": ["read"]}).json()
    tenant = client.get("/me").json()["tenant"]["id"]
    root = page(visitor, f"/console/audit?operation=create_key&outcome=allowed&tenant={tenant}")
    assert HOSTILE in root.text
    assert root.one("input", name="operation").attributes["value"] == "create_key"
    assert all("create_key" in row[2] for row in root.rows()[1:])
    other = page(visitor, f"/console/audit?key={made['id']}")
    assert "No entry is as the filters require." in other.text
    assert page(visitor, "/console/audit?key=x", 400)
    assert "expected a date" in page(visitor, "/console/audit?since_time=x", 400).text


def test_audit_marks_what_pages_have_requested(visitor: httpx2.Client, client: httpx2.Client) -> None:
    client.post("/keys", json={"name": "by-a-program", "scopes": ["read"]})
    tenant = client.get("/me").json()["tenant"]["id"]
    address = f"/console/audit?tenant={tenant}&operation=create_key"
    root = page(visitor, "/console/keys")
    assert submit(visitor, root, "/console/keys", name="by-hand", scopes="read").status_code == 200
    by_hand, by_program = page(visitor, address).rows()[1:3]
    assert by_hand[-1].startswith("console")
    assert by_program[-1].startswith("api")
    only = page(visitor, f"{address}&via=console")
    assert [row[2] for row in only.rows()[1:]] == [by_hand[2]]
    assert "selected" in only.one("select", name="via").one("option", value="console").attributes


def test_audit_of_a_tenant_has_its_own_entries_and_pages(
    service: Service, sign_in: Callable[[str], httpx2.Client]
) -> None:
    key = service.new_key(f"console-audit-{next(_numbers)}", ("read", "manage"))
    with service.client(key) as api:
        for number in range(51):
            api.post("/keys", json={"name": f"key-{number}", "scopes": ["read"]})
    root = page(sign_in(key), "/console/audit?operation=create_key")
    assert len(root.rows()) == 51
    following = page(sign_in(key), root.link("Next page"))
    assert len(following.rows()) == 2
    assert not root.all("input", name="tenant")


def test_tenants_that_reach_a_quota_first_stand_first(
    visitor: httpx2.Client, client: httpx2.Client, orders: str, service: Service, tenant: str
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 2}))
    service.work()
    own = client.get("/me").json()["tenant"]
    service.tenants.change(own["id"], TenantChange(quotas=Quotas(rows_per_day=2)))
    service.tenants.change(tenant.rsplit("/", 1)[1], TenantChange(quotas=Quotas(rows_per_day=2)))
    root = page(visitor, "/console/tenants")
    rows = [row[0] for row in root.rows()[1:]]
    made = page(visitor, tenant).one("h1").text
    assert rows.index(own["name"]) < next(place for place, name in enumerate(rows) if name in made)
    [row] = [row for row in root.rows() if row[0] == own["name"]]
    assert (row[1], row[3]) == ("active", "2")
    assert row[4].startswith("100% rows_per_day reached")


def test_a_process_that_does_not_report_is_a_fault(visitor: httpx2.Client, service: Service) -> None:
    processes = ProcessStore(service.database)
    processes.report("frozen", ProcessReport(kind=ProcessKind.WORKER))
    try:
        with service.database.relay() as connection:
            frozen = text("UPDATE workers SET polled_at = now() - interval '5 minutes' WHERE id = 'frozen'")
            connection.execute(frozen)
        root = page(visitor, "/console/service")
    finally:
        processes.ended("frozen")
    [worker] = [row for row in root.rows() if row[0].startswith("worker ") and row[1].startswith("silent")]
    assert worker[-1] == "all: it does not report"
    [workers] = [row for row in root.rows() if row[0] == "workers"]
    assert "restart or kill the one that hangs" in workers[3]


@pytest.mark.parametrize(
    ("folder", "used_bytes", "database_on_host", "names", "other", "beside"),
    [
        ("data and storage", 100, True, KINDS, 30, False),
        # Postgres is on the machine, and on neither of the disks, or on another machine.
        ("data and storage", 60, True, KINDS, 10, True),
        ("data and storage", 100, False, KINDS, 50, True),
        ("storage", 100, True, KINDS, 50, True),
        # The fullest disk is not that of the files: what is left over on theirs is not known.
        ("data", 100, True, KINDS[:3], None, False),
    ],
)
def test_only_what_is_on_a_disk_is_counted_into_it(
    folder: str, used_bytes: int, database_on_host: bool, names: list[str], other: int | None, beside: bool
) -> None:
    sums = {"dataset_bytes": 40, "quarantine_bytes": 0, "rendered_bytes": 10, "database_bytes": 20}
    places = {"files_on_disk": True, "database_on_host": database_on_host}
    disk = {"total_bytes": 200, "free_bytes": 200 - used_bytes, "folder": folder}
    kinds = {each.name: each for each in stored_kinds(sums | places, {"host": disk})}
    assert list(kinds) == names
    assert (kinds["Other"].size_bytes if "Other" in kinds else None) == other
    assert kinds["Postgres"].beside is beside


def test_service_page_has_checks_with_what_to_do_and_what_fills_the_storage(
    visitor: httpx2.Client, client: httpx2.Client, orders: str, service: Service
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    sample_usage(service.platform).run()

    def processes() -> Any:
        root = page(visitor, "/console/service")
        return root if any(row and row[0].startswith("api") for row in root.rows()) else None

    root = until(processes, "the process in its register", pause_seconds=0.3)
    # No worker reports in these tests.
    [workers] = [row for row in root.rows() if row and row[0] == "workers"]
    assert workers[1] in ("critical", "warning")
    assert "Start a worker" in workers[3]
    [process] = [row for row in root.rows() if row and row[0].startswith("api")]
    assert process[5].endswith(("MB", "GB"))
    assert "orders" in [row[1] for row in root.rows() if len(row) == 7]
    assert root.all("svg", class_="meter")
    kinds = [row[0] for row in root.rows() if row]
    assert [each for each in kinds if each in KINDS] == KINDS
    reaped = submit(visitor, root, "/console/service/reap")
    assert (reaped.status_code, reaped.headers["location"]) == (303, "/console/service")
    assert re.search(r"files? of deleted datasets deleted\.", page(visitor, "/console/service").text)
    submit(visitor, root, "/console/service/reap")
    shown = page(visitor, "/console/service").text
    assert "0 files of deleted datasets deleted. No deleted dataset has files, or a backup runs." in shown


def test_page_of_a_suspended_tenant_shows_why_its_keys_cannot_be_made(
    service: Service, sign_in: Callable[[str], httpx2.Client]
) -> None:
    name = f"console-suspended-{next(_numbers)}"
    reader = sign_in(service.new_key(name))
    service.tenants.change(name, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    root = page(reader, "/console/keys")

    def refused() -> Any:
        answer = submit(reader, root, "/console/keys", name="x")
        return answer if answer.status_code == 403 else None

    assert "unpaid" in checked_page(until(refused, "the suspension")).one("div", role="alert").text


def _all_tenants(visitor: httpx2.Client) -> str:
    """The texts of all pages of the list."""
    address, texts = "/console/tenants", []
    while address:
        root = page(visitor, address)
        texts.append(root.text)
        address = next((each.attributes["href"] for each in root.all("a") if each.text == "Next page"), "")
    return " ".join(texts)


def test_service_page_shows_that_postgres_is_away(
    visitor: httpx2.Client, postgres: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "SILENCE_SECONDS", 1.0)
    page(visitor, "/console/service")
    with postgres.frozen():
        until(lambda: visitor.get("/console/tenants").status_code == 503, "requests without the database")
        root = page(visitor, "/console/service")
    [database] = [row for row in root.rows() if row and row[0] == "database"]
    assert "The database does not answer" in " ".join(database)
    until(lambda: visitor.get("/console/tenants").status_code == 200, "requests to be answered again")
