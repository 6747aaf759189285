"""Who follows a feed: positions, lags and leases; consumers are made, moved and deleted."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.webhooks import Register

PATH = "/console/datasets/orders/consumers"


def listed(root: PageElement) -> list[list[str]]:
    return root.one("table", class_="list").rows()[1:]


@pytest.fixture
def followed(client: httpx2.Client, feed: str) -> str:
    """The path of a dataset whose feed of four changes three consumers follow."""
    path = feed.removesuffix("/changes")
    for name, offset in (("ahead", 4), ("behind", 1), ("middle", 2)):
        response = client.put(f"{path}/consumers/{name}", json={"offset": offset})
        assert response.status_code == 201, response.text
    return path


def test_those_that_lag_most_are_first(followed: str, visitor: httpx2.Client) -> None:
    rows = listed(page(visitor, PATH))
    assert [(row[0], row[3], row[5], row[6]) for row in rows] == [
        ("behind", "3", "1", "4"),
        ("middle", "2", "2", "4"),
        ("ahead", "0", "4", "4"),
    ]
    assert [row[2] for row in rows] == ["behind", "behind", "at the head"]
    assert rows[0][4]
    assert not rows[2][4]


def test_a_consumer_is_moved_back_and_forward(
    followed: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    for position, offset in (("1", 1), ("now", 4), ("v1", 0), ("earliest", 0), ("2020-01-01T00:00:00Z", 0)):
        root = page(visitor, page(visitor, PATH).link("middle").partition("#")[0])
        response = submit(visitor, root, f"{PATH}/move", position=position)
        assert response.status_code == 303, response.text
        assert client.get(f"{followed}/consumers/middle").json()["offset"] == offset
        assert f"is at {offset}" in page(visitor, PATH).one("p", class_="notice").text


def test_a_move_is_refused_if_the_consumer_has_moved(
    followed: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    root = page(visitor, f"{PATH}?consumer=middle")
    client.put(f"{followed}/consumers/middle", json={"offset": 3}, headers={"If-Match": '"1"'})
    refused = submit(visitor, root, f"{PATH}/move", position="earliest")
    assert refused.status_code == 412
    assert checked_page(refused).all("div", class_="problem")
    assert client.get(f"{followed}/consumers/middle").json()["offset"] == 3


def test_a_lease_is_shown_and_protects_the_position(
    followed: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    client.post(f"{followed}/consumers/behind/lease", json={"member": "<worker>", "seconds": 600})
    root = page(visitor, f"{PATH}?consumer=behind")
    assert "leased to <worker>" in root.one("section", id="chosen").text
    assert "<worker>" in listed(root)[0][8]
    refused = submit(visitor, root, f"{PATH}/move", position="now")
    assert refused.status_code == 409
    assert "leased" in checked_page(refused).all("div", class_="problem")[0].text


def test_a_consumer_is_deleted(followed: str, visitor: httpx2.Client, client: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?consumer=behind")
    assert "it had not read: 3 now" in root.one("section", id="chosen").text
    assert submit(visitor, root, f"{PATH}/delete").status_code == 303
    assert client.get(f"{followed}/consumers/behind").status_code == 404


def test_a_consumer_is_made_with_its_bounds(
    followed: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    root = page(visitor, PATH)
    done = submit(visitor, root, PATH, name="new", position="v2", max_changes="10", max_seconds="60")
    assert done.status_code == 303, done.text
    made = client.get(f"{followed}/consumers/new").json()
    assert (made["offset"], made["max_lag"]) == (2, {"changes": 10, "seconds": 60})
    again = submit(visitor, root, PATH, name="new", position="now")
    assert again.status_code == 412
    assert checked_page(again).one("input", id="field-name").attributes["value"] == "new"


@pytest.mark.parametrize(
    ("name", "position"), [("", "1"), ("x/y", "1"), ("x", "soon"), ("x", "-1"), ("x", "9" * 30)]
)
def test_what_cannot_be_made_is_refused(
    followed: str, visitor: httpx2.Client, name: str, position: str
) -> None:
    refused = submit(visitor, page(visitor, PATH), PATH, name=name, position=position)
    assert refused.status_code in (400, 404, 405, 409), refused.status_code


def test_positions_of_the_service_are_listed(
    client: httpx2.Client, orders: str, register: Register, visitor: httpx2.Client
) -> None:
    webhooks = [register(description="all rows"), register()]
    rows = listed(root := page(visitor, PATH))
    assert {row[1] for row in rows} == {"webhook"}
    for webhook, title in zip(webhooks, ("all rows", urlsplit(webhooks[1]["url"]).netloc), strict=True):
        assert root.link(title) == f"/console/webhooks/{webhook['id']}"
    assert root.one("footer").text.count("curl ") == 5


def test_without_consumers_there_is_the_command_for_one(orders: str, visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    assert "headwater consumers create orders billing" in root.text


def test_a_key_that_sees_a_part_follows_its_part(followed: str, restricted: Any) -> None:
    root = page(restricted({"datasets": "orders", "where": "id = 1"}), PATH)
    assert "headwater consumers create" in root.text or listed(root)
    reader = page(restricted({"datasets": "orders"}), f"{PATH}?consumer=behind")
    assert "needs the scope manage" in reader.text
    assert not [each for each in reader.all("form") if each.attributes.get("action") == f"{PATH}/delete"]
