"""The command line on a real service: datasets, rows, the feed, versions and jobs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from headwater_client import Dataset, Headwater, Job
from tests.support.command_line import CommandLine, command_line, use_service
from tests.support.service import Service
from tests.support.waiting import until


@pytest.fixture
def command(
    service: Service, api_key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandLine]:
    """Runs commands with the key of a tenant of its own, beside a worker."""
    use_service(monkeypatch, service.url, api_key)
    with service.working():
        yield command_line(capsys)


@pytest.fixture
def written(orders: Dataset, headwater: Headwater, service: Service) -> Dataset:
    """Orders with a correction: three versions, and the changes +A +A, -C +C, +A."""
    with service.working():
        headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], wait=30)
        headwater.write_rows(orders, [{"id": 2, "note": "B"}], wait=30)
        headwater.write_rows(orders, [{"id": 3, "note": "\x1b[31mred\u202e"}], wait=30)
    return orders


def test_files_of_every_format_are_written_and_register_their_dataset(
    command: CommandLine, headwater: Headwater, tmp_path: Path
) -> None:
    table = pa.table({"id": [1, 2], "note": ["a", "b"]})
    stream = io.BytesIO()
    with ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "a.csv").write_text("id,note\n1,a\n2,b\n")
    (tmp_path / "a.ndjson").write_text('{"id": 1, "note": "a"}\n{"id": 2, "note": "b"}\n')
    (tmp_path / "a.json").write_text('[{"id": 1, "note": "a"},\n {"id": 2, "note": "b"}]')
    (tmp_path / "a.arrow").write_bytes(stream.getvalue())
    (tmp_path / "unnamed").write_bytes(stream.getvalue())
    pq.write_table(table, tmp_path / "a.parquet")
    for number, file in enumerate(("a.csv", "a.ndjson", "a.json", "a.arrow", "a.parquet", "unnamed")):
        job = command("write", f"t{number}", tmp_path / file, "--create", "--key", "id").value
        assert (job["state"], job["operation"], job["rows"]["inserted"]) == ("succeeded", "upsert", 2), file
        assert sorted(headwater.rows(f"t{number}"), key=lambda row: row["id"]) == table.to_pylist()
    # Without a key the dataset is append-only, and each write adds its rows.
    command("write", "log", tmp_path / "a.csv", "--create")
    assert command("write", "log", tmp_path / "a.csv").value["operation"] == "insert"
    assert len(list(headwater.rows("log"))) == 4


def test_standard_input_and_repeated_writes_count_once(
    command: CommandLine, orders: Dataset, headwater: Headwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*flags: str) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 7, "note": "x"}\n')))
        return command("write", orders.name, "-", "-o", "table", *flags).out

    assert "orders: 1 inserted, version 1" in write("--idempotency-key", "once")
    assert "orders: 1 inserted, version 1" in write("--idempotency-key", "once")
    assert "orders: 1 unchanged" in write()
    assert "orders: 1 deleted, version" in write("--operation", "delete")
    assert list(headwater.rows(orders)) == []


def test_failed_writes_have_sentences_and_exit_codes(
    command: CommandLine, orders: Dataset, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": "x"}\n')
    refused = command("write", orders.name, rows, fails=1).err
    assert refused.startswith("headwater: ")
    assert "schema-mismatch" in refused
    assert refused.count("/id: expected int64") == 1
    rows.write_text('{"id": 1}\n')
    absent = command("write", "absent", rows, fails=3).err
    assert "not-found" in absent
    assert "--create registers it" in absent
    assert "--create registers it" in command("write", "absent", rows, "--operation", "insert", fails=3).err
    assert "need --create" in command("write", orders.name, rows, "--key", "id", fails=2).err
    assert (
        "absent.csv: there is no such file"
        in command("write", orders.name, tmp_path / "absent.csv", fails=2).err
    )
    assert "cannot be read" in command("write", orders.name, tmp_path, fails=2).err
    assert "no option --bogus" in command("write", orders.name, "--bogus", fails=2).err
    conflict = command("write", orders.name, rows, "--expected-version", "9", fails=6)
    assert "commit-conflict" in conflict.err


@pytest.mark.parametrize(
    ("name", "content", "missing"),
    [
        ("one.ndjson", '{"id": 1, "amount": 2}\n', "note, state"),
        (
            "two.ndjson",
            '{"id": 1, "note": "a", "state": null}\n{"id": 2, "amount": 3, "note": "b"}\n',
            "amount, state",
        ),
        ("one.csv", "id,note\n1,b\n", "amount, state"),
        ("whole.csv", "id,amount,note,state\n1,2,b,new\n", None),
    ],
)
def test_an_upsert_names_the_columns_that_it_has_set_to_null(
    command: CommandLine, tmp_path: Path, name: str, content: str, missing: str | None
) -> None:
    schema = "id:int64,amount:int64,note:string,state:string"
    command("create", "goods", "--schema", schema, "--key", "id")
    rows = tmp_path / name
    (tmp_path / "first.csv").write_text("id,amount,note,state\n1,1,a,old\n2,1,a,old\n")
    assert command("write", "goods", tmp_path / "first.csv").err == ""
    rows.write_text(content)
    noted = command("write", "goods", rows).err
    assert noted == (
        f"Columns missing in the rows became null: {missing}. See headwater write --help.\n"
        if missing
        else ""
    )


def test_partial_rows_keep_the_columns_that_they_lack(
    command: CommandLine, tmp_path: Path, headwater: Headwater
) -> None:
    command("create", "goods", "--schema", "id:int64,note:string", "--key", "id", "--merge-mode", "partial")
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": 1, "note": "a"}\n')
    command("write", "goods", rows)
    rows.write_text('{"id": 1}\n')
    assert command("write", "goods", rows).err == ""
    assert list(headwater.rows("goods")) == [{"id": 1, "note": "a"}]


def test_tables_print_numbers_of_rows_so_that_they_can_be_pasted(
    command: CommandLine, orders: Dataset, headwater: Headwater
) -> None:
    headwater.write_rows(orders, [{"id": 80614, "note": "a"}], wait=30)
    assert command("rows", "orders", "-o", "table").cells[1] == ["80614", "a"]
    assert command("get", "orders", "80614", "-o", "table").cells[0] == ["id", "80614"]


def test_a_compaction_says_how_many_files_there_were(
    command: CommandLine, written: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = command("show", "orders", "-o", "table").out
    assert "base files (" in shown
    assert "deleted rows" in shown
    assert command("compact", "orders", "-o", "table").out == "orders: nothing to compact, version 3\n"
    compact = Headwater.compact

    def rewriting(client: Headwater, *words: Any, **options: Any) -> Job:
        job = compact(client, *words, **options)
        found = {"files_removed": 7, "files_added": 2, "bytes": 2048, "file_groups_left": 1}
        return msgspec.structs.replace(job, result={**(job.result or {}), **found})

    monkeypatch.setattr(Headwater, "compact", rewriting)
    assert command("compact", "orders", "-o", "table").out == (
        "orders: 7 files → 2 (2.0 KiB), 1 file groups left to the next compaction, version 3\n"
    )


def test_columns_are_added_renamed_and_dropped(command: CommandLine, written: Dataset) -> None:
    def names() -> list[str]:
        return [field["name"] for field in command("schema", "orders").items]

    tried = command("schema", "drop", "orders", "note", "--dry-run", "-o", "table").out
    assert tried == "orders would have the columns id:int64\n"
    assert names() == ["id", "note"]
    command("schema", "add", "orders", "price:decimal(9,2),`a b`:string")
    assert names() == ["id", "note", "price", "a b"]
    renamed = command("schema", "rename", "orders", "note", "text", "-o", "table").out
    assert renamed.startswith(
        "orders has, as version 5, the columns id:int64, text:string, price:decimal(9, 2)"
    )
    command("schema", "drop", "orders", "price", "a b")
    assert names() == ["id", "text"]
    assert "the columns price: expected names" in command("schema", "add", "orders", "price", fails=2).err
    command("schema", "rename", "orders", "nothing", "else", fails=1)


def test_bad_records_are_listed_by_state(command: CommandLine, orders: Dataset, tmp_path: Path) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": "x"}\n{"id": 1}\n')
    command("write", "orders", rows, "--on-error", "quarantine")
    assert len(command("quarantine", "orders", "--state", "quarantined").items) == 1
    assert command("quarantine", "orders", "--state", "redriven").items == []


def test_repaired_records_are_redriven_from_a_file(
    command: CommandLine,
    orders: Dataset,
    headwater: Headwater,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, bad = tmp_path / "rows.ndjson", tmp_path / "bad.ndjson"
    rows.write_text('{"id": "x", "note": "a"}\n{"id": "y", "note": "b"}\n{"id": 3, "note": 7}\n')
    command("write", "orders", rows, "--on-error", "quarantine")
    first, second, third = (item for item in command("quarantine", "orders").items)
    # The lines of the list, edited: other members of them do not matter.
    lines = [
        first | {"payload": '{"id": 1, "note": "a"}'},
        {"id": second["id"], "payload": {"id": 2, "note": "b"}},
    ]
    bad.write_text("\n".join(json.dumps(line) for line in lines))
    job = command("quarantine", "redrive", "orders", "--file", bad).value
    assert (job["state"], job["rows"]["inserted"]) == ("succeeded", 2)
    assert sorted(row["id"] for row in headwater.rows(orders)) == [1, 2]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps([{"id": third["id"]}]).encode())))
    line = command("quarantine", "redrive", "orders", "--file", "-", "-o", "table").out
    assert "no row changed, still version 1: 1 quarantined" in line


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"payload": "{}"}', "record 1: Object missing required field `id`"),
        ('{"id": "1-0"}\n{"id": "1-0"}', "record 2: 1-0 is named twice"),
        ('{"id": "1-0", "payload": 3}', "record 1: Expected `str | object | null`"),
        ('{"id": "1-0", "payload": "/w==", "encoding": "base64"}', "remove `encoding`"),
        ("\n", "has no records"),
        (
            "\n".join(f'{{"id": "1-{number}"}}' for number in range(10_001)),
            "up to 10,000 records: split the file",
        ),
    ],
    ids=["no id", "twice", "a number", "bytes", "empty", "many"],
)
def test_faults_of_a_file_of_records_are_named(
    command: CommandLine, tmp_path: Path, content: str, fault: str
) -> None:
    (tmp_path / "bad.ndjson").write_text(content)
    assert fault in command("quarantine", "redrive", "orders", "--file", tmp_path / "bad.ndjson", fails=2).err


def test_a_redrive_needs_a_job_or_a_file(command: CommandLine, tmp_path: Path) -> None:
    for flags in ([], ["01a1fc66-e85f-74fa-b50b-086a80c5ab7c", "--file", tmp_path]):
        assert (
            "expected the id of a job, or --file"
            in command("quarantine", "redrive", "orders", *flags, fails=2).err
        )


def test_a_write_registers_its_dataset_with_a_merge_mode(
    command: CommandLine, headwater: Headwater, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.ndjson"
    how = ("--create", "--key", "id", "--merge-mode", "partial")
    for line in ('{"id": 1, "note": "a", "amount": 2}', '{"id": 1, "note": "b"}'):
        rows.write_text(line)
        assert command("write", "parts", rows, *how).value["state"] == "succeeded"
    assert list(headwater.rows("parts")) == [{"id": 1, "note": "b", "amount": 2}]
    assert (
        "--merge-mode need --create"
        in command("write", "parts", rows, "--merge-mode", "partial", fails=2).err
    )


def test_a_write_says_what_it_waits_for(
    service: Service,
    api_key: str,
    orders: Dataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_service(monkeypatch, service.url, api_key)
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": 1}\n')
    tenant = service.client(api_key).get("/me").json()["tenant"]["id"]

    def postpone() -> bool:
        progress = '{"stage": "queued", "waiting_for": "space"}'
        with service.database.tenant(tenant) as connection:
            return connection.execute(text(f"UPDATE jobs SET progress = '{progress}'")).rowcount == 1

    def run_later() -> None:
        until(postpone, "the accepted job")
        # The command looks each second.
        time.sleep(2.5)
        service.work()

    later = threading.Thread(target=run_later)
    later.start()
    printed = command_line(capsys)("write", "orders", rows)
    later.join()
    assert printed.value["state"] == "succeeded"
    sentence = "waits for space in the storage of the service, and is tried again by itself"
    assert printed.err.count(sentence) == 1
    assert f"headwater jobs cancel {printed.value['id']} ends it" in printed.err


def test_lineage_has_the_columns_on_request(command: CommandLine, written: Dataset, tmp_path: Path) -> None:
    command("views", "create", "notes", "SELECT id, upper(note) AS text FROM orders")
    assert "COLUMNS" not in command("lineage", "orders", "-o", "table").out
    assert "note → text" in command("lineage", "orders", "--columns", "-o", "table").out


def test_rows_have_every_form(command: CommandLine, written: Dataset) -> None:
    expected = [{"id": 1, "note": "a"}, {"id": 2, "note": "B"}, {"id": 3, "note": "\x1b[31mred\u202e"}]
    found = command("rows", "orders")
    assert sorted(found.items, key=lambda row: row["id"]) == expected
    assert sorted(command("rows", "orders", "-o", "json").value, key=lambda row: row["id"]) == expected
    table = command("rows", "orders", "-o", "table", "--where", "id = 3").out
    assert table.splitlines()[1].split() == ["3", "\\x1b[31mred\\u202e"]
    assert command("rows", "orders", "-o", "csv", "--where", "id < 3", "--columns", "note").out.startswith(
        "note\n"
    )
    assert command("rows", "orders", "-o", "csv", "--where", "id > 9").out == "id,note\n"
    assert len(command("rows", "orders", "--limit", 2).items) == 2
    latest = command("rows", "orders", "--order-by", "id:desc", "--limit", 2).items
    assert [row["id"] for row in latest] == [3, 2]
    assert command("rows", "orders", "--version", 1, "--where", "id = 2").items == [{"id": 2, "note": "b"}]
    missing = command("rows", "nowhere", fails=3)
    assert "not-found" in missing.err
    assert missing.out == ""


def test_rows_are_files_of_arrow_and_parquet(service: Service, api_key: str, written: Dataset) -> None:
    for form, read in (
        ("arrow", lambda content: ipc.open_stream(content).read_all()),
        ("parquet", pq.read_table),
    ):
        printed = process(service, api_key, "rows", "orders", "-o", form, "--limit", "2").stdout
        assert read(pa.BufferReader(printed)).num_rows == 2


def test_tables_of_rows_shorten_long_values(
    command: CommandLine, headwater: Headwater, orders: Dataset
) -> None:
    headwater.write_rows(orders, [{"id": 1, "note": "a" * 1_000}], wait=30)
    printed = command("rows", "orders", "-o", "table")
    assert "a" * 1_000 in printed.out
    assert "shortened" not in printed.err
    headwater.write_rows(orders, [{"id": 1, "note": "a" * 2_500}], wait=30)
    printed = command("rows", "orders", "-o", "table")
    assert "a" * 1_000 + "… (2,500 characters)" in printed.out
    assert "Long values are shortened. -o json shows them as a whole." in printed.err
    assert command("rows", "orders", "-o", "json").value == [{"id": 1, "note": "a" * 2_500}]


def test_row_of_a_key_and_its_history(command: CommandLine, written: Dataset) -> None:
    assert command("get", "orders", 2).value == {"id": 2, "note": "B"}
    assert command("get", "orders", 2, "--version", 1, "--columns", "note").value == {"note": "b"}
    assert "row-not-found" in command("get", "orders", 9, fails=3).err
    assert [change["op"] for change in command("get", "orders", 2, "--history").items] == ["+A", "-C", "+C"]


def test_changes_are_printed_from_any_position_to_the_head(command: CommandLine, written: Dataset) -> None:
    def offsets(*flags: object) -> list[int]:
        return [change["offset"] for change in command("tail", "orders", *flags).items]

    assert offsets() == offsets("--since", 0) == offsets("--since", "earliest") == [0, 1, 2, 3, 4]
    assert offsets("--since", 2) == offsets("--since", "v2") == [2, 3, 4]
    assert offsets("--since", "now") == []
    assert offsets("--since", "1h") == offsets("--since", "2020-01-01") == [0, 1, 2, 3, 4]
    assert offsets("--op", "+A") == [0, 1, 4]
    assert offsets("--op", "-C,+C") == [2, 3]
    assert offsets("--where", "id = 2") == [1, 2, 3]
    lines = command("tail", "orders", "-o", "table").out.splitlines()
    assert lines[3].split()[2:] == ["+C", "id=2", "note=B"]
    assert "\x1b" not in lines[4]
    header, *rest = command("tail", "orders", "-o", "csv").out.splitlines()
    assert header == "offset,op,version,system_time,event_time,corrects_offset,id,note"
    assert len(rest) == 5
    refused = command("tail", "orders", "--since", "soon", fails=2).err
    assert "--since soon: expected an offset, earliest, now, snapshot, a version such as v12" in refused
    assert "offset-ahead" in command("tail", "orders", "--since", 99, fails=6).err


def test_versions_are_compared_named_restored_and_taken_back(
    command: CommandLine, written: Dataset, headwater: Headwater
) -> None:
    assert [entry["version"] for entry in command("log", "orders").items] == [3, 2, 1]
    assert command("log", "orders", "--limit", 1, "-o", "table").cells[1][0] == "3"
    assert command("diff", "orders", 1).value["rows"] == {
        "added": 1,
        "removed": 0,
        "changed": 1,
        "unchanged": 1,
    }
    assert "note" in command("diff", "orders", 1, 2, "-o", "table").out
    command("savepoint", "orders", "before", "--version", 1, "--keep-days", 1)
    [named] = command("savepoints", "orders").items
    assert (named["name"], named["version"]) == ("before", 1)
    command("tags", "create", "orders", "q3")
    assert [tag["version"] for tag in command("tags", "orders").items] == [3]
    assert command("undo", "orders").value["state"] == "succeeded"
    assert len(list(headwater.rows("orders"))) == 2
    assert "version" in command("restore", "orders", "before", "-o", "table").out
    assert {row["note"] for row in headwater.rows("orders")} == {"a", "b"}
    assert command("verify", "orders").value["state"] == "succeeded"
    command("tags", "delete", "orders", "q3")
    command("savepoints", "delete", "orders", "before")
    assert command("savepoints", "list", "orders").out == ""


def test_a_feed_that_differs_from_its_table_fails_the_command(
    command: CommandLine, written: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal = command("verify", "orders", "-o", "table").out
    assert equal == "orders: feed and table are equal: 3 rows, 5 changes, version 3\n"
    verify = Headwater.verify

    def differing(client: Headwater, *words: Any, **options: Any) -> Job:
        job = verify(client, *words, **options)
        first = {"kind": "missing", "key": {"id": 2}, "offset": 3}
        found = {"equal": False, "differences": 1, "first_difference": first}
        return msgspec.structs.replace(job, result={**(job.result or {}), **found})

    monkeypatch.setattr(Headwater, "verify", differing)
    printed = command("verify", "orders", fails=1)
    assert "orders: feed and table differ: 1 differences of 3 rows" in printed.err
    assert '"key":{"id":2}' in printed.err
    assert printed.value["result"]["differences"] == 1
    assert command("verify", "orders", "-o", "table", fails=1).out == ""


def test_datasets_are_registered_listed_shown_renamed_and_deleted(
    command: CommandLine, tmp_path: Path
) -> None:
    schema = "id:int64,`a b`:decimal(9,2),tags:list<string>"
    made = command("create", "goods", "--schema", schema, "--key", "id", "--label", "team:sales").value
    assert [field["type"] for field in made["schema"]["fields"]] == ["int64", "decimal(9, 2)", "list<string>"]
    assert made["schema"]["fields"][1]["name"] == "a b"
    (tmp_path / "more.json").write_text(json.dumps({"schema": {"fields": [{"name": "n", "type": "string"}]}}))
    command("create", "more", "--file", tmp_path / "more.json")
    assert [each["name"] for each in command("ls").items] == ["goods", "more"]
    assert [each["name"] for each in command("ls", "--label", "team:sales").items] == ["goods"]
    assert command("ls", "-o", "csv").out.startswith("name,")
    assert [cells[:2] for cells in command("overview", "-o", "table").cells[1:]] == [
        ["goods", "0"],
        ["more", "0"],
    ]
    assert ["rows", "0"] in command("show", "goods", "-o", "table").cells
    assert command("show", "goods").value["name"] == "goods"
    assert "dataset-exists" in command("create", "more", "--file", tmp_path / "more.json", fails=6).err
    assert "expected names and types" in command("create", "bad", "--schema", "id", fails=2).err
    command("rename", "more", "other")
    assert "--confirm must be other" in command("delete", "other", "--confirm", "more", fails=2).err
    command("delete", "other", "--confirm", "other")
    assert [each["name"] for each in command("ls").items] == ["goods"]


def test_jobs_are_listed_awaited_and_shown(command: CommandLine, written: Dataset) -> None:
    listed = command("jobs", "--dataset", "orders", "--state", "succeeded").items
    assert len(listed) == 3
    cells = command("jobs", "-o", "table", "--limit", 1).cells
    assert cells[1][1:4] == ["orders", "write", "upsert"]
    assert command("jobs", "wait", listed[0]["id"]).value == command("jobs", "show", listed[0]["id"]).value
    assert "not-found" in command("jobs", "show", "01a1fc66-e85f-74fa-b50b-086a80c5ab7c", fails=3).err
    command("jobs", "cancel", listed[0]["id"], fails=6)


def test_any_request_is_sent_and_its_response_printed(
    command: CommandLine, orders: Dataset, tmp_path: Path
) -> None:
    assert command("api", "get", "/datasets/orders").value["name"] == "orders"
    described = command(
        "api", "PATCH", "/datasets/orders", "-H", 'If-Match: "0"', "-d", '{"description": "of the shop"}'
    )
    assert described.value["description"] == "of the shop"
    (tmp_path / "rows.csv").write_text("id,note\n1,a\n")
    written = command(
        *("api", "POST", "/datasets/orders/writes?operation=insert", "-d", f"@{tmp_path / 'rows.csv'}"),
        *("-H", "Content-Type: text/csv", "-H", "Prefer: wait=20", "--include"),
    ).out
    assert written.startswith("HTTP/1.1 200 OK\n")
    assert '"committed_version": 1' in written
    assert "not-found" in command("api", "GET", "/nowhere", fails=3).err
    assert "starts with a slash" in command("api", "GET", "datasets", fails=2).err


def process(
    service: Service, api_key: str, *words: str, stdin: bytes = b"", fails: int = 0
) -> subprocess.CompletedProcess[bytes]:
    """A command as a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "headwater_client.cli", *words],
        env={**os.environ, "HEADWATER_URL": service.url, "HEADWATER_API_KEY": api_key, "NO_PROXY": "*"},
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == fails, ran.stderr
    return ran
