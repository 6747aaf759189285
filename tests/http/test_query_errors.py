"""Error messages about query parameters that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.datastructures import MultiDict

from app.core.changes.handlers.changes import ReadChangesOptions
from app.features.writes.schemas import WriteQueryOptions
from app.http.parameters.query_options import decode_options
from app.kernel.format.errors import InvalidRequest
from tests.support.http import problem

EXPECTED_POSITION = (
    "expected an offset, `earliest`, `now`, `snapshot`, or `next_since` of a page of rows, which has the form "
    "`snapshot:2:0:100`"
)
EXPECTED_TIME = "expected an RFC 3339 time with its zone, such as 2026-11-21T00:00:00Z"


@pytest.mark.parametrize(
    ("name", "text", "detail"),
    [
        ("since", "latest", EXPECTED_POSITION),
        ("since", "now\n", EXPECTED_POSITION),
        ("since", "-1", EXPECTED_POSITION),
        ("since", "snapshot:2:x", EXPECTED_POSITION),
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
    ("name", "text", "detail"),
    [
        ("tombstone", "no", "expected true or false"),
        ("merge_schema", "", "expected true or false"),
        ("expected_version", "x", "expected an integer"),
        ("operation", "add", "Invalid enum value 'add'; expected one of bulk_insert, changelog, delete,"),
    ],
)
def test_option_that_may_be_omitted_is_not_expected_to_be_null(name: str, text: str, detail: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_options(MultiDict([(name, text)]), WriteQueryOptions)
    [error] = [error for error in caught.value.facts["errors"] if error["pointer"] == f"/{name}"]
    assert error["detail"].startswith(detail)
    assert "null" not in error["detail"]


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


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("2026-11-23", ""),
        ("2026-11-23T10:00:00", ""),
        ("2026-11-23T10:00:00 UTC", ""),
        ("2026-99-23T10:00:00Z", ""),
        (
            "2026-11-23T10:00:00+00:00",
            "; a + in a query string means a space: send 2026-11-23T10:00:00%2B00:00",
        ),
        (
            "2026-11-23T10:00:00.5+0100",
            "; a + in a query string means a space: send 2026-11-23T10:00:00.5%2B0100",
        ),
    ],
)
def test_time_is_described_with_an_example_and_an_encoded_plus(client, orders, text, hint):
    for path, name in (("changes", "since_time"), ("rows", "as_of")):
        # As text, since a dictionary of parameters would be encoded.
        members = problem(client.get(f"{orders}/{path}?{name}={text}"), 400, "invalid-request")
        assert members["errors"] == [{"pointer": f"/{name}", "detail": f"{EXPECTED_TIME}{hint}"}]


def test_time_in_a_body_is_described_with_an_example(client, orders):
    body = {"query": "incremental", "begin_time": "2026-11-23T10:00:00"}
    members = problem(client.post(f"{orders}/reads", json=body), 400, "invalid-request")
    assert members["errors"] == [{"pointer": "/begin_time", "detail": EXPECTED_TIME}]
