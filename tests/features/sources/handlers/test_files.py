"""Sources of files over HTTP: each file once, in the formats, within the admitted folders."""

from __future__ import annotations

import gzip
import os
import time
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.infra.identifiers import new_id
from tests.support.http import problem
from tests.support.service import Service
from tests.support.sources import Incoming, notes


def _parquet() -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "note": ["a", "b"]}), sink)
    return sink.getvalue()


def _avro(*rows: dict[str, Any], codec: str = "deflate") -> bytes:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "ratio", "type": "double"},
    ]
    sink = BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "Order", "fields": fields}, rows, codec=codec)
    return sink.getvalue()


def _order(number: int, ratio: float = 0.5) -> dict[str, Any]:
    return {"id": number, "note": "a", "at": datetime(2026, 11, 24, 1, number, tzinfo=UTC), "ratio": ratio}


def test_avro_files_register_a_dataset_with_their_types(incoming: Incoming) -> None:
    incoming.put_bytes("1.avro", _avro(_order(1), _order(2)))
    incoming.put_bytes("2.avro", _avro())
    create = {"record_key": ["id"], "ordering_field": "at"}
    path = incoming.register(dataset="fresh", create=create, config={"format": "avro"})
    source = incoming.run(path)
    assert (source["state"], source["last_error"]) == ("finished", None)
    fields = incoming.client.get("/datasets/fresh").json()["schema"]["fields"]
    assert {field["name"]: field["type"] for field in fields} == {
        "id": "int64",
        "note": "string",
        "at": "timestamp",
        "ratio": "double",
    }
    assert [row["at"] for row in incoming.rows("fresh")] == ["2026-11-24T01:01:00Z", "2026-11-24T01:02:00Z"]
    # The file without records was read, too.
    assert source["lag"] == {"items": 0, "bytes": 0, "seconds": 0.0}


def test_bad_records_and_damaged_files_of_avro_are_left_out_if_the_source_quarantines(
    incoming: Incoming,
) -> None:
    incoming.put_bytes("1.avro", _avro(_order(1), _order(2, float("nan"))))
    incoming.put_bytes("2.avro", _avro(_order(3))[:-5])
    incoming.put_bytes("3.avro", _avro(_order(4)))
    create = {"record_key": ["id"], "ordering_field": "at"}
    members = {"dataset": "fresh", "create": create, "config": {"format": "avro"}}
    path = incoming.register(**members)
    source = incoming.run(path)
    assert source["state"] == "failed"
    assert (
        "record 1 of file 1.avro: /ratio: nan, which is not a finite number" in source["last_error"]["detail"]
    )
    incoming.client.delete(path)
    source = incoming.run(incoming.register(**members, on_error="quarantine"))
    assert (source["state"], source["lag"]) == ("finished", {"items": 0, "bytes": 0, "seconds": 0.0})
    job = incoming.client.get(f"/jobs/{source['last_round']['job_id']}").json()
    assert job["result"]["rejected"] == [{"name": "2.avro", "detail": "file 2.avro: it is cut off"}]
    assert job["rows"]["quarantined"] == 1
    assert [row["id"] for row in incoming.rows("fresh")] == [1, 4]


def test_files_of_a_folder_are_read_once_in_the_order_of_their_names(incoming: Incoming, orders: str) -> None:
    incoming.put("2.ndjson", {"id": 1, "note": "second"})
    incoming.put("1.ndjson", {"id": 1, "note": "first"}, {"id": 2, "note": "b"})
    path = incoming.register()
    source = incoming.run(path)
    assert source["state"] == "finished"
    assert source["position"] == {"files": 2, "last": "2.ndjson"}
    assert source["lag"] == {"items": 0, "bytes": 0, "seconds": 0.0}
    assert source["last_error"] is None
    assert source["last_round"]["rows"]["inserted"] == 2
    assert notes(incoming.rows()) == {1: "second", 2: "b"}
    job = incoming.client.get(f"/jobs/{source['last_round']['job_id']}").json()
    assert (job["kind"], job["state"], job["committed_version"]) == ("source_round", "succeeded", 1)
    assert job["result"] == {
        "source_id": source["id"],
        "round": 1,
        "position": {"files": 2, "last": "2.ndjson"},
        "items": 2,
        "rejected": [],
    }


