"""The page that undoes the last write: what it names, what it refuses, and what it does."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.pages import page, submit

PATH = "/console/datasets/orders/changes/undo"


@pytest.mark.usefixtures("story")
def test_the_last_write_is_named_and_undone(
    visitor: httpx2.Client, client: httpx2.Client, service: Any
) -> None:
    root = page(visitor, PATH)
    assert "v3, " in root.text
    assert "delete by key" in root.text
    assert ["−R", "2", "old"] in root.one("div", aria_label="Changes of the write").rows()
    with service.working():
        response = submit(visitor, root, PATH)
    assert response.status_code == 303, response.text
    assert response.headers["location"] == "/console/datasets/orders/changes"
    assert client.get("/datasets/orders/rows/2").json()["row"] == {"id": 2, "note": "old"}
    after = page(visitor, "/console/datasets/orders/changes")
    assert after.one("p", role="status").text == "v3 is undone: 1 added, as v4."
    # It has the same name on all pages.
    assert "rollback to v2 by key" in after.text
    assert "(rollback to v2)" in page(visitor, "/console/datasets/orders/rows/row?key=2").text
    timeline = page(visitor, "/console/datasets/orders/timeline")
    assert "rollback to v2" in timeline.one("table", class_="list").text
    assert timeline.link("Undo the last write…") == PATH


@pytest.mark.usefixtures("story")
def test_nothing_is_undone_after_another_write(
    visitor: httpx2.Client, client: httpx2.Client, write: Any, service: Any
) -> None:
    root = page(visitor, PATH)
    write({"id": 9, "note": "meanwhile"})
    with service.working():
        response = submit(visitor, root, PATH)
    assert response.status_code == 409
    assert "version" in response.text
    assert client.get("/datasets/orders").json()["version"] == 4


@pytest.mark.usefixtures("story")
def test_the_last_write_of_a_key(visitor: httpx2.Client, write: Any, plant: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?writer=plant")
    assert "v2, " in root.text
    assert "not the last write 1 later version was written after it" in root.text
    assert root.one("select", name="writer").one("option", value="plant").attributes["selected"] == ""
    assert root.all("button", class_="danger") == []
    assert root.link("Undo the last one first") == PATH
    write({"id": 3, "note": "x"}, by=plant)
    now = page(visitor, f"{PATH}?writer=plant")
    assert "not the last write" not in now.text
    assert now.one("button", class_="danger").text == "Undo v4"


@pytest.mark.usefixtures("story")
def test_a_version_that_is_not_the_last(visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?version=1")
    assert "2 later versions were written after it" in root.text
    assert "There is no such write" in page(visitor, f"{PATH}?version=7").text


def test_an_empty_dataset_has_nothing_to_undo(visitor: httpx2.Client, orders: str) -> None:
    assert "there is nothing to undo" in page(visitor, f"/console{orders}/changes/undo").text


@pytest.mark.usefixtures("story")
def test_undoing_needs_the_scope_manage(restricted: Any) -> None:
    reader = restricted({"datasets": "orders", "scopes": ["read", "write"]}, scopes=("read", "write"))
    root = page(reader, PATH)
    assert "needs the scope manage" in root.text
    assert root.all("button", class_="danger") == []
    token = root.all("input", name="token")[0].attributes["value"]
    refused = reader.post(PATH, data={"token": token, "version": "3", "head": "3"})
    assert refused.status_code == 403


@pytest.mark.parametrize("head", ["", "x", "9" * 30])
@pytest.mark.usefixtures("story")
def test_a_form_without_the_version_undoes_nothing(
    visitor: httpx2.Client, client: httpx2.Client, service: Any, head: str
) -> None:
    with service.working():
        response = submit(visitor, page(visitor, PATH), PATH, head=head)
    assert response.status_code in (400, 409)
    assert client.get("/datasets/orders").json()["version"] == 3


@pytest.mark.usefixtures("story")
def test_what_was_written_before_an_undone_write_is_undone_by_a_restore(
    visitor: httpx2.Client, client: httpx2.Client, service: Any
) -> None:
    with service.working():
        response = submit(visitor, page(visitor, PATH), PATH)
    assert response.status_code == 303, response.text
    root = page(visitor, f"{PATH}?writer=plant")
    assert "Undo the last one first" not in root.text
    way_back = root.link("restore v1")
    assert way_back == "/console/datasets/orders/timeline?restore=1#restore"
    with service.working():
        response = submit(
            visitor, page(visitor, way_back.partition("#")[0]), "/console/datasets/orders/timeline/restore"
        )
    assert response.status_code == 303, response.text
    options = [{"version": version, "order_by": "id"} for version in (1, 5)]
    first, last = (client.get("/datasets/orders/rows", params=each).json()["rows"] for each in options)
    assert first == last
