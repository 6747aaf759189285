"""Error messages about query parameters that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.datastructures import MultiDict

from app.changes.handlers.changes import ReadChangesOptions
from app.format.errors import InvalidRequest
from app.http.parameters.query_options import decode_options
from tests.support.http import problem


@pytest.mark.parametrize(
    ("name", "text", "detail"),
    [
        ("since", "latest", "expected an offset, `earliest`, `now` or `snapshot`"),
        ("since", "now\n", "expected an offset, `earliest`, `now` or `snapshot`"),
        ("since", "-1", "expected an offset, `earliest`, `now` or `snapshot`"),
        ("timeout", "61", "expected an integer <= 60"),
        ("limit", "many", "expected an integer"),
        ("schema", "newest", "expected `latest` or the id of a schema"),
        ("schema", "latest\n", "expected `latest` or the id of a schema"),
    ],
)
def test_expected_value_is_named_in_words(name: str, text: str, detail: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_options(MultiDict([(name, text)]), ReadChangesOptions)
    assert caught.value.facts["errors"] == [{"pointer": f"/{name}", "detail": detail}]


@pytest.mark.parametrize(
    ("path", "name", "meant"),
    [
        ("rows", "page_size", "limit"),
        ("changes", "page_size", "limit"),
        ("timeline", "limit", "page_size"),
        ("rows", "fields", "columns"),
        ("rows", "clumns", "columns"),
    ],
)
def test_parameter_of_another_resource_is_translated(
    client: Any, orders: str, path: str, name: str, meant: str
) -> None:
    refused = problem(client.get(f"{orders}/{path}", params={name: "1"}), 400, "invalid-request")
    assert refused["errors"][0]["detail"].startswith(f"did you mean {meant!r}?")


def test_unknown_column_is_named_with_a_similar_one(client: Any, orders: str) -> None:
    refused = problem(client.get(f"{orders}/rows", params={"columns": "id,ide"}), 400, "invalid-request")
    assert refused["detail"] == "columns: there is no column 'ide'; did you mean 'id'?"


@pytest.mark.parametrize("time", ["1763683200", "1763683200.5", "1e9", "null", "now"])
def test_time_that_is_not_rfc_3339_is_refused(client, orders, time):
    for path, name in (("changes", "since_time"), ("rows", "as_of"), ("timeline", "until_time")):
        members = problem(client.get(f"{orders}/{path}", params={name: time}), 400, "invalid-request")
        [error] = members["errors"]
        assert error["pointer"] == f"/{name}"
        assert "RFC 3339" in error["detail"]