def test_files_before_the_start_are_left_out(incoming: Incoming, events: str) -> None:
    written = {"a.ndjson": 2_000, "b.ndjson": 1_000, "c.ndjson": 3_000}
    for number, (name, second) in enumerate(written.items()):
        os.utime(incoming.put(name, {"what": str(number)}), (second, second))
    starts: tuple[tuple[dict[str, str], set[str]], ...] = (
        ({"after": "a.ndjson"}, {"1", "2"}),
        ({"time": "1970-01-01T00:33:20Z"}, {"0", "2"}),
    )
    for number, (start, expected) in enumerate(starts):
        path = incoming.register(name=f"start_{number}", dataset="events", config={"start": start})
        source = incoming.run(path)
        assert (source["last_error"], source["position"]["files"]) == (None, 2)
        assert source["lag"] == {"items": 0, "bytes": 0, "seconds": 0.0}
        ids = {job["id"] for job in incoming.jobs("events")}
        assert len(ids) == number + 1
        read = [row["what"] for row in incoming.rows("events")]
        assert set(read) >= expected
        assert len(read) == 2 * (number + 1)


def test_lag_has_the_age_of_the_oldest_file_that_was_not_read(incoming: Incoming, orders: str) -> None:
    old = time.time() - 3_600
    os.utime(incoming.put("1.ndjson", {"id": 1, "note": "a"}), (old, old))
    incoming.put("2.ndjson", {"id": 2, "note": "b"})
    path = incoming.register()
    incoming.plan(path)
    assert 3_600 <= incoming.found(path)["lag"]["seconds"] < 3_700


