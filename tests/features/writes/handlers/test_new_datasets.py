"""Writes that register their dataset: what it is, and that it comes with its rows or not at all."""

from __future__ import annotations

import gzip
import threading
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.features.writes.compose import accept_new_dataset, accept_write
from app.features.writes.values import Body, IncomingWrite, NewPlace
from app.infra.files import column_sample
from app.infra.identifiers import new_id
from app.kernel.format.definition.new_dataset import CreateWithRows
from app.kernel.format.operation import Operation
from app.kernel.format.paths import dataset_prefix
from app.kernel.format.rows.formats import Format
from tests.support.http import problem

KEYED = {"record_key": ["id"], "ordering_field": "at"}
ROWS = [
    {"id": 1, "at": 5, "note": "new"},
    {"id": 1, "at": 4, "note": "old"},
    {"id": 2, "at": 1, "note": None},
]
STORED = [{"id": 1, "at": 5, "note": "new"}, {"id": 2, "at": 1, "note": None}]
NDJSON = {"Content-Type": "application/x-ndjson"}
# `id` is null, which only a worker sees in columnar input.
BAD = pa.table({"id": pa.array([None], pa.int64()), "note": ["a"]})


def body(*rows, create=KEYED, operation="upsert", **members):
    return {
        "operation": operation,
        "source": {"kind": "rows", "rows": list(rows)},
        "create": create,
        **members,
    }


def arrow(table):
    sink = BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet(table):
    sink = BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


ENCODED = {
    "application/vnd.apache.arrow.stream": arrow,
    "application/vnd.apache.parquet": parquet,
}


@pytest.fixture
def send(client):
    def run(*rows, name="made", headers=None, **members):
        return client.post(f"/datasets/{name}/writes", json=body(*rows, **members), headers=headers)

    return run


@pytest.fixture
def send_raw(client):
    def run(content, media_type, *, name="made", **params):
        headers = {"Content-Type": media_type}
        return client.post(f"/datasets/{name}/writes", content=content, headers=headers, params=params)

    return run


@pytest.fixture
def ended(client, service):
    """The job of an answer, once it has ended."""

    def run(answer):
        assert answer.status_code == 202, answer.text
        service.work()
        return client.get(answer.headers["location"]).json()

    return run


def types(client, name="made"):
    return {each["name"]: each["type"] for each in client.get(f"/datasets/{name}").json()["schema"]["fields"]}


def rows(client, name="made"):
    found = client.get(f"/datasets/{name}/rows").json()["rows"]
    return sorted(found, key=lambda each: each["id"])


@pytest.mark.parametrize("mode", ["append", "overwrite", "ignore", "error_if_exists"])
def test_write_registers_its_dataset_in_every_save_mode(client, send, ended, mode):
    job = ended(send(*ROWS, mode=mode))
    assert (job["state"], job["committed_version"], job["rows"]["inserted"]) == ("succeeded", 1, 2)
    dataset = client.get("/datasets/made").json()
    assert job["links"]["dataset"] == f"/datasets/{dataset['id']}"
    assert (dataset["record_key"], dataset["ordering_field"]) == (["id"], "at")
    assert types(client) == {"id": "int64", "at": "int64", "note": "string"}
    assert rows(client) == STORED
    changes = client.get("/datasets/made/changes").json()["changes"]
    assert [each["op"] for each in changes] == ["+A", "+A"]


def test_dataset_with_rows_is_left_alone_or_refused(client, send, ended):
    ended(send(*ROWS))
    other = {"id": 3, "at": 1, "note": "x"}
    job = ended(send(other, mode="ignore", create={"record_key": ["note"]}))
    assert (job["state"], job["rows"]["unchanged"]) == ("succeeded", 1)
    job = ended(send(other, mode="error_if_exists"))
    assert job["state"] == "failed"
    assert job["error"]["status"] == 409
    assert rows(client) == STORED
    assert ended(send(other))["rows"]["inserted"] == 1
    assert client.get("/datasets/made").json()["record_key"] == ["id"]


