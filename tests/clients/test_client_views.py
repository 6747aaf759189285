"""The client registers views, and knows when they show what was written."""

from __future__ import annotations

import pytest

from app.access.tenants.values import Grant, KeyScope
from headwater_client import Bucket, Dataset, Headwater, NewView, Problem
from tests.support.command_line import command_line, use_service
from tests.support.service import Service

SQL = "SELECT id, upper(note) AS note FROM orders WHERE note <> ''"


def test_views_are_registered_followed_and_deleted(
    headwater: Headwater, orders: Dataset, service: Service
) -> None:
    service.derivation.queries["loud"] = lambda rows: [
        row | {"note": row["note"].upper()} for row in rows if row["note"]
    ]
    view = headwater.create_view(NewView(name="loud", sql=SQL, bucket=Bucket(count=1)))
    assert (view.freshness, view.mode, view.record_key, view.sql) == ("behind", "row_by_row", ("id",), SQL)
    with service.working():
        headwater.write_rows(orders, [{"id": 1, "note": "tea"}, {"id": 2, "note": ""}], wait=30)
        job = headwater.refresh_view(view, wait=30)
    assert job.kind == "refresh"
    now = headwater.get_view("loud")
    assert (now.freshness, now.error, now.version) == ("current", None, 1)
    [read] = now.inputs
    assert read.dataset is not None
    assert (read.relation, read.dataset.id, read.offset, read.version, read.lag) == (
        "orders",
        orders.id,
        2,
        1,
        0,
    )
    assert list(headwater.rows(view.id)) == [{"id": 1, "note": "TEA"}]
    assert [change.op for change in headwater.changes("loud", since=0)] == ["+A"]
    assert list(headwater.views()) == [now]
    assert headwater.pause_view(view).state == "paused"
    assert headwater.pause_view("loud", paused=False).state == "active"
    keyless = headwater.create_view(NewView(name="quiet", sql=SQL, record_key=()))
    assert (keyless.record_key, keyless.mode) == ((), "recompute")
    with pytest.raises(Problem) as refusal:
        headwater.delete_dataset(orders)
    assert refusal.value.code == "dataset-in-use"
    headwater.delete_view(keyless)
    headwater.delete_view("loud")
    assert list(headwater.views()) == []


def test_invalid_view_raises_a_problem(headwater: Headwater, orders: Dataset) -> None:
    with pytest.raises(Problem) as refusal:
        headwater.create_view(NewView(name="none", sql="SELECT missing FROM orders"))
    assert (refusal.value.code, refusal.value.status) == ("invalid-view", 422)


def test_a_key_that_may_not_read_an_input_lists_its_name_in_the_sql(
    headwater: Headwater,
    orders: Dataset,
    service: Service,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = headwater.create_view(NewView(name="listed", sql=SQL))
    tenant = headwater.me().tenant.id
    key = service.tenants.make_key(tenant, (KeyScope.READ,), grants=(Grant(datasets="listed"),)).api_key
    use_service(monkeypatch, service.url, key)
    heading, row = command_line(capsys)("views", "-o", "table").out.splitlines()
    assert row[heading.index("READS") :].split()[0] == "orders"
    assert row[heading.index("LAG") : heading.index("REFRESHED")].strip() == "-"
    headwater.delete_view(view)
