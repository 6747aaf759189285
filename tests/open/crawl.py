"""Everything that a reader can get of a dataset: by each interface, what it names, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx2

from tests.open.datasets import Json, OpenDataset, answered
from tests.open.facade import VendedTable, path_of, records
from tests.open.grants import NarrowDataset, SharedDataset

Served = Iterator[tuple[str, httpx2.Response]]
"""What was requested, and the answer."""
_WAREHOUSES: Final = ("v3", "v2")
_FORMATS: Final = {
    "parquet": "responseformat=parquet",
    "delta": "responseformat=delta;readerfeatures=deletionvectors,columnmapping,timestampntz",
}


def by_catalogue(dataset: OpenDataset) -> Served:
    """The documents and files of Iceberg, by manifests, by plans and by listings."""
    client = dataset.client
    for warehouse in _WAREHOUSES:
        for path in ("", "/tables"):
            yield path, client.get(f"/iceberg/v1/{warehouse}/namespaces/headwater{path}")
        table = path_of(dataset.name, warehouse)
        for snapshots in ("all", "refs"):
            yield table, client.get(table, params={"snapshots": snapshots})
        yield from _objects(VendedTable.loaded(client, dataset.address, warehouse), dataset, warehouse)


def _objects(table: VendedTable, dataset: OpenDataset, warehouse: str) -> Served:
    def fetched(place: str) -> tuple[str, httpx2.Response]:
        return place, table.object(place)

    yield fetched(str(table.document["metadata-location"]))
    files: set[str] = set()
    for snapshot in table.snapshots():
        place, answer = fetched(snapshot["manifest-list"])
        yield place, answer
        for manifest in records(answered(answer).content):
            place, answer = fetched(manifest["manifest_path"])
            yield place, answer
            files |= {entry["data_file"]["file_path"] for entry in records(answered(answer).content)}
        yield from _plans(dataset, warehouse, snapshot["snapshot-id"], files)
    files |= set(table.listing())
    for place in sorted(files):
        yield fetched(place)
        yield place, table.object(place, method="HEAD")
    bucket, _, prefix = table.location.removeprefix("s3://").partition("/")
    yield "listing", table.signed(f"{bucket}?list-type=2&prefix={quote(prefix + '/', safe='')}")


def _plans(dataset: OpenDataset, warehouse: str, version: int, files: set[str]) -> Served:
    """Plans of all rows, and of those that conditions select; their files are added to the others."""
    path = f"{path_of(dataset.name, warehouse)}/plan"
    for condition in ({}, *_conditions()):
        answer = dataset.client.post(path, json={"snapshot-id": version, **condition})
        yield f"{path} {condition}", answer
        if answer.status_code == 200:
            tasks = answer.json().get("file-scan-tasks", ())
            files |= {task["data-file"]["file-path"] for task in tasks}


def _conditions() -> Iterator[Json]:
    for column, value in (("level", 3), ("email", "Q"), ("id", 0), ("note", "Q7")):
        yield {"filter": {"type": "gt", "term": column, "value": value}}


def by_scans(dataset: OpenDataset) -> Served:
    """The parts of scans of every version."""
    for version in dataset.kept_versions():
        for query in ("snapshot", "read_optimized"):
            place = f"{dataset.path}/scans {version}"
            answer = dataset.client.post(f"{dataset.path}/scans", json={"version": version, "query": query})
            yield place, answer
            for part in answered(answer).json()["parts"]:
                yield place, dataset.client.get(part["links"]["self"])
    for partitions in (["*"], ["region=*"]):
        yield (
            "scan of partitions",
            dataset.client.post(f"{dataset.path}/scans", json={"partitions": partitions}),
        )


def by_sharing(dataset: SharedDataset) -> Served:
    """The documents and files of Delta Sharing, in both formats, with all changes."""
    share, schema, name = dataset.table.split(".")
    table = f"/shares/{share}/schemas/{schema}/tables/{name}"
    with dataset.bearer() as client:
        for path in (
            "/shares", f"/shares/{share}", f"/shares/{share}/schemas", f"/shares/{share}/schemas/{schema}/tables",
            f"/shares/{share}/all-tables", f"{table}/version", f"/shares/{share}/schemas/{schema}/tables/other",
        ):  # fmt: skip
            yield path, client.get(path)
        for capabilities in _FORMATS.values():
            headers = {"delta-sharing-capabilities": capabilities}
            yield table, client.get(f"{table}/metadata", headers=headers)
            for query in _queries(dataset.kept_versions()):
                yield from _files(
                    f"{table} {query}", client.post(f"{table}/query", json=query, headers=headers)
                )
            changes = {"startingVersion": 0, "endingVersion": dataset.version}
            yield from _files("changes", client.get(f"{table}/changes", params=changes, headers=headers))


def _queries(versions: Iterable[int]) -> Iterator[Json]:
    for version in versions:
        yield {"version": version}
    yield {"version": 10**9}
    yield {"limitHint": 1}
    for column in ("level", "email"):
        comparison = {
            "op": "greaterThan",
            "children": [
                {"op": "column", "name": column, "valueType": "string"},
                {"op": "literal", "value": "1", "valueType": "string"},
            ],
        }
        yield {"jsonPredicateHints": json.dumps(comparison)}
        yield {"predicateHints": [f"{column} > 1"]}


def _files(place: str, answer: httpx2.Response) -> Served:
    """The answer, and the files that its links lead to."""
    yield place, answer
    if answer.status_code != 200:
        return
    with httpx2.Client(trust_env=False, timeout=60) as client:
        for line in answer.text.splitlines():
            for link in _links(json.loads(line)):
                yield link, client.get(link)


def _links(document: Any) -> Iterator[str]:
    if isinstance(document, Mapping):
        for member in document.values():
            yield from _links(member)
    elif isinstance(document, list):
        for member in document:
            yield from _links(member)
    elif isinstance(document, str) and document.startswith("http"):
        yield document


def of_others(whole: OpenDataset, narrow: NarrowDataset) -> Served:
    """What is refused: the names of a reader that sees everything, with the keys of one that does not."""
    for warehouse in _WAREHOUSES:
        everything = VendedTable.loaded(whole.client, whole.address, warehouse)
        table = VendedTable.loaded(narrow.client, narrow.address, warehouse)
        for place in sorted(everything.objects() | set(everything.listing())):
            yield f"{place} of others", table.object(place)
    plan = answered(whole.client.post(f"{whole.path}/scans", json={})).json()
    for part in plan["parts"]:
        link = part["links"]["self"]
        yield f"{link.rpartition('/')[2]} of others", narrow.client.get(link)
