"""Clients of the files of tables: signed requests by hand, and trees whose bytes a test knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

import httpx2
import pyarrow.fs as pafs
import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from app.access.errors import NotFound
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import Principal
from app.features.objects.compose import table_keys
from app.features.objects.ports import ServedTable
from app.features.objects.values import BUCKET, ObjectEntry, VendedKey
from tests.support.http import TLS
from tests.support.service import Service

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


@dataclass
class KnownContent:
    """An object whose reads are counted. It is in memory, or has to be read."""

    content: bytes
    etag: str = "e1"
    media_type: str = "application/octet-stream"
    reads: list[tuple[int, int]] = field(default_factory=list)
    in_memory: bool = False
    held_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    def read_in_memory(self, start: int, count: int) -> bytes | None:
        return self.content[start : start + count] if self.in_memory else None

    def read(self, start: int, count: int) -> bytes:
        self.reads.append((start, count))
        return self.content[start : start + count]


@dataclass
class KnownTree:
    """A tree with the same objects below each table."""

    segment: str
    contents: dict[str, KnownContent] = field(default_factory=dict)

    def find(self, table: ServedTable, path: str) -> KnownContent:
        if path not in self.contents:
            raise NotFound(f"{table.dataset.id} {table.variant}: there is no {path}")
        return self.contents[path]

    def listing(self, table: ServedTable, prefix: str, after: str, limit: int) -> Sequence[ObjectEntry]:
        paths = sorted(self.contents, key=str.encode)
        rest = [path for path in paths if path.startswith(prefix) and path.encode() > after.encode()]
        return [
            ObjectEntry(path=path, size_bytes=self.contents[path].size_bytes, etag=self.contents[path].etag)
            for path in rest[:limit]
        ]


@dataclass(frozen=True, kw_only=True)
class TableClient:
    """Sends signed requests with a key."""

    url: str
    key: VendedKey
    base: str
    """Of the keys of the table's objects."""

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        secret: str | None = None,
        link: bool = False,
        at: datetime | None = None,
        host: str | None = None,
        body_hash: str | None = None,
        unsigned_headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """`path`: below the bucket, encoded, with its query. `secret`: another one than that of the key."""
        signed = self.signed(
            method, path, headers, secret=secret, link=link, at=at, host=host, body_hash=body_hash
        )
        fields = {**dict(signed.headers.items()), **(unsigned_headers or {})}
        target = f"{self.url}{signed.url.removeprefix(self.url)}"
        with httpx2.Client(trust_env=False, verify=TLS, timeout=30) as client:
            return client.send(client.build_request(method, target, headers=fields))

    def get(self, path: str, **more: Any) -> httpx2.Response:
        """GET of an object of the table, by its path below the table, which is not encoded yet."""
        return self.send("GET", f"/{quote(self.base + path)}", **more)

    def signed(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        secret: str | None = None,
        link: bool = False,
        at: datetime | None = None,
        host: str | None = None,
        body_hash: str | None = None,
    ) -> Any:
        request = AWSRequest(method=method, url=f"{self.url}/{BUCKET}{path}", headers=dict(headers or {}))
        request.headers["Host"] = host or urlsplit(self.url).netloc
        if body_hash is not None:
            request.headers["X-Amz-Content-SHA256"] = body_hash
        credentials = Credentials(
            self.key.access_key_id, secret or self.key.secret_access_key, self.key.session_token
        )
        signer = (auth.S3SigV4QueryAuth if link else auth.S3SigV4Auth)(credentials, "s3", "us-east-1")
        if body_hash is not None:
            signer.payload = lambda _: body_hash
        with signed_at(at):
            signer.add_auth(request)
        return request.prepare()


@contextmanager
def signed_at(at: datetime | None) -> Iterator[None]:
    """Has botocore sign with this time; None for the time of now."""
    with pytest.MonkeyPatch.context() as patch:
        if at is not None:
            patch.setattr(auth, "get_current_datetime", lambda remove_tzinfo=True: at.replace(tzinfo=None))
        yield


def table_client(service: Service, api_key: str, dataset: str, variant: str = "v3") -> TableClient:
    """A client for the files of a table, with a key that the principal of the API key gets."""
    principal = principal_of(service, api_key)
    table = service.platform.stores.catalog.get(principal.tenant_id, dataset)
    key = table_keys(service.platform).issue(principal, table, variant, datetime.now(UTC))
    return TableClient(url=service.url, key=key, base=f"{table.id}/{variant}/")


def principal_of(service: Service, api_key: str) -> Principal:
    """The principal of a live key."""
    principal = CredentialStore(service.database).authenticate(api_key)
    assert principal is not None
    return principal


def file_system(client: TableClient) -> pafs.S3FileSystem:
    """Arrow's client, with the key."""
    parts = urlsplit(client.url)
    return pafs.S3FileSystem(
        access_key=client.key.access_key_id,
        secret_key=client.key.secret_access_key,
        session_token=client.key.session_token,
        endpoint_override=parts.netloc,
        scheme=parts.scheme,
        region="us-east-1",
        request_timeout=20,
        connect_timeout=5,
    )


def error_code(answer: httpx2.Response) -> str:
    """The code of an error."""
    assert answer.headers["content-type"].startswith("application/xml"), answer.text
    document = ET.fromstring(answer.content)
    assert document.tag == "Error"
    assert document.findtext("RequestId") == answer.headers["x-amz-request-id"]
    assert document.findtext("Message")
    return str(document.findtext("Code"))