@pytest.mark.parametrize("media_type", ENCODED)
def test_columnar_rows_register_exactly_their_types(client, send_raw, ended, media_type):
    table = pa.table(
        {
            "id": pa.array([1], pa.int16()),
            "price": pa.array([None], pa.decimal128(12, 2)),
            "at": pa.array([0], pa.timestamp("us", "UTC")),
            "day": pa.array([0], pa.date32()),
            "tags": pa.array([["a"]], pa.list_(pa.string())),
        }
    )
    params = {"create": "true", "record_key": ["day", "id"], "partition_by": "day", "ordering_field": "at"}
    job = ended(send_raw(ENCODED[media_type](table), media_type, **params))
    assert (job["state"], job["rows"]["inserted"]) == ("succeeded", 1)
    found = client.get("/datasets/made").json()
    assert (found["record_key"], found["partition_by"]) == (["day", "id"], ["day"])
    assert types(client) == {
        "id": "int16",
        "price": "decimal(12, 2)",
        "at": "timestamp",
        "day": "date",
        "tags": "list<string>",
    }
    assert len(rows(client)) == 1


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b'{"id": 1, "note": "a"}\n{"id": 2, "share": 0.5}\n', "application/x-ndjson"),
        (b"id,note,share\n1,a,\n2,,0.5\n", "text/csv"),
    ],
)
def test_texts_register_inferred_types(client, send_raw, ended, content, media_type):
    job = ended(send_raw(content, media_type, create="true"))
    assert (job["state"], job["rows"]["inserted"]) == ("succeeded", 2)
    assert client.get("/datasets/made").json()["record_key"] == []
    assert types(client) == {"id": "int64", "note": "string", "share": "double"}


CSV_BODIES = [
    ("t\n1234567890123456789\n", {"t": "int64"}, [{"t": 1234567890123456789}]),
    ("t\n9223372036854775808\n", {"t": "decimal(38, 0)"}, [{"t": "9223372036854775808"}]),
    (
        "t\n9007199254740993\n0.5\n",
        {"t": "decimal(38, 1)"},
        [{"t": "9007199254740993.0"}, {"t": "0.5"}],
    ),
    ("n\n+5\n", {"n": "string"}, [{"n": "+5"}]),
    ("zip\n01234\n80331\n", {"zip": "string"}, [{"zip": "01234"}, {"zip": "80331"}]),
    ("n\n007\n0.5\n", {"n": "string"}, [{"n": "007"}, {"n": "0.5"}]),
    ("n\n-0\n", {"n": "string"}, [{"n": "-0"}]),
    ("n\n1e400\n", {"n": "string"}, [{"n": "1e400"}]),
    ("day\n2026-11-21\n", {"day": "date"}, [{"day": "2026-11-21"}]),
    (
        "at\n2026-11-21T10:00:00Z\n2026-11-21 11:00:00.5+01:00\n",
        {"at": "timestamp"},
        [{"at": "2026-11-21T10:00:00Z"}, {"at": "2026-11-21T10:00:00.500000Z"}],
    ),
    ("at\n2026-11-21T10:00:00\n", {"at": "timestamp_ntz"}, [{"at": "2026-11-21T10:00:00"}]),
    ("day\n2026-11-21\nsoon\n", {"day": "string"}, [{"day": "2026-11-21"}, {"day": "soon"}]),
]


@pytest.mark.parametrize(("text", "columns", "stored"), CSV_BODIES)
@pytest.mark.parametrize("merges", [False, True])
def test_csv_registers_types_that_hold_its_cells(client, send_raw, ended, text, columns, stored, merges):
    job = ended(send_raw(text.encode(), "text/csv", create="true", merge_schema=str(merges).lower()))
    assert job["state"] == "succeeded", job
    assert types(client) == columns
    assert client.get("/datasets/made/rows").json()["rows"] == stored


