"""Pages of views: how far each is behind, a form that makes one of a text, and the place of a fault in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

from app.features.console.pages.pipelines.sql_fault import sql_fault
from app.kernel.format.errors import DerivationFailed
from tests.support.derived_views import COUNT, LONG, counted, long
from tests.support.http import upsert
from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.service import Service

NewView = Callable[..., dict[str, Any]]


def figures(root: PageElement) -> dict[str, str]:
    return {each.one("dt").text: each.all("dd")[0].text for each in root.all("div", class_="figure")}


def test_the_list_has_freshness_and_lag(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, new_view: NewView, service: Service
) -> None:
    new_view("long", LONG, long)
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "longer"}))
    service.work()
    root = page(visitor, "/console/views")
    name, reads, state, freshness, behind, mode, _, refreshed, error = root.one("table").rows()[1]
    assert (name, reads, state, freshness, behind) == ("long", "orders", "active", "current", "0")
    assert (mode, error) == ("row by row", "")
    assert refreshed != "–"


def test_a_refresh_that_waits_is_shown_with_its_reason(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, new_view: NewView, service: Service
) -> None:
    new_view("long", LONG, long)
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "longer"}))
    service.work()
    assert "a refresh waits" not in page(visitor, "/console/views").text
    client.post(f"{orders}/writes", json=upsert({"id": 2, "note": "longest"}))
    service.run_waiting_writes()
    job = client.post("/views/long/refreshes").json()
    for path in ("/console/views", "/console/views/long"):
        root = page(visitor, path)
        assert "A worker starts it when the first refresh waits" in root.text
        assert root.link("A refresh") == f"/console/jobs/{job['id']}"


def test_without_views_the_form_is_open(stranger: httpx2.Client) -> None:
    root = page(stranger, "/console/views")
    assert "headwater views create" in root.one("div", class_="empty").text
    assert "open" in root.one("details", id="new").attributes


def test_a_text_becomes_a_view(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    service.derivation.queries["totals"] = counted
    fields = {"name": "totals", "sql": COUNT.replace(" FROM", "\r\n FROM"), "record_key": "letters"}
    answer = submit(visitor, page(visitor, "/console/views"), "/console/views", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/views/totals")
    view = client.get("/views/totals").json()
    assert view["sql"] == COUNT.replace(" FROM", "\n FROM")
    assert view["record_key"] == ["letters"]
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "abc"}))
    service.work()
    root = page(visitor, "/console/views/totals")
    assert figures(root)["Mode"] == "recompute"
    assert "It includes all changes of its inputs." in root.text
    assert view["sql"].split("\n")[1].strip() in root.text


def test_a_fault_is_shown_at_its_place(visitor: httpx2.Client, orders: str) -> None:
    sql = "SELECT id,\n  uper(note) AS note <b>\nFROM orders"
    answer = submit(visitor, page(visitor, "/console/views"), "/console/views", name="broken", sql=sql)
    assert answer.status_code == 422
    root = checked_page(answer)
    form = root.one("form", action="/console/views", method="post")
    assert form.one("p", id="sql-fault").text.startswith("Line 2, column ")
    line, caret = form.one("pre").all("code")[0]._text().split("\n")
    assert line == "  uper(note) AS note <b>"
    assert caret.strip() == "^"
    assert form.one("textarea", name="sql")._text().strip("\n") == sql
    assert form.one("input", name="name").attributes["value"] == "broken"
    assert root.all("b") == []


def test_places_of_faults() -> None:
    assert sql_fault("SELECT 1", {}) is None
    assert sql_fault("SELECT 1", {"position": None}) is None
    assert sql_fault("SELECT 1", {"position": 9}) is None
    assert sql_fault("SELECT 1", {"position": 8}) == (1, 9, "SELECT 1\n        ^")
    assert sql_fault("a\n\tb c\nd", {"position": 5}) == (2, 4, "\tb c\n\t  ^")
    place = sql_fault("x" * 1_000, {"position": 500})
    assert place is not None
    line, caret = place.excerpt.split("\n")
    assert len(line) <= 240
    assert caret.index("^") == 120


def test_a_view_is_paused_refreshed_and_copied(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, new_view: NewView, service: Service
) -> None:
    new_view("long", LONG, long)
    service.work()
    path = "/console/views/long"
    submit(visitor, page(visitor, path), f"{path}/state")
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "longer"}))
    service.work()
    root = page(visitor, path)
    assert "It is refreshed on request only." in root.text
    assert root.all("table")[0].rows()[1] == ["orders", "orders", "0", "0", "1"]
    started = submit(visitor, root, f"{path}/refreshes")
    assert started.headers["location"].startswith("/console/jobs/")
    service.work()
    root = page(visitor, path)
    assert root.all("table")[0].rows()[1] == ["orders", "orders", "1", "1", "0"]
    assert {row[1] for row in root.all("table")[1].rows()[1:]} == {"succeeded"}
    submit(visitor, root, f"{path}/state")
    assert client.get("/views/long").json()["state"] == "active"
    copied = page(visitor, root.link("Make a new view from this text"))
    assert copied.one("textarea", name="sql").text == LONG
    assert copied.one("input", name="name").attributes["value"] == "long_2"
    broken = submit(visitor, copied, "/console/views", sql="SELECT FROM orders")
    assert checked_page(broken).one("p", id="sql-fault").text.startswith("Line 1, column ")


def test_a_view_that_another_reads_is_not_deleted(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, new_view: NewView, service: Service
) -> None:
    new_view("long", LONG, long)
    new_view("longer", "SELECT id FROM long", long)
    path = "/console/views/long"
    root = page(visitor, path)
    assert submit(visitor, root, f"{path}/delete").status_code == 400
    refused = submit(visitor, root, f"{path}/delete", confirm="yes")
    assert refused.status_code == 409
    assert "longer" in checked_page(refused).one("div", class_="problem").text
    other = "/console/views/longer"
    assert submit(visitor, page(visitor, other), f"{other}/delete", confirm="yes").status_code == 303
    deleted = submit(visitor, root, f"{path}/delete", confirm="yes")
    assert (deleted.status_code, deleted.headers["location"]) == (303, "/console/views")
    assert "The view long is deleted." in page(visitor, "/console/views").text
    assert client.get("/views/long").status_code == 404
    assert client.get(orders).status_code == 200


def test_origins_lead_to_the_changes_of_the_input(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, new_view: NewView, service: Service
) -> None:
    new_view("long", LONG, long)
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}, {"id": 2, "note": "longer"}))
    service.work()
    root = page(visitor, "/console/views/long?origins=earliest")
    table = root.all("table")[1]
    assert table.rows()[0][3] == "Change of orders"
    change, op, _, origin = table.rows()[1]
    assert (change, op, origin) == ("0", "+A", "1")
    assert table.link("1") == "/console/datasets/orders/changes?since=1"
    refused = page(visitor, "/console/views/long?origins=99")
    assert "Origins cannot be shown" in refused.one("div", class_="part").text


def test_a_refresh_that_failed_says_why(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, new_view: NewView, service: Service
) -> None:
    def fails(_: list[dict[str, Any]]) -> list[dict[str, Any]]:
        raise DerivationFailed("<s>a division by zero</s>")

    new_view("twice", LONG, fails)
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    view = client.get("/views/twice").json()
    assert view["freshness"] == "failed", view
    top = page(visitor, "/console/views/twice").one("div", id="view").all("p")[0]
    assert view["error"]["detail"] in top.text
    assert "last refresh failed" in top.text
    [row] = page(visitor, "/console/views").all("table")[0].rows()[1:]
    assert "last refresh failed" in row
    assert view["error"]["title"] in page(visitor, "/console/views").one("table").rows()[1]


def test_a_key_sees_and_does_what_it_may(new_view: NewView, restricted: Callable[..., httpx2.Client]) -> None:
    new_view("long", LONG, long)
    reader = restricted({"datasets": "*"})
    root = page(reader, "/console/views/long")
    assert [each.text for each in root.all("button") if each.text != "Show"] == ["Sign out"]
    assert page(reader, "/console/views").all("textarea") == []
    other = restricted({"datasets": "others"})
    assert "No view is there yet" in page(other, "/console/views").text
    assert page(other, "/console/views/long", status=404)


def test_inputs_that_a_reader_may_not_read_have_only_their_names_in_the_sql(
    client: httpx2.Client,
    orders: str,
    new_view: NewView,
    service: Service,
    restricted: Callable[..., httpx2.Client],
) -> None:
    new_view("long", LONG, long)
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "longer"}))
    service.work()
    reader = restricted({"datasets": "long"})
    row = page(reader, "/console/views").one("table").rows()[1]
    assert (row[1], row[4]) == ("orders", "–")
    root = page(reader, "/console/views/long")
    assert root.all("table")[0].rows()[1] == ["orders", "–", "–", "–", "–"]
    part = page(restricted({"datasets": "long"}, {"datasets": "orders", "where": "id = 2"}), "/console/views")
    assert part.one("table").rows()[1][4] == "–"
    assert part.one("table").one("a", href="/console/datasets/orders").text == "orders"
