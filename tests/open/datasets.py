"""Datasets of a running service that engines read, and their rows as the service says them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq

from tests.open.engines import Address
from tests.support.service import Service

Json = dict[str, Any]
_ARROW: Final = {"Accept": "application/vnd.apache.arrow.stream"}
_NEXT: Final = "headwater-next-page-token"
_numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """A tenant of a service."""

    service: Service
    api_key: str
    client: httpx2.Client

    @classmethod
    def new(cls, service: Service) -> Tenant:
        api_key = service.new_key(f"open-{next(_numbers)}")
        return cls(service=service, api_key=api_key, client=service.client(api_key))

    def dataset(self, name: str, **registration: Any) -> OpenDataset:
        """Registers a dataset."""
        found = answered(self.client.post("/datasets", json={"name": name, **registration}), 201)
        return OpenDataset(tenant=self, name=name, path=found.headers["location"], registration=registration)


@dataclass(kw_only=True)
class OpenDataset:
    """One dataset."""

    tenant: Tenant
    name: str
    path: str
    registration: Json
    tags: list[str] = field(default_factory=list)

    @property
    def client(self) -> httpx2.Client:
        return self.tenant.client

    @property
    def address(self) -> Address:
        return Address(url=self.tenant.service.url, api_key=self.tenant.api_key, table=self.name)

    @property
    def has_logs(self) -> bool:
        """Whether rows may wait for a compaction, until which engines do not read them."""
        postpones = self.registration.get("bucket", {}).get("mode") == "postpone"
        return postpones or self.registration.get("changelog", {}).get("producer", "full") != "full"

    @property
    def version(self) -> int:
        return int(answered(self.client.get(self.path)).json()["version"])

    def write(self, operation: str, rows: Sequence[Json] | None = None, **options: Any) -> Json:
        """The job of a write once it has ended, however."""
        source = {} if rows is None else {"source": {"kind": "rows", "rows": list(rows)}}
        body = {"operation": operation, **source, **options}
        return self._ended(self.client.post(f"{self.path}/writes", json=body))

    def upsert(self, *rows: Json) -> None:
        """An upsert that succeeds."""
        self.succeed("writes", operation="upsert", source={"kind": "rows", "rows": list(rows)})

    def delete(self, *keys: Json) -> None:
        """A delete of keys that succeeds."""
        self.succeed("writes", operation="delete", source={"kind": "rows", "rows": list(keys)})

    def change(self, *changes: Json) -> None:
        """Changes the schema."""
        headers = {"If-Match": self.client.get(self.path).headers["etag"]}
        answered(self.client.patch(self.path, json={"changes": list(changes)}, headers=headers))

    def succeed(self, part: str, /, **request: Any) -> Json:
        """The job of a request to a part of the dataset, such as `compactions`."""
        job = self._ended(self.client.post(f"{self.path}/{part}", json=request))
        assert job["state"] == "succeeded", job
        return job

    def _ended(self, answer: httpx2.Response) -> Json:
        found = answered(answer, 202)
        self.tenant.service.work()
        job: Json = self.client.get(found.headers["location"]).json()
        return job

    def kept_versions(self) -> list[int]:
        """The versions that can be read, without the one before the first commit."""
        found = answered(self.client.get(self.path)).json()
        named = {
            item["version"]
            for part in ("tags", "savepoints")
            for item in answered(self.client.get(f"{self.path}/{part}")).json()["items"]
        }
        later = range(max(1, found["earliest_version"]), found["version"] + 1)
        return sorted((named | set(later)) - {0})

    def rows(
        self,
        version: int | None = None,
        *,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        with_logs: bool = False,
    ) -> pa.Table:
        """The rows of the service's own API: those that engines read, or also those that wait for a compaction."""
        query: Json = {"limit": 50_000}
        query |= {} if version is None else {"version": version}
        query |= {} if where is None else {"where": where}
        query |= {} if columns is None else {"columns": list(columns)}
        query |= {"query_type": "read_optimized"} if self.has_logs and not with_logs else {}
        return pa.concat_tables(self._pages(query))

    def scanned(self, version: int) -> pa.Table:
        """The rows of the parts of a scan, with the columns that it states."""
        query = {"query": "read_optimized"} if self.has_logs else {}
        plan = {"version": version, **query}
        scan = answered(self.client.post(f"{self.path}/scans", json=plan)).json()
        names = [each["name"] for each in scan["schema"]["fields"]]
        found = [self._part(part).select(names) for part in scan["parts"]]
        return pa.concat_tables(found, promote_options="permissive") if found else self.rows(version)[:0]

    def _part(self, part: Json) -> pa.Table:
        content = answered(self.client.get(part["links"]["self"])).content
        if part["format"] == "arrow":
            return pa.ipc.open_stream(content).read_all()
        assert part["size_bytes"] == len(content)
        rows = pq.read_table(io.BytesIO(content))
        assert part["rows"] == rows.num_rows
        return rows

    def _pages(self, query: Json) -> Iterator[pa.Table]:
        token: str | None = ""
        while token is not None:
            more = {"page_token": token} if token else {}
            page = answered(self.client.get(f"{self.path}/rows", params={**query, **more}, headers=_ARROW))
            yield pa.ipc.open_stream(page.content).read_all()
            token = page.headers.get(_NEXT)


def answered(answer: httpx2.Response, status: int = 200) -> httpx2.Response:
    """The answer, which has the status."""
    assert answer.status_code == status, answer.text
    return answer