@pytest.mark.parametrize(
    ("values", "type_", "row", "value"),
    [
        ("1, 2.5, 1e400", "double", 2, "1e400"),
        ('1, "a"', "int64", 1, '"a"'),
        ("1" + "0" * 38, "int64", 0, "1000"),
        ("0." + "1" * 39, "decimal(38, 38)", 0, "0.1111"),
    ],
)
def test_json_value_that_does_not_fit_is_named(client, send, values, type_, row, value):
    rows = ", ".join(f'{{"n": {each.strip()}}}' for each in values.split(","))
    content = f'{{"operation": "insert", "create": {{}}, "source": {{"kind": "rows", "rows": [{rows}]}}}}'
    answer = client.post(
        "/datasets/made/writes", content=content, headers={"Content-Type": "application/json"}
    )
    [error] = problem(answer, 422, "schema-mismatch")["errors"]
    assert error["pointer"] == f"/source/rows/{row}/n"
    assert f"expected {type_}" in error["detail"]
    assert value in error["detail"]


def test_outliers_are_quarantined(client, send_raw, ended):
    lines = [*map(str, range(1_000)), "n/a", "2.5", ""]
    content = "n\n" + "\n".join(lines) + "\n"
    job = ended(send_raw(content.encode(), "text/csv", create="true", on_error="quarantine"))
    assert (job["state"], job["rows"]["inserted"], job["rows"]["quarantined"]) == ("succeeded", 1_002, 1)
    assert types(client) == {"n": "double"}


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"id,note,gone,none\n1,a,,\n2,,,\n", "text/csv"),
        (
            b'{"id": 1, "note": "a", "gone": null}\n{"id": 2, "none": null}\n',
            "application/x-ndjson",
        ),
        (
            arrow(pa.table({"id": [1, 2], "note": ["a", None], "gone": pa.nulls(2), "none": pa.nulls(2)})),
            "application/vnd.apache.arrow.stream",
        ),
    ],
)
def test_columns_without_values_are_left_out_until_they_have_one(
    client, send_raw, ended, content, media_type
):
    job = ended(send_raw(content, media_type, create="true", record_key="id"))
    assert (job["state"], job["result"]) == ("succeeded", {"ignored_fields": ["gone", "none"]})
    assert types(client) == {"id": "int64", "note": "string"}
    for options in ({}, {"merge_schema": "true"}):
        job = ended(send_raw(content, media_type, **options))
        assert (job["state"], job["rows"]["unchanged"]) == ("succeeded", 2)
        assert job["result"] == {"ignored_fields": ["gone", "none"]}
    line = b'{"id": 1, "note": "a", "gone": 2.5, "none": null}\n'
    [error] = problem(send_raw(line, "application/x-ndjson"), 422, "schema-mismatch")["errors"]
    assert error["pointer"] == "/rows/0/gone"
    job = ended(send_raw(line, "application/x-ndjson", merge_schema="true"))
    assert (job["state"], job["result"]) == ("succeeded", {"ignored_fields": ["none"]})
    assert types(client) == {"id": "int64", "note": "string", "gone": "double"}


CSV, LINES = "text/csv", "application/x-ndjson"


