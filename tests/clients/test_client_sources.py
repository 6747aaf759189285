"""The client registers sources, and knows when what they read was written."""

from __future__ import annotations

from headwater_client import Dataset, Headwater, NewSource, SourceTable
from tests.support.service import Service


def test_sources_are_registered_run_paused_reset_and_deleted(
    headwater: Headwater, orders: Dataset, service: Service
) -> None:
    folder = service.settings.data_dir / "incoming" / "of-the-client"
    folder.mkdir(parents=True)
    (folder / "1.ndjson").write_text('{"id": 1, "note": "tea"}\n')
    config = {"path": folder.as_uri(), "format": "ndjson"}
    new = NewSource(name="in", dataset="orders", kind="files", config=config, interval_seconds=3600)
    source = headwater.create_source(new)
    assert (source.state, source.position, source.dataset.id) == ("active", {}, orders.id)
    assert headwater.pause_source(source).state == "paused"
    with service.working():
        job = headwater.start_source_round(source, wait=30)
    assert (job.kind, job.committed_version) == ("source_round", 1)
    assert list(headwater.rows(orders)) == [{"id": 1, "note": "tea"}]
    read = headwater.get_source("in")
    assert read.position == {"files": 1, "last": "1.ndjson"}
    assert list(headwater.sources()) == [read]
    limited = headwater.limit_source(source, max_rows=7, interval_seconds=2)
    assert (limited.max_rows, limited.interval_seconds, limited.max_items) == (7, 2, source.max_items)
    assert headwater.reset_source(source).position == {}
    assert headwater.pause_source("in", paused=False).state == "active"
    headwater.delete_source(source)
    made = headwater.create_source(
        NewSource(
            name="in", dataset="fresh", kind="files", config=config, create=SourceTable(record_key=("id",))
        )
    )
    with service.working():
        headwater.start_source_round(made, wait=30)
    assert list(headwater.rows("fresh")) == [{"id": 1, "note": "tea"}]
    headwater.delete_source("in")
    assert list(headwater.sources()) == []
