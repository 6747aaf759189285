"""Which change of its input each change of a view was made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.access.tenants.values import Grant, KeyScope
from app.features.views.service import origins
from tests.support.derived_views import COUNT, LONG, counted, long, write_notes
from tests.support.http import problem
from tests.support.service import Service
from tests.support.view_computation import Row
from tests.support.webhooks import tenant_of


def found(client: httpx2.Client, view: Row, **params: Any) -> Row:
    answer = client.get(f"{view['links']['self']}/origins", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def rows_by_offset(client: httpx2.Client, dataset: str) -> dict[int, tuple[str, Row]]:
    changes = client.get(f"{dataset}/changes").json()["changes"]
    return {change["offset"]: (change["op"], change["row"]) for change in changes}


def test_each_change_names_the_change_of_the_input_that_it_was_made_of(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], orders: str
) -> None:
    write_notes(client, service, orders, {1: "first", 2: "no", 3: "third"})
    view = new_view("long", LONG, long)
    service.work()
    # Leaves, enters and changes; a note that is written twice before a refresh counts once.
    client.patch(
        view["links"]["self"],
        json={"state": "paused"},
        headers={"If-Match": client.get(view["links"]["self"]).headers["etag"]},
    )
    write_notes(client, service, orders, {1: "no", 2: "second", 3: "thirds"})
    write_notes(client, service, orders, {3: "three!"})
    client.post(view["links"]["refreshes"])
    service.work()
    page = found(client, view)
    assert page["dataset"] == {"id": orders.rpartition("/")[2], "name": "orders"}
    assert (page["next_since"], page["pending"]) == (len(page["origins"]), 0)
    made, read = rows_by_offset(client, view["links"]["dataset"]), rows_by_offset(client, orders)
    pairs = [(made[each["offset"]], read[each["origin"]]) for each in page["origins"]]
    assert [each["op"] for each in page["origins"]] == [op for (op, _), _ in pairs]
    assert sorted((op, row["note"], of, source["note"]) for (op, row), (of, source) in pairs) == [
        ("+A", "FIRST", "+A", "first"),
        ("+A", "SECOND", "+C", "second"),
        ("+A", "THIRD", "+A", "third"),
        ("+C", "THREE!", "+C", "three!"),
        # The last change that takes the old row away.
        ("-C", "THIRD", "-C", "thirds"),
        ("-R", "FIRST", "-C", "first"),
    ]
    assert all(row["id"] == source["id"] for (_, row), (_, source) in pairs)
    one = found(client, view, since=2, limit=1)
    assert one["origins"] == page["origins"][2:3]
    assert (one["next_since"], one["pending"]) == (3, len(page["origins"]) - 3)
    assert found(client, view, since="earliest") == page
    assert found(client, view, since="now") == page | {"origins": []}
    ahead = client.get(f"{view['links']['self']}/origins", params={"since": 10**18})
    assert "`earliest`" in problem(ahead, 409, "offset-ahead")["detail"]


def test_versions_name_what_they_have_taken_in(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], orders: str
) -> None:
    write_notes(client, service, orders, {1: "first"})
    view = new_view("letters_taken_in", COUNT, counted)
    service.work()
    write_notes(client, service, orders, {2: "second", 3: "third"})
    entries = client.get(view["links"]["timeline"], params={"action": "commit"}).json()["items"]
    ranges = [entry["parameters"]["inputs"] for entry in entries if entry["version"]]
    input_of = {"dataset_id": orders.rpartition("/")[2], "dataset": "orders"}
    assert ranges == [[input_of | {"since": 1, "until": 3}], [input_of | {"since": 0, "until": 1}]]
    refused = client.get(f"{view['links']['self']}/origins")
    assert "one by one" in problem(refused, 400, "invalid-request")["detail"]


def test_origins_that_cannot_be_read_are_null(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    orders: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_notes(client, service, orders, {1: "first", 2: "second"})
    view = new_view("long", LONG, long)
    service.work()
    write_notes(client, service, orders, {3: "third"})
    write_notes(client, service, orders, {4: "fourth"})
    monkeypatch.setattr(origins, "SCANNED_ROWS_MAX", 1)
    # The first version has taken in two changes, of which a page may read one. The last version is on the next page.
    first = found(client, view)
    assert [each["origin"] for each in first["origins"]] == [None, None, 2]
    assert (first["next_since"], first["pending"]) == (3, 1)
    assert [each["origin"] for each in found(client, view, since=3)["origins"]] == [3]
    monkeypatch.setattr(origins, "SCANNED_ROWS_MAX", 10)
    monkeypatch.setattr(origins, "VERSIONS_MAX", 2)
    assert [each["origin"] for each in found(client, view)["origins"]] == [0, 1, 2]


def test_origins_need_the_whole_input(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], orders: str
) -> None:
    view = new_view("long", LONG, long)
    problem(client.get("/views/none/origins"), 404, "not-found")
    problem(client.get(f"{view['links']['self']}/origins", params={"since": 5}), 409, "offset-ahead")
    service.work()
    tenant, timeline = tenant_of(client, service), view["links"]["timeline"]
    assert "inputs" in client.get(timeline).text
    for grant, status, code in [
        (Grant(datasets="long", scopes=(KeyScope.READ,)), 404, "not-found"),
        (Grant(datasets="*", scopes=(KeyScope.READ,), where="id < 5"), 403, "restricted-grant"),
    ]:
        key = service.tenants.make_key(tenant, (KeyScope.READ,), grants=(grant,)).api_key
        with service.client(key) as narrow:
            problem(narrow.get(f"{view['links']['self']}/origins"), status, code)
            assert "inputs" not in narrow.get(timeline).text