@pytest.mark.parametrize(
    ("content", "media_type", "code", "reason"),
    [
        (
            "id,name\n1,Łódź\n".encode("iso-8859-2"),
            CSV,
            "schema-mismatch",
            "invalid UTF-8: invalid start byte; send UTF-8 (at byte 10 of the input)",
        ),
        (
            b"id,name\n1,2,3\n4,5,6\n",
            CSV,
            "schema-mismatch",
            "line 2: expected 2 cells, as in the header line, got 3",
        ),
        (
            b"# made by hand\nid,name\n1,a\n",
            CSV,
            "schema-mismatch",
            'line 2: expected 1 cells, as in the header line, got 2; the header line is "# made by hand"',
        ),
        (
            '{"name": "Zoé"}\n'.encode("latin-1"),
            LINES,
            "malformed-body",
            "row 0 (line 1 counted from 1, byte 12): invalid UTF-8",
        ),
        ('{"name": "a"}\n'.encode("utf-16"), LINES, "malformed-body", "byte order mark"),
        (
            b'[{"id": 1}, {"id": 2}]\n',
            LINES,
            "malformed-body",
            "the body is a JSON array, and NDJSON is one object per line",
        ),
        (
            b'[\n{"id": 1,\n"a": 2}]\n',
            LINES,
            "malformed-body",
            "the body is a JSON array, and NDJSON is one object per line",
        ),
        (b'{\n  "id": 1\n}\n', LINES, "malformed-body", "the first line is not a whole object"),
        (b'{"n": NaN}\n', LINES, "schema-mismatch", "/rows/0/n: NaN is no JSON number; send null or"),
        (b'{"id": 1, "x": NaN}\n', LINES, "schema-mismatch", "/rows/0/x: NaN is no JSON number"),
        (b'{"id": 1, "x": ["\\ud800"]}\n', LINES, "schema-mismatch", "/rows/0/x/0: the text has the escape"),
        (b",id,name\n0,1,a\n", CSV, "schema-mismatch", "/rows: column 1 of the header line has no name"),
        (b"id,na\tme\n1,a\n", CSV, "schema-mismatch", "column 2 of the header line has the name 'na\\tme'"),
        (b"id,%b\n1,a\n" % (b"n" * 300), CSV, "schema-mismatch", "of 300 characters"),
        (b"id,name,ID\n1,a,2\n", CSV, "schema-mismatch", '"ID" differs only by case from "id"'),
        (b"id;name\n1;a\n", CSV, "schema-mismatch", "has a semicolon, but the separator of CSV is a comma"),
        (b"id\tname\n1\ta\n", CSV, "schema-mismatch", "has a tab, but the separator of CSV is a comma"),
        (b"sep=;\nid;name\n1;a\n", CSV, "schema-mismatch", "has a semicolon, but"),
        (gzip.compress(b'{"id": 1}\n'), LINES, "malformed-body", "send the header Content-Encoding: gzip"),
        (gzip.compress(b"id\n1\n"), CSV, "malformed-body", "send the header Content-Encoding: gzip"),
        (b'{"id" 1}\n', LINES, "malformed-body", "not JSON"),
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_text_that_cannot_be_read_is_refused_for_its_first_fault(
    client, send_raw, content, media_type, code, reason, on_error
):
    answer = send_raw(content, media_type, create="true", on_error=on_error)
    document = problem(answer, answer.status_code, code)
    assert reason in f"{document['detail']} {document.get('errors')}"
    problem(client.get("/datasets/made"), 404, "not-found")


def test_name_that_no_field_can_have_is_an_error_of_its_row(client, send_raw, ended):
    content = b'{"id": 1}\n{"id": 2, "": 2}\n'
    refused = problem(send_raw(content, "application/x-ndjson", create="true"), 422, "schema-mismatch")
    assert [error["pointer"] for error in refused["errors"]] == ["/rows/1/"]
    job = ended(send_raw(content, "application/x-ndjson", create="true", on_error="quarantine"))
    assert (job["state"], job["rows"]["quarantined"]) == ("succeeded", 1)
    assert rows(client) == [{"id": 1}]


def test_rows_without_values_register_nothing(client, send_raw):
    answer = send_raw(b"a,b\n,\n", "text/csv", create="true")
    [error] = problem(answer, 400, "invalid-request")["errors"]
    assert error["pointer"] == "/create/schema"
    assert "'a', 'b' have no values" in error["detail"]


def test_ordering_field_of_times_is_a_time(client, send_raw, ended):
    older = b'{"id": 1, "note": "new", "at": "2026-11-21T10:00:00Z", "seen": "2026-11-21T10:00:00Z"}\n'
    job = ended(send_raw(older, "application/x-ndjson", create="true", record_key="id", ordering_field="at"))
    assert job["state"] == "succeeded", job
    assert types(client) == {"id": "int64", "note": "string", "at": "timestamp", "seen": "string"}
    # An hour earlier, though its text is greater.
    earlier = b'{"id": 1, "note": "old", "at": "2026-11-21T11:00:00+02:00", "seen": "-"}\n'
    assert ended(send_raw(earlier, "application/x-ndjson"))["state"] == "succeeded"
    assert [row["note"] for row in rows(client)] == ["new"]


def test_schema_of_the_request_is_used(client, send, ended):
    fields = [
        {"name": "id", "type": "int32"},
        {"name": "day", "type": "date"},
        {"name": "none", "type": "string"},
    ]
    create = {"record_key": ["id"], "schema": {"fields": fields}}
    assert ended(send({"id": 1, "day": "2026-11-23"}, create=create))["state"] == "succeeded"
    assert types(client) == {"id": "int32", "day": "date", "none": "string"}


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b'id,tags,none\n1,"{""a"": ""2.5""}",\n', "text/csv"),
        (b'{"id": 1, "tags": {"a": 2.5}}\n', "application/x-ndjson"),
    ],
)
def test_raw_body_states_its_columns(client, send_raw, ended, content, media_type):
    columns = {"id": "int32", "tags": "map<string, decimal(9, 2)>", "none": "string"}
    text = ",".join(f"{name}:{type_}" for name, type_ in columns.items())
    job = ended(send_raw(content, media_type, create="true", record_key="id", schema=text))
    assert job["state"] == "succeeded", job
    assert types(client) == columns
    assert rows(client) == [{"id": 1, "tags": {"a": "2.50"}, "none": None}]


