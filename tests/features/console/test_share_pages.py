"""The page of shares: recipients, their last use, and profile files that are shown once."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest

from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.service import Service

_numbers = count(1)


@pytest.fixture
def share(visitor: httpx2.Client, orders: str) -> PageElement:
    """The page with a share of `orders`."""
    root = page(visitor, "/console/shares")
    assert "There is no share yet." in root.text
    made = submit(visitor, root, "/console/shares", name="sales", datasets="orders")
    assert made.status_code == 303, made.text
    return page(visitor, "/console/shares")


def recipients_of(root: PageElement) -> str:
    """The action of the form that makes a recipient."""
    [action] = [
        each.attributes["action"]
        for each in root.all("form")
        if each.attributes.get("action", "").endswith("/recipients")
    ]
    return action


def action_of(root: PageElement, end: str) -> str:
    [action] = [
        each.attributes["action"]
        for each in root.all("form")
        if each.attributes.get("action", "").endswith(end)
    ]
    return action


def profile_of(root: PageElement) -> dict[str, Any]:
    """The profile file, whose link to download it has the same text."""
    [link] = [each.attributes["href"] for each in root.all("a", class_="button")]
    [shown] = [
        json.loads(each.text)
        for each in root.all("pre")
        if "bearerToken" in each.text and each.text[0] == "{"
    ]
    assert json.loads(unquote(link.partition(",")[2])) == shown
    return dict(shown)


def test_recipient_is_made_rotated_and_revoked(visitor: httpx2.Client, share: PageElement) -> None:
    fields = {"recipient": "<b>acme", "dataset": "orders", "where": "id < 3", "mask": "note"}
    answer = submit(visitor, share, recipients_of(share), **fields)
    assert answer.status_code == 200, checked_page(answer).text
    made = checked_page(answer)
    profile = profile_of(made)
    assert profile["bearerToken"].startswith("hwr_")
    root = page(visitor, "/console/shares")
    assert profile["bearerToken"] not in root.text
    [row] = [row for row in root.rows() if row and row[0] == "<b>acme"]
    assert row[1] == "orders, rows where id < 3, without the values of note"
    assert row[2] == "never"
    rotated = checked_page(submit(visitor, root, action_of(root, "/rotate")))
    assert profile_of(rotated)["bearerToken"] != profile["bearerToken"]
    assert "The token before is valid until" in rotated.text
    assert submit(visitor, root, action_of(root, "/revoke")).status_code == 303
    assert "It has no recipient." in page(visitor, "/console/shares").text
    assert submit(visitor, root, action_of(root, "/delete")).status_code == 303
    assert "There is no share yet." in page(visitor, "/console/shares").text


def test_faults_of_a_form_are_shown(visitor: httpx2.Client, share: PageElement) -> None:
    fields = {"recipient": "acme", "dataset": "orders", "where": "nowhere < 3"}
    refused = submit(visitor, share, recipients_of(share), **fields)
    assert refused.status_code >= 400
    assert "nowhere" in checked_page(refused).one("div", role="alert").text
    again = submit(visitor, share, "/console/shares", name="sales", datasets="orders")
    assert again.status_code == 409
    assert checked_page(again).one("input", id="field-name").attributes["value"] == "sales"


def test_reader_sees_shares_without_forms(
    service: Service, client: httpx2.Client, share: PageElement, restricted: Callable[..., httpx2.Client]
) -> None:
    root = page(restricted({"datasets": "*"}), "/console/shares")
    assert "sales" in root.text
    assert not [each for each in root.all("form") if "/shares" in each.attributes.get("action", "")]
    assert "needs the scope manage" in root.text