def test_position_is_in_the_timeline_entry_of_the_commit(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    path = incoming.register()
    source = incoming.run(path)
    [entry] = incoming.client.get(f"{orders}/timeline").json()["items"]
    assert entry["operation"] == "upsert"
    assert entry["parameters"]["source"] == "in"
    assert entry["parameters"]["position"] == source["position"]
    assert entry["actor"] is None


def test_continuous_source_reads_what_arrives_and_changed_files_again(
    incoming: Incoming, orders: str
) -> None:
    path = incoming.register(mode="continuous", interval_seconds=0.1)
    assert incoming.run(path)["state"] == "active"
    for number in range(3):
        incoming.put(f"{number}.ndjson", {"id": number, "note": "a"})
        job = incoming.client.post(f"{path}/rounds").json()
        incoming.run(path)
        assert incoming.client.get(f"/jobs/{job['id']}").json()["state"] == "succeeded"
    incoming.put("1.ndjson", {"id": 1, "note": "changed"})
    # The same bytes again, with another time.
    os.utime(incoming.folder / "0.ndjson", ns=(1, 1))
    incoming.client.post(f"{path}/rounds")
    incoming.run(path)
    assert notes(incoming.rows()) == {0: "a", 1: "changed", 2: "a"}
    assert incoming.found(path)["lag"] == {"items": 0, "bytes": 0, "seconds": 0.0}
    changed = incoming.client.get(f"{orders}/changes").json()["changes"]
    assert [each["op"] for each in changed].count("+A") == 3


def test_rounds_are_bounded_and_follow_each_other(incoming: Incoming, orders: str) -> None:
    for number in range(5):
        incoming.put(f"{number}.ndjson", {"id": number, "note": "a"})
    source = incoming.run(incoming.register(max_items=2))
    assert (source["state"], source["rounds"]) == ("finished", 3)
    assert [job["result"]["items"] for job in incoming.jobs()] == [2, 2, 1]
    assert len(incoming.rows()) == 5


@pytest.mark.parametrize(
    ("name", "form", "content", "config"),
    [
        ("a.json", "json", b'[{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]', {}),
        ("a.json", "json", b'{"id": 1, "note": "a"}\n{"id": 2, "note": "b"}\n', {}),
        ("a.csv", "csv", b"id,note\n1,a\n2,b\n", {}),
        ("a.parquet", "parquet", _parquet(), {}),
        (
            "a.gz",
            "json",
            gzip.compress(b'[{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]', mtime=0),
            {"gzip": True},
        ),
        ("deep/a.ndjson", "ndjson", b'{"id": 1, "note": "a"}\n{"id": 2, "note": "b"}\n', {"pattern": "a*"}),
    ],
)
def test_files_of_every_format_are_read(
    incoming: Incoming, orders: str, name: str, form: str, content: bytes, config: dict[str, Any]
) -> None:
    incoming.put_bytes(name, content)
    incoming.put_bytes("_hidden", b"not read")
    if "pattern" in config:
        incoming.put_bytes("other", b"not read")
    source = incoming.run(incoming.register(config={"format": form, **config}))
    assert (source["state"], source["last_error"]) == ("finished", None)
    assert notes(incoming.rows()) == {1: "a", 2: "b"}


def test_position_of_files_can_only_be_the_beginning(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    path = incoming.register()
    position = incoming.run(path)["position"]
    refused = incoming.client.patch(path, json={"position": position})
    assert problem(refused, 422, "invalid-source")["errors"][0]["pointer"] == "/position"
    assert incoming.client.get(path).json()["position"] == position
    assert incoming.client.patch(path, json={"position": {}}).status_code == 200


def test_unreadable_file_fails_the_source_until_it_is_resumed(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    bad = incoming.put_bytes("2.ndjson", b'{"id": 2, "no')
    incoming.put("3.ndjson", {"id": 3, "note": "c"})
    path = incoming.register()
    source = incoming.run(path)
    assert source["state"] == "failed"
    assert source["position"] == {}
    assert "file 2.ndjson" in source["last_error"]["detail"]
    assert incoming.rows() == []
    bad.unlink()
    answer = incoming.client.patch(path, json={"state": "active"})
    assert answer.json()["last_error"] is None
    assert incoming.run(path)["state"] == "finished"
    assert notes(incoming.rows()) == {1: "a", 3: "c"}


def test_bad_records_and_unreadable_files_are_left_out_if_the_source_quarantines(
    incoming: Incoming, orders: str
) -> None:
    incoming.put_bytes("1.ndjson", b'{"id": 1, "note": "a"}\n{"id": "x"}\n')
    source = incoming.run(incoming.register(on_error="quarantine"))
    assert source["last_round"]["rows"]["quarantined"] == 1
    assert notes(incoming.rows()) == {1: "a"}
    [record] = incoming.client.get(f"{orders}/quarantine").json()["items"]
    assert record["job_id"] == source["last_round"]["job_id"]
    incoming.client.delete("/sources/in")
    incoming.put_bytes("2.parquet", b"PAR1 nothing of the kind")
    incoming.put_bytes("3.parquet", _parquet())
    config = {"format": "parquet", "pattern": "*.parquet"}
    source = incoming.run(incoming.register(on_error="quarantine", config=config))
    assert source["state"] == "finished"
    job = incoming.client.get(f"/jobs/{source['last_round']['job_id']}").json()
    assert [each["name"] for each in job["result"]["rejected"]] == ["2.parquet"]
    assert notes(incoming.rows()) == {1: "a", 2: "b"}


def test_dataset_is_registered_with_the_columns_of_the_first_files(incoming: Incoming) -> None:
    create = {"record_key": ["id"], "ordering_field": "at"}
    path = incoming.register(dataset="fresh", create=create, mode="continuous")
    source = incoming.run(path)
    assert source["dataset"] == {"id": None, "name": "fresh"}
    problem(incoming.client.post(f"{path}/rounds"), 409, "source-empty")
    incoming.put("1.ndjson", {"id": 1, "at": 5, "tags": ["x"]}, {"id": 1, "at": 4, "tags": ["y"]})
    job = incoming.client.post(f"{path}/rounds")
    assert job.status_code == 202, job.text
    incoming.run(path)
    dataset = incoming.client.get("/datasets/fresh").json()
    assert dataset["record_key"] == ["id"]
    types = {field["name"]: field["type"] for field in dataset["schema"]["fields"]}
    assert types == {"id": "int64", "at": "int64", "tags": "list<string>"}
    assert incoming.rows("fresh") == [{"id": 1, "at": 5, "tags": ["x"]}]


def _events(*rows: tuple[int, int]) -> bytes:
    """Parquet with an id and an hour of each event."""
    times = [datetime(2026, 11, 22, hour, tzinfo=UTC) for _, hour in rows]
    columns = {"id": [number for number, _ in rows], "at": pa.array(times, pa.timestamp("us", tz="UTC"))}
    sink = BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": 2, "x": []}, "the field 'x' has arrays without values only"),
        ({"id": 2, "": 1}, "/rows/0/: "),
    ],
)
def test_fault_of_an_inferred_column_names_the_file_that_has_it(
    incoming: Incoming, row: dict[str, Any], words: str
) -> None:
    incoming.put("1.ndjson", {"id": 1})
    incoming.put("2.ndjson", row)
    incoming.put("3.ndjson", {"id": 3, **row})
    source = incoming.run(incoming.register(dataset="fresh", create={"record_key": ["id"]}))
    assert source["state"] == "failed"
    error = source["last_error"]
    assert error["type"] == "/problems/schema-mismatch"
    assert "2.ndjson" in error["detail"]
    assert words in error["detail"]


def test_first_cells_of_csv_determine_the_types_if_the_source_quarantines(incoming: Incoming) -> None:
    incoming.put_bytes("1.csv", b"id\n" + b"".join(b"%d\n" % number for number in range(1_100)) + b"n/a\n")
    members = {"dataset": "fresh", "create": {}, "config": {"format": "csv"}}
    source = incoming.run(incoming.register(**members, on_error="quarantine"))
    assert (source["state"], source["last_error"]) == ("finished", None)
    assert source["last_round"]["rows"]["quarantined"] == 1
    fields = incoming.client.get("/datasets/fresh").json()["schema"]["fields"]
    assert [field["type"] for field in fields] == ["int64"]


def test_source_declares_the_watermark_of_the_dataset_that_it_registers(incoming: Incoming) -> None:
    incoming.put_bytes("1.parquet", _events((1, 10)))
    watermark = {"field": "at", "delay_seconds": 60, "late": "drop"}
    create = {"record_key": ["id"], "watermark": watermark}
    path = incoming.register(
        dataset="watched", create=create, mode="continuous", config={"format": "parquet"}
    )
    incoming.run(path)
    incoming.put_bytes("2.parquet", _events((2, 9), (3, 11)))
    assert incoming.client.post(f"{path}/rounds").status_code == 202
    source = incoming.run(path)
    dataset = incoming.client.get("/datasets/watched").json()
    assert (dataset["watermark"], dataset["watermark_at"]) == (watermark, "2026-11-22T10:59:00Z")
    job = incoming.client.get(f"/jobs/{source['last_round']['job_id']}").json()
    assert job["result"]["late"] == {"rows": 1, "watermark": "2026-11-22T09:59:00Z"}
    assert [row["id"] for row in incoming.client.get("/datasets/watched/rows").json()["rows"]] == [1, 3]


@pytest.mark.parametrize("registered", ["before the source", "after the source"])
def test_watermark_that_a_registered_dataset_does_not_have_is_refused(
    incoming: Incoming, registered: str
) -> None:
    fields = [{"name": "id", "type": "int64"}, {"name": "at", "type": "timestamp"}]
    new = {"name": "marks", "schema": {"fields": fields}, "watermark": {"field": "at", "delay_seconds": 60}}
    incoming.put("1.ndjson", {"id": 1, "at": "2026-11-22T10:00:00Z"})
    same = incoming.source(dataset="marks", create={"watermark": new["watermark"]})
    other = incoming.source(name="other", dataset="marks", create={"watermark": {"field": "at"}})
    if registered == "before the source":
        incoming.client.post("/datasets", json=new).raise_for_status()
        found = problem(incoming.client.post("/sources", json=other), 422, "invalid-source")
        assert found["errors"][0]["pointer"] == "/create/watermark"
        assert "registered already" in found["detail"]
        # The one that it has is no contradiction, and holds for what the source writes.
        incoming.run(incoming.client.post("/sources", json=same).headers["location"])
        assert incoming.client.get("/datasets/marks").json()["watermark_at"] == "2026-11-22T09:59:00Z"
    else:
        path = incoming.client.post("/sources", json=other).headers["location"]
        incoming.client.post("/datasets", json=new).raise_for_status()
        source = incoming.run(path)
        assert (source["state"], source["last_error"]["type"]) == ("failed", "/problems/invalid-source")
        assert incoming.rows("marks") == []


def test_watermark_of_a_field_that_is_read_as_text_fails_the_source(incoming: Incoming) -> None:
    incoming.put("1.ndjson", {"id": 1, "at": "soon"})
    path = incoming.register(dataset="texts", create={"watermark": {"field": "at"}}, mode="continuous")
    source = incoming.run(path)
    assert source["state"] == "failed"
    assert "watermark" in str(source["last_error"])


def test_texts_that_are_times_may_be_those_of_the_watermark(incoming: Incoming) -> None:
    incoming.put("1.ndjson", {"id": 1, "at": "2026-11-22T12:00:00+02:00"})
    incoming.run(
        incoming.register(dataset="moments", create={"watermark": {"field": "at"}}, mode="continuous")
    )
    dataset = incoming.client.get("/datasets/moments").json()
    assert dataset["watermark_at"] == "2026-11-22T10:00:00Z"


def test_columns_that_the_dataset_lacks_are_added(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "a", "more": 1})
    incoming.put("2.ndjson", {"id": 2, "note": "b", "other": True})
    incoming.run(incoming.register(merge_schema=True))
    assert incoming.rows() == [
        {"id": 1, "note": "a", "more": 1, "other": None},
        {"id": 2, "note": "b", "more": None, "other": True},
    ]


