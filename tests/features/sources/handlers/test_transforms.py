"""Transforms of sources over HTTP: checked when they are registered, and applied to what each round reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from app.kernel.derivation.request import RowsInput
from tests.support.http import problem
from tests.support.sources import Incoming, notes
from tests.support.view_computation import Query

FIELDS = [{"name": "nr", "type": "int64"}, {"name": "text", "type": "string"}]
SQL = "SELECT nr AS id, upper(text) AS note FROM source WHERE nr < 10"


@pytest.fixture
def compute(incoming: Incoming, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Query], None]:
    """What computes the rows of a dataset in this test, in the place of Spark."""
    return partial(monkeypatch.setitem, incoming.service.derivation.queries)


def transform(**members: Any) -> dict[str, Any]:
    return {"sql": SQL, "fields": FIELDS, **members}


def test_rows_are_those_that_the_query_makes(
    incoming: Incoming, orders: str, compute: Callable[[str, Query], None]
) -> None:
    compute(
        "orders",
        lambda rows: [{"id": row["nr"], "note": row["text"].upper()} for row in rows if row["nr"] < 10],
    )
    incoming.put("1.ndjson", {"nr": 1, "text": "a"}, {"nr": 12, "text": "b"})
    incoming.put("2.ndjson", {"nr": 2, "text": "c"}, {"nr": 1, "text": "d"})
    path = incoming.register(transform=transform())
    source = incoming.run(path)
    assert source["last_error"] is None
    assert source["transform"] == transform()
    assert notes(incoming.rows()) == {1: "D", 2: "C"}
    request = incoming.service.derivation.requests[-1]
    [read] = request.inputs.values()
    assert isinstance(read, RowsInput)
    assert (request.columns, read.columns) == (("id", "note"), ("nr", "text"))


def test_source_creates_its_dataset_with_the_columns_of_the_result(
    incoming: Incoming, compute: Callable[[str, Query], None]
) -> None:
    compute("made", lambda rows: [{"id": row["nr"], "half": row["nr"] / 2} for row in rows])
    incoming.put("1.ndjson", {"nr": 3, "text": "a"})
    query = transform(sql="SELECT nr AS id, nr / 2 AS half FROM source")
    incoming.run(incoming.register(dataset="made", transform=query, create={"record_key": ["id"]}))
    assert incoming.rows("made") == [{"id": 3, "half": 1.5}]
    fields = incoming.client.get("/datasets/made").json()["schema"]["fields"]
    assert [(field["name"], field["type"], field["nullable"]) for field in fields] == [
        ("id", "int64", False),
        ("half", "double", True),
    ]


def test_bad_records_are_quarantined_as_they_were_read_and_not_redriven(
    incoming: Incoming, orders: str, compute: Callable[[str, Query], None]
) -> None:
    compute("orders", lambda rows: [{"id": row["nr"], "note": row["text"]} for row in rows])
    incoming.put("1.ndjson", {"nr": 1, "text": "a"}, {"nr": "x", "text": "b"}, {"id": 3, "note": "c"})
    incoming.run(incoming.register(transform=transform(), on_error="quarantine"))
    assert notes(incoming.rows()) == {1: "a"}
    records = incoming.client.get(f"{orders}/quarantine").json()["items"]
    assert [record["position"] for record in records] == [1, 2]
    body = {"job": records[0]["job_id"]}
    refused = incoming.client.post(f"{orders}/quarantine/redrives", json=body)
    assert "a source with a transform" in problem(refused, 400, "invalid-request")["detail"]


def test_query_that_fails_fails_the_source_and_moves_nothing(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"nr": 1, "text": "a"})
    source = incoming.run(incoming.register(transform=transform()))
    assert (source["state"], source["position"], source["rounds"]) == ("failed", {}, 0)
    assert source["last_error"]["type"] == "/problems/derivation-failed"
    assert incoming.rows() == []


@pytest.mark.parametrize(
    ("members", "pointer", "detail"),
    [
        ({"transform": transform(sql="SELECT")}, "/transform/sql", "expected"),
        ({"transform": transform(sql="SELECT nr AS id FROM orders")}, "/transform/sql", "over source"),
        ({"transform": transform(sql="SELECT nrr AS id FROM source")}, "/transform/sql", "nrr"),
        ({"transform": transform(sql="SELECT nr AS id FROM source GROUP BY nr")}, "/transform/sql", "one row"),
        ({"transform": transform(sql="SELECT nr AS number FROM source")}, "/transform/sql", "number"),
        ({"transform": transform(sql="SELECT text AS note FROM source")}, "/transform/sql", "id"),
        ({"transform": transform(sql="SELECT text AS id FROM source")}, "/transform/sql", "int64"),
        ({"transform": transform(fields=[{"name": "nr", "type": "number"}])}, "/transform/fields/0/type", "number"),
        ({"transform": transform(), "merge_schema": True}, "/merge_schema", "leave it out"),
    ],
)  # fmt: skip
def test_transform_that_cannot_be_applied_is_refused(
    incoming: Incoming, orders: str, members: dict[str, Any], pointer: str, detail: str
) -> None:
    answer = incoming.client.post("/sources", json=incoming.source(**members))
    errors = problem(answer, 422, "invalid-source")["errors"]
    assert errors[0]["pointer"] == pointer
    assert detail in errors[0]["detail"]


def test_created_dataset_must_have_its_key_among_the_columns_of_the_result(incoming: Incoming) -> None:
    new = incoming.source(dataset="made", transform=transform(), create={"record_key": ["nr"]})
    answer = incoming.client.post("/sources", json=new)
    assert problem(answer, 422, "invalid-dataset")["errors"][0]["pointer"] == "/record_key/0"
