"""Exports through the typed client."""

import json

import pyarrow.parquet as pq
import pytest

from headwater_client import DamagedDownload, Problem
from headwater_client.calls import download as client_download
from tests.support.exports import stored


@pytest.fixture(autouse=True)
def worker(service):
    with service.working():
        yield


def test_export_is_created_awaited_and_downloaded(headwater, orders, tmp_path):
    headwater.write_rows(orders, [{"id": n, "note": f"{n}"} for n in range(50)], wait=30)
    export = headwater.create_export(orders, query="incremental", format="parquet", where="id >= 10")
    run = headwater.wait_for_export(export, seconds=30)
    assert (run.number, run.rows, run.offsets.next_since) == (1, 40, 50)
    assert [field.name for field in run.schema.fields] == ["id", "note"]
    (path,) = headwater.download_export(run, tmp_path / "out")
    assert path.name == run.files[0].name
    assert sorted(pq.read_table(path).column("id").to_pylist()) == list(range(10, 50))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["files"][0]["sha256"] == run.files[0].sha256
    assert list(headwater.exports(orders)) == [headwater.get_export(export)]
    assert (
        list(headwater.exports())
        == list(headwater.exports(orders, state="ended"))
        == [headwater.get_export(export)]
    )
    assert list(headwater.exports(state="paused")) == []
    headwater.delete_export(export)
    assert list(headwater.exports(orders)) == []


def test_export_runs_again_pauses_and_is_scheduled(headwater, orders):
    headwater.write_rows(orders, [{"id": 1, "note": "a"}], wait=30)
    export = headwater.create_export(
        orders, query="changes", format="ndjson", delivery_format="upsert", every_seconds=3600, name="hourly"
    )
    headwater.wait_for_export(export, seconds=30)
    assert headwater.pause_export(export).state == "paused"
    headwater.write_rows(orders, [{"id": 1, "note": "b"}], wait=30)
    run = headwater.run_export(export, idempotency_key="once")
    assert headwater.run_export(export, idempotency_key="once").number == run.number == 2
    assert headwater.wait_for_export(export, run.number, seconds=30).rows == 1
    assert [each.number for each in headwater.export_runs(export)] == [2, 1]
    assert headwater.resume_export(export).state == "active"
    assert headwater.schedule_export(export, 60).schedule.every_seconds == 60
    assert headwater.schedule_export(export, None).state == "ended"
    with pytest.raises(Problem) as refused:
        headwater.schedule_export(export, 60)
    assert refused.value.code == "export-ended"


def test_table_is_exported_and_runs_at_times_of_day(headwater, orders, tmp_path):
    headwater.write_rows(orders, [{"id": n, "note": "x"} for n in range(3)], wait=30)
    headwater.write_rows(orders, [{"id": 1, "note": "y"}], wait=30)
    export = headwater.create_export(orders, query="snapshot", format="parquet", version=1)
    run = headwater.wait_for_export(export, seconds=30)
    assert (run.version, run.rows) == (1, 3)
    (path,) = headwater.download_export(run, tmp_path)
    assert pq.read_table(path).column("note").to_pylist() == ["x", "x", "x"]
    daily = headwater.create_export(
        orders, query="snapshot", format="csv", cron="0 6 * * 1-5", zone="Europe/Berlin"
    )
    assert (daily.schedule.cron, len(daily.next_runs), daily.runs) == ("0 6 * * 1-5", 3, ())
    assert headwater.schedule_export(daily, cron="30 7 * * *").schedule.zone is None


def test_download_is_fetched_in_parts_and_verified(headwater, orders, service, tmp_path, monkeypatch):
    monkeypatch.setattr(client_download, "_PART_BYTES", 7)
    headwater.write_rows(orders, [{"id": n, "note": "x"} for n in range(5)], wait=30)
    export = headwater.create_export(orders, query="changes", format="csv")
    run = headwater.wait_for_export(export, seconds=30)
    (path,) = headwater.download_export(run, tmp_path)
    content = path.read_bytes()
    assert len(content) == run.files[0].size_bytes
    # What is there is left as it is, what is not right is fetched again.
    before = path.stat().st_mtime_ns
    headwater.download_export(run, tmp_path)
    assert path.stat().st_mtime_ns == before
    path.write_bytes(b"#" + content[1:])
    headwater.download_export(run, tmp_path)
    assert path.read_bytes() == content
    path.unlink()
    (folder, name) = next(
        each for each in stored(service, f"/exports/{export.id}") if each[1].endswith(".csv")
    )
    root = service.settings.data_dir / "storage"
    (on_storage,) = root.glob(f"*/*/exports/{export.id}/{folder}/{name}")
    on_storage.write_bytes(b"#" + content[1:])
    with pytest.raises(DamagedDownload):
        headwater.download_export(run, tmp_path)
    assert not path.exists()