@pytest.mark.parametrize(
    ("schema", "code", "reason"),
    [
        ("id", "invalid-dataset", "expected columns in the form id:int64"),
        ("id:int64,", "invalid-dataset", "expected columns in the form"),
        ("id:int65", "invalid-dataset", "unknown type 'int65'"),
        ("id:int64,id:string", "invalid-dataset", "has this name already"),
        ("note:string", "invalid-dataset", "no field"),
        ("id:date", "schema-mismatch", "expected date"),
        ("id:int64,other:string", "schema-mismatch", 'no field "note"'),
    ],
)
def test_schema_that_does_not_fit_registers_nothing(client, send_raw, schema, code, reason):
    answer = send_raw(b"id,note\n1,a\n", "text/csv", create="true", record_key="id", schema=schema)
    assert reason in problem(answer, 422, code)["errors"][0]["detail"]
    problem(client.get("/datasets/made"), 404, "not-found")


def test_columns_that_begin_late_in_a_large_text_are_registered(client, send_raw, ended, monkeypatch):
    monkeypatch.setattr(column_sample, "_SPLIT_BYTES", 10_000)
    text = b"".join(b'{"id": %d, "late": null}\n' % number for number in range(8_000))
    text += b'{"id": 8000, "late": "x", "later": true}\n'
    job = ended(send_raw(text, "application/x-ndjson", create="true", record_key="id"))
    assert (job["state"], job["rows"]["inserted"]) == ("succeeded", 8_001), job
    assert types(client) == {"id": "int64", "late": "string", "later": "boolean"}


def test_changes_register_the_columns_of_their_rows(client, send, ended):
    changes = [{"op": "+A", "row": {"id": 1, "at": 1}}, {"op": "+A", "row": {"id": 2, "at": 1}}]
    assert ended(send(*changes, operation="changelog"))["state"] == "succeeded"
    assert types(client) == {"id": "int64", "at": "int64"}
    assert len(rows(client)) == 2


def test_failed_write_leaves_no_dataset_and_its_job(client, service, send_raw, send, ended):
    answer = send_raw(arrow(BAD), "application/vnd.apache.arrow.stream", create="true", record_key="id")
    dataset = answer.json()["links"]["dataset"]
    job = ended(answer)
    assert (job["state"], job["error"]["type"]) == ("failed", "/problems/schema-mismatch")
    problem(client.get("/datasets/made"), 404, "not-found")
    problem(client.get(dataset), 404, "not-found")
    assert client.get("/datasets").json()["items"] == []
    assert ended(send(*ROWS))["state"] == "succeeded"


def test_cancelled_write_leaves_no_dataset(client, send):
    answer = send(*ROWS)
    assert client.get("/datasets/made").status_code == 200
    assert client.post(f"{answer.headers['location']}/cancel").status_code == 200
    problem(client.get("/datasets/made"), 404, "not-found")


