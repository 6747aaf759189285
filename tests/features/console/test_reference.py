"""The reference of the API, the keys, and problems as pages."""

from __future__ import annotations

import httpx2
import pytest

from tests.support.pages import checked_page, page


def test_the_reference_has_all_operations(client: httpx2.Client, visitor: httpx2.Client) -> None:
    root = page(visitor, "/console/reference")
    document = client.get("/schema").json()
    count = sum(len(methods) for methods in document["paths"].values())
    assert len(root.one("div", id="operations").all("a")) == count


@pytest.mark.parametrize(
    "operation", ["create_write", "read_rows", "change_dataset", "get_liveness", "create_source"]
)
def test_an_operation_has_its_parameters_bodies_and_problems(visitor: httpx2.Client, operation: str) -> None:
    root = page(visitor, f"/console/reference/{operation}")
    assert operation in root.text
    assert "curl" in root.text
    assert "Responses" in [each.text for each in root.all("h2")]


def test_a_parameter_has_its_type_and_default(visitor: httpx2.Client) -> None:
    rows = page(visitor, "/console/reference/read_overview_hours").rows()
    hours = next(row for row in rows if row and row[0] == "hours")
    assert hours[1:3] == ["query", "integer"]
    assert hours[3] == "The number of hours. Default: 24."


def test_every_operation_has_a_page(client: httpx2.Client, visitor: httpx2.Client) -> None:
    document = client.get("/schema").json()
    names = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    for name in names:
        page(visitor, f"/console/reference/{name}")


def test_an_operation_that_does_not_exist_is_a_problem(visitor: httpx2.Client) -> None:
    assert "no operation has the id" in page(visitor, "/console/reference/none", status=404).text


def test_help_lists_the_keys(visitor: httpx2.Client) -> None:
    keys = page(visitor, "/console/help").one("section", id="keys")
    assert ["g d", "datasets"] in keys.rows()


def test_types_of_problems_are_pages_for_browsers(client: httpx2.Client, visitor: httpx2.Client) -> None:
    types = client.get("/problems").json()["items"]
    assert types
    root = page(visitor, "/problems")
    assert len(root.one("tbody").all("tr")) == len(types)
    first = types[0]
    shown = page(visitor, first["type"])
    assert first["meaning"].replace("`", "") in shown.text
    missing = page(visitor, "/problems/%3Cb%3E", status=404)
    assert "<b>" in missing.text


def test_types_of_problems_are_json_by_default(client: httpx2.Client) -> None:
    answer = client.get("/problems/not-found")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["vary"] == "Accept"
    assert answer.json()["status"] == 404


def test_a_problem_on_a_page_leads_to_its_type(visitor: httpx2.Client) -> None:
    root = page(visitor, "/console/datasets/none", status=404)
    kind = root.one("div", role="alert").link("not-found")
    assert checked_page(visitor.get(kind)).one("h1").text
