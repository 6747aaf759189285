"""The columns of a dataset: who uses each, what a change breaks, and how they came to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.exports import EVERY_MINUTE
from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.schema_changes import change
from tests.support.webhooks import Register

PATH = "/console/datasets/orders/schema"
HOSTILE = '<script>alert("x")</script>'


def columns(root: PageElement) -> dict[str, list[str]]:
    """The cells of each column, by its name."""
    return {row[0]: row[1:] for row in root.one("table", class_="list").rows()[1:]}


@pytest.fixture
def used(client: httpx2.Client, orders: str, new_view: Callable[..., Any], restricted: Any) -> str:
    """A dataset whose column `note` a view reads and a key filters by."""
    new_view("loud", "SELECT id, upper(note) AS shout FROM orders", lambda rows: rows)
    restricted({"datasets": "orders", "where": "note = 'a'"})
    return orders


def test_columns_have_their_part_and_their_users(used: str, visitor: httpx2.Client) -> None:
    rows = columns(page(visitor, PATH))
    assert rows["id"][:3] == ["int64", "required", "key"]
    assert "view loud" in rows["note"][4]
    assert "loud.shout" in rows["note"][4]
    assert "key restricted-" in rows["note"][4]


def test_a_webhook_without_a_description_has_the_name_of_its_host(
    orders: str, visitor: httpx2.Client, register: Register
) -> None:
    webhook = register(columns=["id", "note"])
    host = urlsplit(webhook["url"]).netloc
    root = page(visitor, PATH)
    assert f"webhook {host}" in columns(root)["note"][4]
    assert root.link(host) == f"/console/webhooks/{webhook['id']}"
    assert page(visitor, "/console/datasets/orders").link(host) == f"/console/webhooks/{webhook['id']}"


def test_columns_that_are_masked_for_keys_are_marked(
    orders: str, visitor: httpx2.Client, restricted: Any
) -> None:
    restricted({"datasets": "ord*", "mask": ["note"]}, {"datasets": "x*", "mask": ["id"]})
    rows = columns(page(visitor, PATH))
    assert "masked for restricted-" in rows["note"][2]
    assert "masked" not in rows["id"][2]


def test_what_a_drop_breaks_has_names_and_the_words_of_the_form(
    used: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    made = client.post(f"{used}/exports", json=EVERY_MINUTE | {"columns": ["id", "note"]})
    assert made.status_code == 202, made.text
    root = page(visitor, f"{PATH}?kind=drop&column=note")
    broken = {row[0]: row for row in root.one("section", id="change").rows()[1:]}
    assert broken["export"][1] == "export of orders"
    assert broken["export"][3].endswith("or pause it by the form below")
    assert "cascade" not in root.one("section", id="change").text
    assert made.json()["id"] not in "".join(columns(root)["note"])
    assert root.link("export of orders") == f"/console/exports/{made.json()['id']}"


def test_what_a_drop_breaks_is_shown_before_it_is_made(
    used: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    plan = page(visitor, f"{PATH}?kind=drop&column=note")
    shown = plan.one("section", id="change")
    assert "This breaks 2" in shown.text
    assert {row[0] for row in shown.rows()[1:]} == {"view", "key"}
    assert "make a key with other grants" in shown.text
    assert [each["name"] for each in client.get(used).json()["schema"]["fields"]] == ["id", "note"]
    refused = submit(visitor, plan, f"{PATH}/changes")
    assert refused.status_code == 409
    assert "view" in checked_page(refused).all("div", class_="problem")[0].text
    assert submit(visitor, plan, f"{PATH}/changes", pause="yes").status_code == 303
    after = page(visitor, PATH)
    assert "2 that used the column no longer fit" in after.text
    assert list(columns(after)) == ["id"]
    assert client.get("/views/loud").json()["state"] == "paused"


@pytest.mark.parametrize(
    ("query", "name", "change_text"),
    [
        ("kind=rename&column=note&to=text", "text", "note → text"),
        ("kind=add&column=price&type=double&doc=in+EUR", "price", "+ price double"),
        ("kind=drop&column=note", None, "− note string"),
    ],
)
def test_changes_that_break_nothing_are_made(
    orders: str, visitor: httpx2.Client, query: str, name: str | None, change_text: str
) -> None:
    plan = page(visitor, f"{PATH}?{query}")
    assert "Nothing breaks" in plan.one("section", id="change").text
    response = submit(visitor, plan, f"{PATH}/changes")
    assert (response.status_code, response.headers["location"]) == (303, PATH)
    after = page(visitor, PATH)
    assert (name is None) == ("note" not in columns(after) and len(columns(after)) == 1)
    assert name is None or name in columns(after)
    assert change_text in after.all("table")[-1].text


def test_types_become_wider_and_null_is_allowed(
    client: httpx2.Client, trips: str, visitor: httpx2.Client
) -> None:
    path = f"/console/datasets/{client.get(trips).json()['name']}/schema"
    for query in ("kind=widen&column=seats&type=int64", "kind=relax&column=seats"):
        plan = page(visitor, f"{path}?{query}")
        assert submit(visitor, plan, f"{path}/changes").status_code == 303, plan.text
    after = page(visitor, path)
    assert columns(after)["seats"][:2] == ["int64", "may be null"]
    assert "seats: int32 → int64" in after.text


@pytest.mark.parametrize(
    "query",
    [
        "kind=drop&column=id",
        "kind=drop&column=none",
        "kind=rename&column=note&to=id",
        "kind=add&column=x&type=strange",
        f"kind=rename&column=note&to={'n' * 1_000}",
    ],
)
def test_a_change_that_is_refused_shows_why(orders: str, visitor: httpx2.Client, query: str) -> None:
    shown = page(visitor, f"{PATH}?{query}").one("section", id="change")
    assert shown.all("div", class_="problem")
    assert not shown.all("form")


def test_a_change_is_made_for_the_version_that_was_seen(
    client: httpx2.Client, orders: str, visitor: httpx2.Client
) -> None:
    plan = page(visitor, f"{PATH}?kind=drop&column=note")
    change(client, orders, {"kind": "add", "field": {"name": "other", "type": "string"}})
    stale = submit(visitor, plan, f"{PATH}/changes")
    assert stale.status_code == 412
    assert "version" in checked_page(stale).all("div", class_="problem")[0].text
    assert "note" in columns(page(visitor, PATH))


def test_a_view_has_no_form_for_columns(used: str, visitor: httpx2.Client) -> None:
    root = page(visitor, "/console/datasets/loud/schema")
    assert "its SQL determines its columns" in root.text
    assert "Change a column" not in root.text


def test_a_key_that_sees_a_part_sees_its_own_grants(orders: str, restricted: Any) -> None:
    root = page(restricted({"datasets": "orders", "where": "id = 1", "mask": ["note"]}), PATH)
    assert list(columns(root)) == ["id", "note"]
    assert "rows where id = 1" in root.text
    assert "masked note" in root.text
    assert "needs the scope manage" in root.text


def test_hostile_descriptions_are_texts(client: httpx2.Client, orders: str, visitor: httpx2.Client) -> None:
    step = {"kind": "add", "field": {"name": HOSTILE, "type": "string", "doc": HOSTILE * 20}}
    assert change(client, orders, step).status_code == 200
    root = page(visitor, PATH)
    assert HOSTILE in columns(root)
    assert page(visitor, root.one("table", class_="list").all("a")[-1].attributes["href"].partition("#")[0])
