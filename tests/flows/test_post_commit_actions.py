"""What follows commits, by worker processes: tags of batches, partitions that are done, reports to a real metastore."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest
from pyspark.java_gateway import launch_gateway

from tests.support.deployment import Deployment
from tests.support.left_out import left_out
from tests.support.metastore import running_metastore
from tests.support.table import Row, Table
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, left_out("FLOWS", "test-flows")]

MONDAY, TUESDAY = "2026-11-16", "2026-11-17"
VISITS = {
    "name": "visits",
    "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "day", "type": "date"}]},
    "record_key": ["day", "id"],
    "partition_by": ["day"],
    "bucket": {"count": 1},
    "services": {
        "partition_done": {},
        "batch_tags": {"keep": 2},
        "metastore": {"database": "default", "table": "visits", "idle_seconds": 2},
    },
}


@pytest.fixture
def metastore() -> Iterator[str]:
    with TemporaryDirectory(prefix="headwater-tests-") as folder, running_metastore(Path(folder)) as uri:
        yield uri


@pytest.fixture
def reporting(metastore: str) -> Iterator[Deployment]:
    """A deployment that reports to the metastore."""
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        Deployment.running(Path(directory), {"HEADWATER_METASTORE_URI": metastore}) as deployment,
    ):
        yield deployment


@pytest.fixture
def hive(metastore: str) -> Iterator[Any]:
    """A client of the metastore of its own."""
    gateway = launch_gateway()
    names = gateway.jvm.org.apache.hadoop.hive
    settings = names.conf.HiveConf()
    settings.set("hive.metastore.uris", metastore)
    client = names.metastore.HiveMetaStoreClient(settings)
    yield client
    client.close()
    gateway.shutdown()
    gateway.proc.kill()
    gateway.proc.communicate()


def rows(day: str, *numbers: int) -> list[Row]:
    return [{"id": number, "day": day} for number in numbers]


def put(folder: Path, name: str, records: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{name}"
    part.write_text("".join(json.dumps(record) + "\n" for record in records))
    part.rename(folder / name)


def test_batches_are_tagged_partitions_end_and_the_metastore_has_the_rows(
    reporting: Deployment, hive: Any
) -> None:
    with reporting.client() as client:
        answer = client.post("/datasets", json=VISITS)
        assert answer.status_code == 201, answer.text
        visits = Table(deployment=reporting, client=client, id=answer.json()["id"], key=("day", "id"))
        read_once(reporting, client)
        done = [("done", f"day={day}", "ended") for day in (MONDAY, TUESDAY)]
        assert events(visits) == done
        for batch in range(3):
            more = rows(TUESDAY, 100 + batch)
            visits.run_write("upsert", more, writer_id="stream", batch_id=batch)
        head = visits.version
        tags = client.get(f"{visits.path}/tags").json()["items"]
        assert [(tag["name"], tag["version"]) for tag in tags] == [
            (f"batch-{version}", version) for version in (head - 1, head)
        ]
        until(lambda: reported(visits)["version"] == head, "the report", seconds_max=60)
        assert reported(visits)["error"] is None
        found = hive.listPartitions("default", "visits", -1)
        counts = {each.getValues()[0]: int(each.getParameters()["numRows"]) for each in found}
        assert counts == {MONDAY: 3, TUESDAY: 5}
        assert len(visits.sound()) == 8
        until(lambda: ("reopened", f"day={TUESDAY}", None) in events(visits), "the reopened partition")


def read_once(reporting: Deployment, client: httpx2.Client) -> None:
    """Has a source of mode once read three files, one in each round."""
    folder = reporting.incoming / "visits"
    put(folder, "1.ndjson", rows(MONDAY, 1, 2))
    put(folder, "2.ndjson", rows(TUESDAY, 1, 2))
    put(folder, "3.ndjson", rows(MONDAY, 3))
    body = {
        "name": "once",
        "dataset": "visits",
        "kind": "files",
        "config": {"path": folder.as_uri(), "format": "ndjson"},
        "mode": "once",
        "max_items": 1,
        "partition_done": True,
    }
    answer = client.post("/sources", json=body)
    assert answer.status_code == 201, answer.text
    source = answer.headers["location"]
    until(lambda: client.get(source).json()["state"] == "finished", "the source to end", seconds_max=60)
    assert client.get(source).json()["rounds"] == 3


def events(visits: Table) -> list[tuple[str, str, str | None]]:
    found = visits.client.get(f"{visits.path}/partitions/events").json()["events"]
    return [(event["kind"], event["partition"], event["reason"]) for event in found]


def reported(visits: Table) -> Row:
    return visits.client.get(f"{visits.path}/metastore").json()