def test_rows_whose_key_is_in_the_table_are_left_out(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "first"})
    path = incoming.register(filter_duplicates=True, mode="continuous")
    incoming.run(path)
    incoming.put("2.ndjson", {"id": 1, "note": "second"}, {"id": 2, "note": "b"})
    incoming.client.post(f"{path}/rounds")
    incoming.run(path)
    assert notes(incoming.rows()) == {1: "first", 2: "b"}


def test_snapshot_replaces_the_table_and_a_round_without_files_does_not(
    incoming: Incoming, orders: str
) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "a"}, {"id": 2, "note": "b"})
    path = incoming.register(operation="snapshot", mode="continuous")
    incoming.run(path)
    incoming.put("2.ndjson", {"id": 2, "note": "c"})
    incoming.client.post(f"{path}/rounds")
    incoming.run(path)
    assert notes(incoming.rows()) == {2: "c"}
    incoming.client.post(f"{path}/rounds")
    incoming.run(path)
    os.utime(incoming.folder / "2.ndjson", ns=(1, 1))
    incoming.client.post(f"{path}/rounds")
    assert incoming.run(path)["position"]["files"] == 3
    assert notes(incoming.rows()) == {2: "c"}


@pytest.mark.parametrize(
    "path", ["file:///etc", "s3://bucket/x", "http://example.org/", "{root}/../own", "{root}x", "{own}/x"]
)
def test_folders_that_the_operator_has_not_named_are_refused(
    incoming: Incoming, orders: str, path: str
) -> None:
    data = incoming.service.settings.data_dir
    own = (data / "own" / new_id()).as_uri()
    text = path.format(root=(data / "incoming").as_uri(), own=own)
    members = problem(
        incoming.client.post("/sources", json=incoming.source(config={"path": text})), 422, "invalid-source"
    )
    assert [each["pointer"] for each in members["errors"]] == ["/config/path"]


