"""A tenant of a real service, whose tables are rendered by the objects of its API process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.core.catalog.values import Dataset
from app.core.timeline.service.plan_files import FilePlanner, FileSelection
from app.core.timeline.service.version_definition import definition_at
from app.features.objects.ports import ObjectContent, ServedTable
from app.features.rendered_files.service.files import RenderedFiles
from app.features.rendered_files.service.tree import RenderedTree
from app.features.rendered_files.values import RenderedFile
from app.infra.identifiers import new_id
from app.infra.runtime.valkey import EmbeddedValkey
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.sql.conditions.row_access import RowAccess
from tests.support.postgres import TestServer
from tests.support.schema_changes import change
from tests.support.service import SCOPES, Service, running_service, settings_for

Row = dict[str, Any]


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        postgres.fresh_database() as name,
    ):
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        settings = settings_for(*urls, Path(directory))
        with running_service(replace(settings, unused_file_seconds=3_600.0)) as running:
            yield running


@dataclass(frozen=True, kw_only=True)
class Renderer:
    """A tenant, and what its readers get."""

    service: Service
    tenant_id: str
    client: httpx2.Client

    @property
    def tree(self) -> RenderedTree:
        """The rendered files of the API process."""
        trees: Any = self.service.api.dependencies["object_trees"]
        tree: RenderedTree = trees["rendered"]
        return tree

    @property
    def files(self) -> RenderedFiles:
        """What renders them."""
        return self.tree.files

    def register(self, name: str, columns: Mapping[str, str], **settings: Any) -> None:
        """Registers a dataset."""
        fields = [{"name": column, "type": kind} for column, kind in columns.items()]
        answer = self.client.post("/datasets", json={"name": name, "schema": {"fields": fields}, **settings})
        assert answer.status_code == 201, answer.text

    def write(self, name: str, rows: Sequence[Row], operation: str = "upsert") -> None:
        """Makes a version."""
        body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}}
        answer = self.client.post(f"/datasets/{name}/writes", json=body)
        assert answer.status_code == 202, answer.text
        self.service.work()
        job = self.client.get(f"/jobs/{answer.json()['id']}").json()
        assert job["state"] == "succeeded", job

    def change(self, name: str, *changes: dict[str, Any]) -> None:
        """Changes the schema."""
        answer = change(self.client, f"/datasets/{name}", *changes)
        assert answer.status_code == 200, answer.text

    def dataset(self, name: str) -> Dataset:
        """The dataset at its head."""
        return self.service.platform.stores.catalog.get(self.tenant_id, name)

    def sources(self, dataset: Dataset, version: int | None = None) -> list[DataFile]:
        """The base files of a version, the head by default."""
        planner = FilePlanner(timeline=self.service.platform.stores.timeline)
        number = dataset.version if version is None else version
        selection = FileSelection(kinds=(FileKind.BASE,))
        scans = planner.scans(dataset, dataset.definition, number, selection)
        return [file for scan in scans for file in scan.files]

    def require(self, name: str, access: RowAccess, version: int | None = None) -> list[RenderedFile]:
        """The rendered files of a version."""
        dataset = self.dataset(name)
        number = dataset.version if version is None else version
        definition = definition_at(self.service.platform.stores.timeline, dataset, number)
        return self.files.require(dataset, definition, access, self.sources(dataset, version))

    def content(self, name: str, access: RowAccess, file: RenderedFile) -> bytes:
        """The bytes of a rendered file, as a client gets them."""
        return read_all(self.found(name, access, file))

    def found(self, name: str, access: RowAccess, file: RenderedFile) -> ObjectContent:
        """A rendered file, by its path."""
        table = ServedTable(dataset=self.dataset(name), variant="v3", access=access)
        return self.tree.find(table, file.path.removeprefix("rendered/"))

    def rows(self, name: str, access: RowAccess, version: int | None = None) -> list[Row]:
        """All rows of the rendered files of a version, read from their bytes; each fact of a file is checked."""
        rows: list[Row] = []
        for file in self.require(name, access, version):
            content = self.content(name, access, file)
            assert len(content) == file.size_bytes
            table = pq.read_table(BytesIO(content))
            assert table.num_rows == file.row_count > 0
            check_statistics(table, file)
            rows += table.to_pylist()
        return rows

    def expected(self, name: str, access: RowAccess, version: int | None = None) -> list[Row]:
        """What `/rows` gives a key with the access at the version."""
        grant = {"datasets": name, "scopes": ["read"], "where": None, "mask": list(access.masked)}
        grants = [{**grant, "where": text} for text in access.where or (None,)]
        plain = [{member: value for member, value in each.items() if value} for each in grants]
        key = self.service.tenants.make_key(self.tenant_id, ("read",), grants=plain).api_key
        rows: list[Row] = []
        parameters: dict[str, Any] = {} if version is None else {"version": version}
        headers = {"Accept": "application/vnd.apache.arrow.stream"}
        with self.service.client(key) as reader:
            while True:
                answer = reader.get(f"/datasets/{name}/rows", params=parameters, headers=headers)
                assert answer.status_code == 200, answer.text
                rows += pa.ipc.open_stream(answer.content).read_all().to_pylist()
                token = answer.headers.get("next-page-token")
                if not token:
                    return rows
                parameters["page_token"] = token


def read_all(content: ObjectContent, piece: int = 1024 * 1024) -> bytes:
    """The bytes of an object, in pieces."""
    ends = range(0, content.size_bytes, piece)
    return b"".join(content.read(start, min(piece, content.size_bytes - start)) for start in ends)


def check_statistics(table: pa.Table, file: RenderedFile) -> None:
    """Null counts are those of the rows that the file has."""
    for field in table.schema:
        number = field.metadata[b"PARQUET:field_id"].decode()
        known = file.statistics.get(number)
        if known is not None and known.null_count is not None:
            assert known.null_count == table.column(field.name).null_count


@pytest.fixture
def renderer(service: Service) -> Iterator[Renderer]:
    tenant_id = service.tenants.add_tenant(f"tenant-{new_id()[-12:]}-x")
    api_key = service.tenants.make_key(tenant_id, SCOPES).api_key
    with service.client(api_key) as client:
        yield Renderer(service=service, tenant_id=tenant_id, client=client)