def test_dataset_stays_while_a_write_to_it_waits_or_has_succeeded(client, service, send_raw, send, ended):
    bad = ("application/vnd.apache.arrow.stream", {"create": "true", "record_key": "id"})
    first = send_raw(arrow(BAD), bad[0], **bad[1])
    second = send_raw(arrow(BAD), bad[0], **bad[1])
    third = send({"id": 1, "note": "a"}, create={})
    assert first.json()["links"]["dataset"] == third.json()["links"]["dataset"]
    assert ended(third)["state"] == "succeeded"
    assert {client.get(each.headers["location"]).json()["state"] for each in (first, second)} == {"failed"}
    assert rows(client) == [{"id": 1, "note": "a"}]
    # The last of several that fail ends it.
    for _ in range(2):
        send_raw(arrow(BAD), bad[0], name="other", **bad[1])
    service.work()
    problem(client.get("/datasets/other"), 404, "not-found")


def test_write_without_rows_succeeds_and_keeps_its_dataset(client, send, send_raw, ended):
    fields = {"fields": [{"name": "id", "type": "int64"}]}
    assert ended(send(create={"record_key": ["id"], "schema": fields}))["state"] == "succeeded"
    send_raw(arrow(BAD.select(["id"])), "application/vnd.apache.arrow.stream", create="true", record_key="id")
    assert ended(send({"id": 1}))["rows"]["inserted"] == 1
    assert rows(client) == [{"id": 1}]


def test_registered_dataset_is_not_deleted_by_a_write_that_fails(client, orders, send_raw, ended):
    answer = send_raw(
        arrow(BAD), "application/vnd.apache.arrow.stream", name="orders", create="true", record_key="id"
    )
    assert ended(answer)["state"] == "failed"
    assert client.get(orders).status_code == 200


def test_repeated_request_is_one_write(client, service, send):
    key = {"Idempotency-Key": "once"}
    first, second = send(*ROWS, headers=key), send(*ROWS, headers=key)
    assert first.json()["id"] == second.json()["id"]
    assert second.headers["Idempotency-Replayed"] == "true"
    other = send(*ROWS, headers=key, create={"record_key": ["id"]})
    problem(other, 422, "idempotency-mismatch")
    service.work()
    assert client.get("/datasets/made").json()["version"] == 1


def test_batch_of_a_writer_registers_its_dataset_once(client, service, send):
    batch = {"writer_id": "stream", "batch_id": 0}
    first, second = send(*ROWS, **batch), send(*ROWS, **batch)
    assert first.json()["id"] == second.json()["id"]
    service.work()
    assert client.get("/datasets/made").json()["version"] == 1


@pytest.mark.parametrize(
    ("members", "code", "pointer"),
    [
        ({"create": {"record_key": ["nothing"]}}, "invalid-dataset", "/create/record_key/0"),
        ({"create": {"partition_by": ["hour(note)"]}}, "invalid-dataset", "/create/partition_by/0"),
        ({"operation": "delete"}, "invalid-request", "/operation"),
        ({"drop_duplicates": True}, "invalid-request", "/drop_duplicates"),
        (
            {"operation": "insert", "combine": False, "create": {"record_key": ["id"]}},
            "invalid-request",
            "/combine",
        ),
        ({"source": {"kind": "rows", "rows": []}}, "invalid-request", "/create/schema"),
        ({"source": {"kind": "rows", "rows": [{"id": 1, "at": None}]}}, "schema-mismatch", "/rows"),
        (
            {"source": {"kind": "upload", "upload_id": new_id(), "format": "ndjson"}},
            "invalid-request",
            "/source",
        ),
        ({"create": True}, "invalid-request", "/create"),
    ],
)
def test_invalid_write_registers_nothing(client, send, members, code, pointer):
    answer = send(*ROWS, **members)
    errors = problem(answer, answer.status_code, code)["errors"]
    assert answer.status_code in (400, 422)
    assert errors[0]["pointer"] == pointer
    problem(client.get("/datasets/made"), 404, "not-found")


def test_name_has_to_be_one_of_a_dataset(client, send):
    errors = problem(send(*ROWS, name="no name"), 422, "invalid-dataset")["errors"]
    assert errors[0]["pointer"] == "/name"
    problem(send(*ROWS, name=new_id()), 404, "not-found")


