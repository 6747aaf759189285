"""What Open Data Fabric's changelog model requests, point by point, under its names."""

import io
import json

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from app.infra.files.storage import open_storage
from tests.support.http import EVENTS, ORDERS

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
FIELDS = [
    {"name": "match", "type": "int64"},
    {"name": "player", "type": "string"},
    {"name": "score", "type": "int64"},
    {"name": "played", "type": "timestamp"},
]
MATCHES = {
    "name": "matches",
    "schema": {"fields": FIELDS},
    "record_key": ["match"],
    "event_time_field": "played",
}


class Stream:
    """A dataset whose writes are committed one by one."""

    def __init__(self, client, service, **registration):
        answer = client.post("/datasets", json=registration)
        assert answer.status_code == 201, answer.text
        self.client, self.service, self.path = client, service, answer.headers["location"]
        self.prefix = f"{{}}/{answer.json()['id']}/changes"

    def write(self, operation, *rows, **options):
        body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}, **options}
        answer = self.client.post(f"{self.path}/writes", json=body)
        assert answer.status_code == 202, answer.text
        self.service.work()
        job = self.client.get(f"/jobs/{answer.json()['id']}").json()
        assert job["state"] == "succeeded", job
        return job

    def changes(self, **parameters):
        answer = self.client.get(f"{self.path}/changes", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["changes"]

    def emitted(self, *columns, **parameters):
        """Ops with some columns of their rows."""
        return [(each["op"], *(each["row"][name] for name in columns)) for each in self.changes(**parameters)]

    def arrow(self, **parameters):
        answer = self.client.get(f"{self.path}/changes", params=parameters, headers=ARROW)
        assert answer.status_code == 200, answer.text
        return ipc.open_stream(answer.content).read_all()

    def stored(self):
        """The changelog files as they lie on storage."""
        storage = open_storage(self.service.settings.storage_uri)
        paths = sorted(path for path, _ in storage.list("") if self.prefix.format("")[1:] in path)
        return {path: storage.open(path).read() for path in paths}


def match(number, player, score, minute=0):
    return {"match": number, "player": player, "score": score, "played": f"2026-11-21T10:{minute:02}:00Z"}


@pytest.fixture
def matches(client, service):
    """Two matches, the score of one corrected, the other retracted."""
    stream = Stream(client, service, **MATCHES)
    stream.write("upsert", match(1, "alice", 10), match(2, "bob", 20, 1))
    stream.write("upsert", match(1, "alice", 15, 2))
    stream.write("delete", {"match": 2})
    return stream


def test_op_is_uint8_and_a_dictionary_encoded_int32_in_parquet(matches):
    assert matches.arrow().schema.field("op").type == pa.uint8()
    assert matches.arrow().column("op").to_pylist() == [0, 0, 2, 3, 1]
    files = matches.stored()
    assert len(files) >= 3
    for content in files.values():
        metadata = pq.read_metadata(io.BytesIO(content))
        [at] = [number for number, name in enumerate(metadata.schema.names) if name == "_hw_op"]
        column = metadata.row_group(0).column(at)
        assert column.physical_type == "INT32"
        kind = json.loads(metadata.schema.column(at).logical_type.to_json())
        assert (kind["Type"], kind["bitWidth"], kind["isSigned"]) == ("Int", 8, False)
        assert "RLE_DICTIONARY" in column.encodings


def test_feed_is_append_only_with_offset_system_time_and_event_time(matches):
    before, files = matches.changes(), matches.stored()
    matches.write("upsert", match(3, "carol", 7, 3))
    assert matches.client.post(f"{matches.path}/compactions").status_code == 202
    matches.service.work()
    after = matches.changes()
    assert after[: len(before)] == before
    assert [each["offset"] for each in after] == list(range(6))
    times = [each["system_time"] for each in after]
    assert times == sorted(times)
    assert [each["event_time"] for each in after] == [each["row"]["played"] for each in after]
    now = matches.stored()
    assert {path: now[path] for path in files} == files


def test_correct_from_directly_precedes_correct_to_with_the_original_values(matches):
    appended = {each["row"]["match"]: each["row"] for each in matches.changes(until=2)}
    _, _, old, new, gone = matches.changes()
    assert (old["op"], new["op"], gone["op"]) == ("-C", "+C", "-R")
    assert old["row"] == appended[1]
    assert new["row"] == match(1, "alice", 15, 2)
    assert gone["row"] == appended[2]
    assert [each["op"] for each in matches.changes(since=2, limit=1)] == ["-C", "+C"]
    assert [each["op"] for each in matches.changes(limit=2)] == ["+A", "+A"]
    assert [each["op"] for each in matches.changes(limit=3)] == ["+A", "+A", "-C", "+C"]


def test_retract_and_upsert_forms_are_subsets_and_pairs_become_single_events(matches):
    assert matches.emitted("match", "score", form="retract", since=2) == [
        ("-R", 1, 10),
        ("+A", 1, 15),
        ("-R", 2, 20),
    ]
    assert matches.emitted("match", "score", form="upsert", since=2) == [("+A", 1, 15), ("-R", 2, 20)]
    update, _ = matches.changes(form="single_event", since=2)
    assert (update["op"], update["before"]["score"], update["row"]["score"]) == ("U", 10, 15)
    created, *_ = matches.changes(form="debezium")
    assert (created["op"], created["before"]) == ("c", None)
    kinds = [each["_change_type"] for each in matches.changes(form="delta", since=2)]
    assert kinds == ["update_preimage", "update_postimage", "delete"]


def test_snapshot_write_derives_appends_corrections_and_retractions(client, service):
    stream = Stream(client, service, **ORDERS)
    stream.write("snapshot", {"id": 1, "note": "a"}, {"id": 2, "note": "b"})
    stream.write("snapshot", {"id": 2, "note": "c"}, {"id": 3, "note": "d"})
    emitted = stream.emitted("id", "note", since=2)
    assert emitted.index(("-C", 2, "b")) + 1 == emitted.index(("+C", 2, "c"))
    assert sorted(emitted) == [("+A", 3, "d"), ("+C", 2, "c"), ("-C", 2, "b"), ("-R", 1, "a")]


def test_keyless_snapshot_write_emits_a_retract_stream(client, service):
    stream = Stream(client, service, **EVENTS)
    stream.write("snapshot", {"what": "a"}, {"what": "a"}, {"what": "b"})
    stream.write("snapshot", {"what": "a"}, {"what": "c"})
    assert sorted(stream.emitted("what", since=3)) == [("+A", "c"), ("-R", "a"), ("-R", "b")]


def test_changelog_write_reproduces_corrections_and_retractions(client, service, matches):
    """The feed of one dataset, sent to another as its changelog, makes the same table and the same feed."""
    other = Stream(client, service, **{**MATCHES, "name": "copy"})
    for version in (1, 2, 3):
        rows = [
            {"op": each["op"], "row": each["row"]} for each in matches.changes() if each["version"] == version
        ]
        other.write("changelog", *rows)
    columns = ("match", "player", "score", "played")
    assert sorted(other.emitted(*columns)) == sorted(matches.emitted(*columns))
    assert client.get(f"{other.path}/rows").json()["rows"] == [match(1, "alice", 15, 2)]


def test_filter_and_projection_keep_order_and_op(matches):
    """Of an update either side will do, and then both are delivered."""
    whole = matches.changes()
    found = matches.changes(where="score >= 15", columns="match,score")
    assert [each["offset"] for each in found] == [
        each["offset"] for each in whole if each["op"] in ("-C", "+C") or each["row"]["score"] >= 15
    ]
    assert [each["op"] for each in found] == [
        each["op"] for each in whole if each["offset"] in {other["offset"] for other in found}
    ]
    assert all(set(each["row"]) == {"match", "score"} for each in found)


def test_corrections_are_linked_to_the_changes_they_correct(matches):
    first, second = sorted(matches.changes(until=2), key=lambda each: each["row"]["match"])
    _, _, old, new, gone = matches.changes()
    assert old["corrects_offset"] == first["offset"]
    assert gone["corrects_offset"] == second["offset"]
    assert (first["corrects_offset"], new["corrects_offset"]) == (None, None)
    found = matches.client.get(
        f"{matches.path}/changes/corrected", params={"first_offset": 0, "last_offset": 2}
    ).json()
    assert [(each["offset"], each["corrected_by"], each["op"]) for each in found["corrections"]] == [
        (first["offset"], old["offset"], "-C"),
        (second["offset"], gone["offset"], "-R"),
    ]


def test_read_as_of_an_earlier_time_marks_rows_corrected_since(matches):
    first = matches.changes(until=1)[0]
    query = {"as_of": first["system_time"].replace("+", "%2B"), "corrected_since": True}
    rows = matches.client.get(f"{matches.path}/rows", params=query).json()["rows"]
    assert {row["match"]: row["_hw_corrected_version"] for row in rows} == {1: 2, 2: 3}


def test_dataset_has_its_own_vocabulary(client, service):
    vocabulary = {"op": "operation", "offset": "nr", "system_time": "stored_at", "event_time": "happened_at"}
    stream = Stream(client, service, **MATCHES, changelog={"vocabulary": vocabulary})
    stream.write("upsert", match(1, "alice", 10))
    names = stream.arrow().column_names
    assert set(vocabulary.values()) < set(names)
    assert not set(vocabulary) & set(names)
    assert client.get(stream.path).json()["changelog"]["vocabulary"] == {
        "version": "version",
        "corrects_offset": "corrects_offset",
        **vocabulary,
    }
