"""A table as the catalogue gives it, and requests for its objects that are signed with its key."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

import fastavro
import httpx2
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.open.datasets import answered
from tests.open.engines import Address
from tests.support.http import TLS

Json = dict[str, Any]
_REGION: Final = "us-east-1"
_EMPTY: Final = sha256(b"").hexdigest()
_XML: Final = {"s3": "http://s3.amazonaws.com/doc/2006-03-01/"}
_DELEGATION: Final = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@dataclass(frozen=True, kw_only=True)
class VendedTable:
    """A loaded table."""

    address: Address
    warehouse: str
    document: Json
    client: httpx2.Client

    @classmethod
    def loaded(cls, client: httpx2.Client, address: Address, warehouse: str = "v3") -> VendedTable:
        """The table as it is now. `client`: of the tenant's API."""
        document = answered(client.get(path_of(address.table, warehouse), headers=_DELEGATION)).json()
        return cls(address=address, warehouse=warehouse, document=document, client=client)

    @property
    def location(self) -> str:
        """The address of the table, which begins with `s3://`."""
        return str(self.document["metadata"]["location"])

    @property
    def config(self) -> dict[str, str]:
        """The properties that clients read objects with."""
        [vended] = self.document.get("storage-credentials") or [{"config": {}}]
        return {**self.document["config"], **vended["config"]}

    def object(
        self, location: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, **key: str
    ) -> httpx2.Response:
        """The answer to a request for an object. `key`: properties in place of those of the table."""
        path = quote(urlsplit(location).netloc + urlsplit(location).path, safe="/-_.~")
        return self.signed(path, method=method, headers=headers, **key)

    def signed(
        self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, **key: str
    ) -> httpx2.Response:
        """The answer to a signed request of a path that is encoded already, with its query."""
        config = {**self.config, **{f"s3.{name.replace('_', '-')}": value for name, value in key.items()}}
        url = config["s3.endpoint"] + path
        request = AWSRequest(method, url, headers={**(headers or {}), "X-Amz-Content-SHA256": _EMPTY})
        credentials = Credentials(
            config["s3.access-key-id"], config["s3.secret-access-key"], config["s3.session-token"]
        )
        S3SigV4Auth(credentials, "s3", _REGION).add_auth(request)
        with httpx2.Client(trust_env=False, verify=TLS, timeout=60) as client:
            return client.request(method, url, headers=dict(request.headers.items()))

    def content(self, location: str) -> bytes:
        """The bytes of an object."""
        return answered(self.object(location)).content

    def listing(self) -> Iterator[str]:
        """The locations of all objects of the table."""
        bucket, _, prefix = self.location.removeprefix("s3://").partition("/")
        token = ""
        while True:
            query = f"{bucket}?list-type=2&prefix={quote(prefix + '/', safe='')}"
            answer = answered(
                self.signed(query + (f"&continuation-token={quote(token, safe='')}" if token else ""))
            )
            page = ET.fromstring(answer.content)
            yield from (f"s3://{bucket}/{each.text}" for each in page.findall("s3:Contents/s3:Key", _XML))
            token = page.findtext("s3:NextContinuationToken", "", _XML)
            if not token:
                return

    def objects(self) -> set[str]:
        """The locations of all objects that the table, its snapshots and its manifests name."""
        found = {str(self.document["metadata-location"])}
        for snapshot in self.snapshots():
            manifests = records(self.content(snapshot["manifest-list"]))
            found |= {snapshot["manifest-list"], *(each["manifest_path"] for each in manifests)}
            found |= {entry["data_file"]["file_path"] for entry in self.entries(snapshot)}
        return found

    def snapshots(self) -> list[Json]:
        """The snapshots, the oldest first."""
        found: list[Json] = self.document["metadata"]["snapshots"]
        return found

    def entries(self, snapshot: Json) -> Iterator[Json]:
        """The entries of the manifests of a snapshot."""
        for manifest in records(self.content(snapshot["manifest-list"])):
            yield from records(self.content(manifest["manifest_path"]))


def path_of(table: str, warehouse: str = "v3") -> str:
    """The path of a table in the catalogue."""
    return f"/iceberg/v1/{warehouse}/namespaces/headwater/tables/{quote(table, safe='')}"


def records(content: bytes) -> list[Json]:
    """The records of an Avro file."""
    return list(fastavro.reader(io.BytesIO(content)))
