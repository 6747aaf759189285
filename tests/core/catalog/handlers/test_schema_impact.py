"""Changes of a schema that break what names columns: refused, or made with `cascade=pause`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from app.access.tenants.values import Grant, KeyScope
from tests.support.derived_views import rows as rows_of
from tests.support.exports import EVERY_MINUTE, ONCE
from tests.support.http import ORDERS, problem, upsert
from tests.support.schema_changes import change
from tests.support.service import SCOPES, Service
from tests.support.webhooks import Register, tenant_of

Row = dict[str, Any]
DROP = {"kind": "drop", "name": "note"}
RENAME = {"kind": "rename", "name": "note", "to": "text"}
WIDE = {
    "name": "wide",
    "record_key": ["id"],
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "small", "type": "int32"},
            {"name": "price", "type": "decimal(4, 2)"},
            {"name": "day", "type": "date"},
            {"name": "place", "type": "struct<city: string>"},
        ]
    },
}


def cascading(client: httpx2.Client, path: str, *changes: Row) -> httpx2.Response:
    headers = {"If-Match": client.get(path).headers["etag"]}
    return client.patch(path, json={"changes": list(changes)}, headers=headers, params={"cascade": "pause"})


def broken(answer: httpx2.Response) -> list[tuple[str, str, str]]:
    body = problem(answer, 409, "schema-in-use")
    assert all(each["detail"] and each["action"] and each["id"] for each in body["breaks"])
    assert body["break_count"] == len(body["breaks"])
    return sorted((each["kind"], each["name"], each["column"]) for each in body["breaks"])


@pytest.fixture
def readers(
    client: httpx2.Client, service: Service, orders: str, new_view: Callable[..., Row], register: Register
) -> Row:
    """One of each kind that names the column `note`, by its kind, and others that do not."""
    new_view("loud", "SELECT id, upper(note) AS note FROM orders", lambda rows: rows)
    new_view("count", "SELECT count(*) AS n FROM orders", lambda rows: [{"n": len(rows)}])
    register(description="all")
    webhook = register(description="filtered", where="note = 'a'", since="earliest")
    export = client.post(f"{orders}/exports", json=EVERY_MINUTE | {"name": "notes", "columns": ["note"]})
    client.post(f"{orders}/exports", json=EVERY_MINUTE | {"name": "everything"})
    client.post(f"{orders}/exports", json=ONCE | {"name": "ended", "columns": ["note"]})
    client.post("/datasets", json=ORDERS | {"name": "copy"})
    source = client.post(
        "/sources",
        json={
            "name": "chain",
            "dataset": "copy",
            "kind": "dataset",
            "config": {"dataset": "orders", "where": "note = 'a'"},
            "mode": "continuous",
        },
    )
    tenant = tenant_of(client, service)
    grants = (Grant(datasets="ord*", scopes=(KeyScope.READ,), where="note = 'a'"),)
    key = service.tenants.make_key(tenant, (KeyScope.READ,), name="partner", grants=grants)
    service.tenants.make_key(
        tenant,
        (KeyScope.READ,),
        name="other",
        grants=(Grant(datasets="x*", mask=("note",)), Grant(datasets="orders")),
    )
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    return {
        "webhook": f"/webhooks/{webhook['id']}",
        "export": export.headers["location"],
        "source": source.headers["location"],
        "view": "/views/loud",
        "key": key.api_key,
    }


ALL = [
    ("export", "notes", "note"),
    ("key", "partner", "note"),
    ("source", "chain", "note"),
    ("view", "loud", "note"),
    ("webhook", "filtered", "note"),
]


@pytest.mark.parametrize("step", [DROP, RENAME])
def test_change_that_breaks_readers_is_refused_and_names_them(
    client: httpx2.Client, orders: str, readers: Row, step: Row
) -> None:
    before = client.get(orders).json()
    assert broken(change(client, orders, step)) == ALL
    assert client.get(orders).json() == before
    for kind in ("view", "webhook", "export", "source"):
        assert client.get(readers[kind]).json()["state"] == "active"


@pytest.mark.parametrize("cascade", [{}, {"cascade": "pause"}], ids=["refused", "paused"])
def test_dry_run_changes_nothing_and_names_what_would_break(
    client: httpx2.Client, orders: str, readers: Row, cascade: Row
) -> None:
    before, tag = client.get(orders).json(), client.get(orders).headers["etag"]
    for step, names in ((DROP, ["id"]), (RENAME, ["id", "text"])):
        answer = client.patch(
            orders,
            json={"changes": [step]},
            headers={"If-Match": tag},
            params={"dry_run": True, **cascade},
        )
        if cascade:
            assert answer.status_code == 200, answer.text
            named = sorted((each["kind"], each["name"], each["column"]) for each in answer.json()["broken"])
            assert named == ALL
            assert [each["name"] for each in answer.json()["schema"]["fields"]] == names
            assert (answer.json()["version"], answer.headers["etag"]) == (before["version"] + 1, tag)
        else:
            assert broken(answer) == ALL
    assert client.get(orders).json() == before
    assert client.get(f"{orders}/schemas").json()["items"][0]["id"] == 1
    for kind in ("view", "webhook", "export", "source"):
        assert client.get(readers[kind]).json()["state"] == "active"


def test_dry_run_of_notes_and_names_changes_nothing(client: httpx2.Client, orders: str) -> None:
    before = client.get(orders)
    for body in ({"description": "x"}, {"name": "others"}, {"changelog": {"retention": {"seconds": 60}}}):
        answer = client.patch(
            orders, json=body, headers={"If-Match": before.headers["etag"]}, params={"dry_run": True}
        )
        assert answer.status_code == 200, answer.text
        assert answer.json() != before.json()
    assert client.get(orders).json() == before.json()
    refused = client.patch(
        orders,
        json={"changes": [{"kind": "drop", "name": "id"}]},
        headers={"If-Match": '"0"'},
        params={"dry_run": True},
    )
    problem(refused, 422, "schema-change-refused")


def test_dry_run_is_recorded_as_such(client: httpx2.Client, orders: str) -> None:
    client.patch(orders, json={"changes": [DROP]}, headers={"If-Match": '"0"'}, params={"dry_run": True})
    # Those of all tenants, the latest first; counts of other requests may be later.
    entries = client.get("/audit", params={"operation": "change_dataset"}).json()["items"]
    assert entries[0]["members"] == {"changes": None, "dry_run": True}


def test_cascade_pauses_what_can_pause_and_a_grant_then_shows_nothing(
    client: httpx2.Client, service: Service, orders: str, readers: Row
) -> None:
    answer = cascading(client, orders, DROP)
    assert answer.status_code == 200, answer.text
    named = sorted((each["kind"], each["name"], each["column"]) for each in answer.json()["broken"])
    assert named == ALL
    revisions = {}
    for kind in ("view", "webhook", "export", "source"):
        current = client.get(readers[kind])
        now = current.json()
        assert (kind, now["state"]) == (kind, "paused")
        revisions[kind] = current.headers["etag"]
        if kind != "export":
            error = now["last_error" if kind == "source" else "error"]
            assert error["type"] == "/problems/schema-in-use"
            assert '"note" is dropped' in error["detail"]
    assert set(revisions.values()) == {'"2"'}
    for path in ("/webhooks", f"{orders}/exports"):
        assert "active" in [each["state"] for each in client.get(path).json()["items"]]
    # Nothing of them runs, and the others go on.
    seen = rows_of(client, client.get("/views/loud").json())
    client.post(f"{orders}/writes", json=upsert({"id": 2}))
    service.work()
    assert rows_of(client, client.get("/views/loud").json()) == seen
    assert rows_of(client, client.get("/views/count").json()) == [{"n": 2}]
    assert client.get(readers["webhook"]).json()["state"] == "paused"
    with service.client(readers["key"]) as partner:
        for path in ("rows", "changes"):
            problem(partner.get(f"{orders}/{path}"), 403, "grant-not-applicable")


def test_cascade_that_breaks_nothing_reports_nothing(client: httpx2.Client, orders: str) -> None:
    answer = cascading(client, orders, DROP)
    assert (answer.status_code, "broken" in answer.json()) == (200, False)
    answer = client.patch(orders, json={}, headers={"If-Match": '"1"'}, params={"cascade": "drop"})
    assert problem(answer, 400, "invalid-request")["errors"][0]["pointer"] == "/cascade"


@pytest.mark.parametrize(
    "steps",
    [
        [{"kind": "add", "field": {"name": "more", "type": "string"}}],
        [{"kind": "reorder", "names": ["note", "id"]}],
        [RENAME, {"kind": "rename", "name": "text", "to": "note"}],
    ],
)
def test_changes_that_leave_the_columns_as_they_are_break_nothing(
    client: httpx2.Client, orders: str, readers: Row, steps: list[Row]
) -> None:
    # The copy takes a column more.
    client.delete(readers["source"])
    answer = change(client, orders, *steps)
    assert answer.status_code == 200, answer.text


def test_name_that_goes_to_another_column_breaks_what_names_it(
    client: httpx2.Client, orders: str, new_view: Callable[..., Row]
) -> None:
    new_view("loud", "SELECT id, note FROM orders", lambda rows: rows)
    again = {"kind": "add", "field": {"name": "note", "type": "string"}}
    assert broken(change(client, orders, RENAME, again)) == [("view", "loud", "note")]


def test_source_that_copies_a_dataset_breaks_if_the_copy_lacks_a_column(
    client: httpx2.Client, service: Service, orders: str
) -> None:
    client.post("/datasets", json=ORDERS | {"name": "copy"})
    source = {"name": "chain", "dataset": "copy", "kind": "dataset", "config": {"dataset": "orders"}}
    path = client.post("/sources", json=source | {"mode": "continuous"}).headers["location"]
    add = {"kind": "add", "field": {"name": "more", "type": "string"}}
    assert broken(change(client, orders, add)) == [("source", "chain", "more")]
    assert broken(change(client, "/datasets/copy", RENAME)) == [("source", "chain", "note")]
    assert change(client, "/datasets/copy", add).status_code == 200
    assert change(client, orders, add).status_code == 200
    # What is refused does break a round.
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a", "more": "b"}))
    service.work()
    client.post(f"{path}/rounds")
    service.work()
    assert client.get("/datasets/copy/rows").json()["rows"] == [{"id": 1, "note": "a", "more": "b"}]
    assert cascading(client, "/datasets/copy", RENAME).status_code == 200
    client.post(f"{orders}/writes", json=upsert({"id": 2, "note": "a"}))
    service.work()
    job = client.post(f"{path}/rounds").json()
    service.work()
    assert client.get(f"/jobs/{job['id']}").json()["error"]["type"] == "/problems/schema-mismatch"


def test_transform_of_a_source_names_columns_of_its_dataset(client: httpx2.Client, service: Service) -> None:
    dataset = client.post("/datasets", json=ORDERS).headers["location"]
    folder = service.settings.data_dir / "incoming"
    source = {
        "name": "in",
        "dataset": "orders",
        "kind": "files",
        "config": {"path": folder.as_uri(), "format": "ndjson"},
        "transform": {
            "sql": "SELECT id, upper(word) AS note FROM source",
            "fields": [{"name": "id", "type": "int64"}, {"name": "word", "type": "string"}],
        },
    }
    answer = client.post("/sources", json=source)
    assert answer.status_code == 201, answer.text
    assert broken(change(client, dataset, DROP)) == [("source", "in", "note")]
    again = {"kind": "add", "field": {"name": "note", "type": "string"}}
    assert change(client, dataset, DROP, again).status_code == 200


@pytest.fixture
def wide(client: httpx2.Client) -> str:
    return client.post("/datasets", json=WIDE).headers["location"]


LATER = {"name": "day", "type": "timestamp", "explicit_cast": True}
LONGER = {"name": "place", "type": "struct<city: string, zip: string>"}


@pytest.mark.parametrize(
    ("sql", "step", "breaks"),
    [
        ("SELECT id, small FROM wide", {"name": "small", "type": "int64"}, False),
        ("SELECT id, small FROM wide", {"name": "small", "type": "double"}, True),
        ("SELECT id, CAST(small AS string) AS s FROM wide", {"name": "small", "type": "double"}, False),
        ("SELECT id, price FROM wide", {"name": "price", "type": "decimal(6, 2)"}, False),
        ("SELECT id, day FROM wide", LATER, True),
        ("SELECT id, year(day) AS y FROM wide", LATER, False),
        ("SELECT id, place.city AS city FROM wide", LONGER, False),
        ("SELECT id, place FROM wide", LONGER, True),
        ("SELECT id FROM wide", LATER, False),
    ],
)
def test_wider_type_breaks_a_view_whose_columns_would_not_hold_it(
    client: httpx2.Client, service: Service, wide: str, sql: str, step: Row, breaks: bool
) -> None:
    service.derivation.queries["shown"] = lambda rows: []
    assert client.post("/views", json={"name": "shown", "sql": sql}).status_code == 201
    answer = change(client, wide, {"kind": "widen", **step})
    if breaks:
        assert broken(answer) == [("view", "shown", step["name"])]
    else:
        assert answer.status_code == 200, answer.text


def test_wider_type_breaks_no_condition(client: httpx2.Client, service: Service, wide: str) -> None:
    export = EVERY_MINUTE | {"name": "late", "where": "day > '2026-01-01' AND small = 2 AND price < 1.5"}
    path = client.post(f"{wide}/exports", json=export).headers["location"]
    steps = [
        LATER,
        {"name": "small", "type": "double"},
        {"name": "price", "type": "decimal(9, 2)"},
    ]
    answer = change(client, wide, *({"kind": "widen", **step} for step in steps))
    assert answer.status_code == 200, answer.text
    row = {"id": 1, "day": "2026-01-01T12:00:00Z", "small": 2, "price": "1.25"}
    assert client.post(f"{wide}/writes", json=upsert(row, row | {"id": 2, "small": 2.5})).status_code == 202
    service.work()
    assert client.get(f"{path}/runs/1").json()["rows"] == 1


@pytest.mark.parametrize("later", [False, True])
def test_grant_never_shows_the_column_that_it_hides_under_a_new_name(
    client: httpx2.Client, service: Service, orders: str, later: bool
) -> None:
    grants = (Grant(datasets="orders", mask=("note",)),)
    key = service.tenants.make_key(
        tenant_of(client, service), (KeyScope.READ,), name="partner", grants=grants
    )
    again = {"kind": "add", "field": {"name": "note", "type": "string"}}
    if later:
        assert cascading(client, orders, RENAME).status_code == 200
        answer = cascading(client, orders, again)
    else:
        answer = cascading(client, orders, RENAME, again)
    assert broken(answer) == [("key", "partner", "note")]
    with service.client(key.api_key) as partner:
        if later:
            problem(partner.get(f"{orders}/rows"), 403, "grant-not-applicable")
        else:
            assert partner.get(f"{orders}/rows").status_code == 200
    assert (
        cascading(client, orders, DROP if not later else {"kind": "drop", "name": "text"}).status_code == 200
    )
    assert cascading(client, orders, again).status_code == 200


@pytest.fixture
def limited(client: httpx2.Client, service: Service) -> Iterator[httpx2.Client]:
    """A client whose key manages `orders`, and reads no other dataset."""
    key = service.tenants.make_key(tenant_of(client, service), SCOPES[:3], grants=(Grant(datasets="orders"),))
    with service.client(key.api_key) as found:
        yield found


def test_what_a_key_may_not_see_is_counted_and_not_named(
    limited: httpx2.Client, orders: str, readers: Row
) -> None:
    answer = change(limited, orders, DROP)
    assert broken(answer) == [("export", "notes", "note"), ("webhook", "filtered", "note")]
    assert answer.json()["hidden"] == 3
    assert "loud" not in answer.text
    answer = cascading(limited, orders, DROP)
    assert answer.json()["hidden"] == 3
    assert "sees all of the tenant" in problem(answer, 409, "schema-in-use")["detail"]
    listed = limited.get(f"{orders}/schema").json()["readers"]
    assert sorted((each["kind"], each["name"]) for each in listed) == [
        ("export", "everything"),
        ("export", "notes"),
        ("webhook", "all"),
        ("webhook", "filtered"),
    ]


def test_schema_says_what_names_its_columns(
    client: httpx2.Client, new_client: Callable[..., httpx2.Client], orders: str, readers: Row
) -> None:
    listed = client.get(f"{orders}/schema").json()["readers"]
    assert sorted((each["kind"], each["name"], each["columns"], each["every_column"]) for each in listed) == [
        ("export", "everything", [], True),
        ("export", "notes", ["note"], False),
        ("key", "partner", ["note"], False),
        ("source", "chain", ["note"], True),
        ("view", "count", ["id"], False),
        ("view", "loud", ["id", "note"], False),
        ("webhook", "all", [], True),
        ("webhook", "filtered", ["note"], True),
    ]
    # A key that sees a part of the dataset sees none of them that show more.
    stranger = new_client()
    stranger.post("/datasets", json=ORDERS)
    assert stranger.get("/datasets/orders/schema").json()["readers"] == []
    assert change(stranger, "/datasets/orders", DROP).status_code == 200


def test_earlier_schema_has_no_readers(client: httpx2.Client, orders: str) -> None:
    change(client, orders, DROP)
    assert client.get(f"{orders}/schema", params={"id": 1}).json().get("readers") is None
    assert client.get(f"{orders}/schema", params={"id": 2}).json()["readers"] == []