def test_members_of_a_new_dataset_need_create(send_raw, orders):
    line = b'{"id": 1}\n'
    errors = problem(
        send_raw(line, "application/x-ndjson", name="orders", record_key="id"), 400, "invalid-request"
    )["errors"]
    assert errors[0]["pointer"] == "/record_key"
    answer = send_raw(line, "application/x-ndjson", name="orders", schema="id:int64")
    assert problem(answer, 400, "invalid-request")["errors"][0]["pointer"] == "/schema"
    problem(send_raw(line, "application/x-ndjson"), 404, "not-found")
    problem(send_raw(line, "application/x-ndjson", create="false"), 404, "not-found")


def test_large_text_of_one_piece_needs_a_schema(send_raw, monkeypatch):
    monkeypatch.setattr(column_sample, "SAMPLE_BYTES_MAX", 10)
    answer = send_raw(b"id,note\n1,a\n2,b\n", "text/csv", create="true")
    assert problem(answer, 400, "invalid-request")["errors"][0]["pointer"] == "/create/schema"


def test_key_with_grants_registers_only_names_that_it_may_write(client, service):
    grants = [{"datasets": "made_*", "scopes": ["read", "write"]}, {"datasets": "seen_*", "scopes": ["read"]}]
    key = {"name": "some", "scopes": ["read", "write"], "grants": grants}
    answer = client.post("/keys", json=key)
    assert answer.status_code == 201, answer.text
    with service.client(answer.json()["api_key"]) as other:
        assert other.post("/datasets/made_a/writes", json=body(*ROWS)).status_code == 202
        problem(other.post("/datasets/seen_a/writes", json=body(*ROWS)), 403, "forbidden")
        problem(other.post("/datasets/else/writes", json=body(*ROWS)), 404, "not-found")
    names = [each["name"] for each in client.get("/datasets").json()["items"]]
    assert names == ["made_a"]


def test_quota_of_datasets_is_held(new_client, service):
    tenant = {"name": f"q-{new_id()[-12:]}-x", "quotas": {"datasets": 1}}
    key = new_client(("operate",)).post("/tenants", json=tenant).json()["api_key"]
    with service.client(key) as few:
        assert few.post("/datasets/one/writes", json=body(*ROWS)).status_code == 202
        problem(few.post("/datasets/two/writes", json=body(*ROWS)), 429, "quota-exceeded")
        assert [each["state"] for each in few.get("/jobs").json()["items"]] == ["queued"]


def test_racing_writes_register_one_dataset(client, service, send):
    answers = []
    barrier = threading.Barrier(4)

    def run(number):
        barrier.wait()
        answers.append(send({"id": number, "at": 1, "note": "a"}))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.status_code for each in answers] == [202] * 4, [each.text for each in answers]
    assert len({each.json()["links"]["dataset"] for each in answers}) == 1
    service.work()
    assert [each["id"] for each in rows(client)] == [0, 1, 2, 3]


def test_stored_body_moves_to_the_dataset_that_another_has_registered(client, service, send, ended):
    ended(send({"id": 0, "note": "a"}, create={"record_key": ["id"]}))
    platform, tenant_id = service.platform, client.get("/me").json()["tenant"]["id"]
    writes = accept_write(platform)
    place = NewPlace(tenant_id=tenant_id, dataset_id=new_id(), name="made")
    with writes.inputs.spool(tenant_id, place.dataset_id) as spool:
        spool.feed(b"".join(b'{"id": %d, "note": "b"}\n' % number for number in range(8_000)))
        stored = spool.finish()
    incoming = IncomingWrite(
        operation=Operation.UPSERT,
        source=Body(content=stored, format=Format.NDJSON),
        create=CreateWithRows(record_key=["id"]),
    )
    accepted = accept_new_dataset(platform, writes).accept(place, incoming)
    assert list(platform.storage.list(dataset_prefix(tenant_id, place.dataset_id))) == []
    service.work()
    job = client.get(f"/jobs/{accepted.job.id}").json()
    assert (job["state"], job["rows"]["inserted"], job["rows"]["updated"]) == ("succeeded", 7_999, 1)
