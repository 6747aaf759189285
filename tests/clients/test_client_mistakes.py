"""What the Python client says about mistakes of its caller, without a service."""

from __future__ import annotations

from typing import Any

import pytest

from headwater_client import AsyncHeadwater, Headwater, Problem

SET = {"HEADWATER_URL": "http://127.0.0.1:1", "HEADWATER_API_KEY": "hw_x"}


@pytest.mark.parametrize("client", [Headwater, AsyncHeadwater])
def test_missing_variables_are_named(client: type[Headwater | AsyncHeadwater]) -> None:
    assert isinstance(client.from_environment(SET), client)
    with pytest.raises(LookupError, match="variable HEADWATER_URL and HEADWATER_API_KEY, or"):
        client.from_environment({})
    with pytest.raises(LookupError, match="variable HEADWATER_API_KEY, or"):
        client.from_environment({**SET, "HEADWATER_API_KEY": ""})


def test_change_of_a_consumer_needs_its_revision() -> None:
    with Headwater.from_environment(SET) as headwater:
        with pytest.raises(TypeError, match=r"expected a FeedConsumer, whose revision .* got str"):
            headwater.commit("orders", "billing", 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="expected a FeedConsumer"):
            headwater.bound_consumer("orders", "billing", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("detail", "errors", "text"),
    [
        ("/rows/0/id: no", ["/rows/0/id"], "/rows/0/id: no"),
        ("2 faults; the first is /a: no", ["/a", "/b"], "2 faults; the first is /a: no; /b: no"),
        ("the dataset is not valid", ["/a", "/b"], "the dataset is not valid; /a: no; /b: no"),
        ("", ["/a"], "Not valid; /a: no"),
    ],
)
def test_problem_says_each_fault_once(detail: str, errors: list[str], text: str) -> None:
    document: dict[str, Any] = {
        "type": "/problems/schema-mismatch",
        "title": "Not valid",
        "status": 422,
        "detail": detail,
        "errors": [{"pointer": pointer, "detail": "no"} for pointer in errors],
    }
    assert str(Problem(document)) == f"422 schema-mismatch: {text}"
