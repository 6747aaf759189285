"""What the service says about itself: nothing that it names is 404."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import httpx2
import pytest

from app.process.api import ROUTES, STATUSES
from tests.support.http import TLS

PASSING = {
    # What is missing may exist later.
    *("not-found", "row-not-found", "no-commits", "source-empty", "upload-incomplete"),
    # Somebody else was first, or is not done.
    *("commit-conflict", "schema-changed", "consumer-leased", "idempotency-in-flight", "job-not-finished"),
    # Time and limits.
    *("request-timeout", "quota-exceeded", "rate-limited", "rendering-under-way"),
    # Failures of the service and of what it reads.
    *("internal", "attempts-exhausted", "corrupt-file", "rendering-failed", "unavailable"),
    *("storage-unavailable", "storage-full", "source-unavailable"),
}
"""The types of problems after which the same request may succeed: no other type is worth a retry."""


@pytest.fixture
def anonymous(service: Any) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=service.url, trust_env=False, verify=TLS) as client:
        yield client


def test_the_front_names_the_release_and_its_links_answer(anonymous: Any) -> None:
    front = anonymous.get("/").json()
    assert (front["name"], front["version"]) == ("Headwater", version("headwater"))
    assert set(front["links"]) >= {"openapi", "docs"}
    for link in front["links"].values():
        assert anonymous.get(link, follow_redirects=True).status_code == 200, link
        assert anonymous.head(link, follow_redirects=True).status_code == 200, link


def test_browsers_are_led_to_the_console(anonymous: Any) -> None:
    accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    answer = anonymous.get("/", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")
    for other in ("application/json", "*/*", "application/json, text/html;q=0.5", "image/png"):
        assert anonymous.get("/", headers={"Accept": other}).json()["links"]["console"] == "/console"


def test_the_docs_list_every_operation(anonymous: Any) -> None:
    answer = anonymous.get("/docs")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    described = [line.split() for line in answer.text.splitlines() if line.startswith("  ")]
    assert len(described) == len(ROUTES)
    assert ["GET", "/health/live", "Is", "the", "process", "alive?"] in described


def test_every_problem_is_described_where_its_type_points(anonymous: Any) -> None:
    listed = {each["type"]: each for each in anonymous.get("/problems").json()["items"]}
    assert {kind.removeprefix("/problems/"): each["status"] for kind, each in listed.items()} == STATUSES
    for each in listed.values():
        assert each["title"]
        assert each["meaning"].endswith((".", ":", "…", ")")), each
    for kind in ("/problems/not-found", "/problems/rate-limited", "/problems/unavailable"):
        assert anonymous.get(kind).json() == listed[kind]
    assert listed["/problems/unavailable"]["retry_after_seconds"] == 5
    passing = {kind.removeprefix("/problems/") for kind, each in listed.items() if each["retry"]}
    assert passing == PASSING
    assert {kind for kind, each in listed.items() if each.get("retry_after_seconds")} <= {
        f"/problems/{code}" for code in PASSING
    }


def test_a_refusal_leads_to_its_description(anonymous: Any) -> None:
    refused = anonymous.get("/datasets").json()
    assert anonymous.get(refused["type"]).json()["title"] == refused["title"]


@pytest.mark.parametrize("code", ["none", "%2e%2e", "Not-Found", "a" * 500])
def test_a_type_that_is_none_is_not_found(anonymous: Any, code: str) -> None:
    answer = anonymous.get(f"/problems/{code}")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


def test_the_front_can_only_be_read(anonymous: Any) -> None:
    for path in ("/", "/docs", "/problems", "/problems/not-found"):
        answer = anonymous.post(path, content=json.dumps({}))
        assert answer.status_code == 405, path
        assert "GET" in answer.headers["allow"]