def test_tenant_may_read_the_folder_of_its_own_id(
    client: httpx2.Client, service: Service, incoming: Incoming, orders: str
) -> None:
    tenant_id = client.get("/me").json()["tenant"]["id"]
    own = service.settings.data_dir / "own" / tenant_id
    own.mkdir(parents=True)
    (own / "1.ndjson").write_bytes(b'{"id": 1, "note": "own"}')
    incoming.run(incoming.register(config={"path": own.as_uri()}))
    assert notes(incoming.rows()) == {1: "own"}


def test_links_do_not_lead_out_of_the_folder(incoming: Incoming, orders: str, tmp_path: Path) -> None:
    (tmp_path / "secret.ndjson").write_bytes(b'{"id": 1, "note": "secret"}')
    (incoming.folder / "file.ndjson").symlink_to(tmp_path / "secret.ndjson")
    (incoming.folder / "folder").symlink_to(tmp_path)
    source = incoming.run(incoming.register())
    assert (source["state"], source["rounds"]) == ("finished", 0)
    elsewhere = incoming.folder.with_name(f"{incoming.folder.name}-link")
    elsewhere.symlink_to(tmp_path)
    source = incoming.run(incoming.register(name="linked", config={"path": elsewhere.as_uri()}))
    assert source["state"] == "failed"
    assert source["last_error"]["type"] == "/problems/source-failed"
    assert incoming.rows() == []


def test_file_whose_name_is_no_text_is_read_under_an_escaped_one(incoming: Incoming, orders: str) -> None:
    incoming.put("a.ndjson", {"id": 1, "note": "a"})
    for number, name in enumerate((b"caf\xe9.ndjson", b"caf\xe9/\xfc.ndjson"), 2):
        incoming.put(os.fsdecode(name), {"id": number, "note": "no text"})
    source = incoming.run(incoming.register())
    assert (source["state"], source["last_error"]) == ("finished", None)
    assert source["position"] == {"files": 3, "last": r"caf\xe9/\xfc.ndjson"}
    assert sorted(notes(incoming.rows()).values()) == ["a", "no text", "no text"]


def test_missing_folder_is_waited_for(incoming: Incoming, orders: str) -> None:
    incoming.folder.rmdir()
    path = incoming.register()
    source = incoming.run(path)
    assert source["state"] == "active"
    assert source["last_error"]["type"] == "/problems/source-unavailable"
    incoming.folder.mkdir()
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    incoming.client.patch(path, json={"state": "active"})
    assert incoming.run(path)["state"] == "finished"
    assert notes(incoming.rows()) == {1: "a"}
