"""Tables behind a proxy that has another name for the service than its clients, who sign the public one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import httpx2
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from app.infra.identifiers import new_id
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http_proxy import HostProxy, host_proxy
from tests.support.postgres import TestServer
from tests.support.service import SCOPES, Service, running_service, settings_for
from tests.support.tables_in_s3 import TableClient, error_code, table_client

PARTED = {
    "name": "parted",
    "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "place", "type": "string"}]},
    "partition_by": ["place"],
}
PLACES = ("DE", "a/b", "ü x", "50%=1")
TABLE = "/iceberg/v1/v3/namespaces/headwater/tables/parted"
PUBLIC = pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "api.internal"},
        {"Host": "api.internal:8080", "X-Forwarded-Host": "elsewhere.example.com"},
        {
            "Host": "api.internal",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "192.0.2.1",
            "X-Forwarded-Prefix": "/data",
            "X-Original-URI": "/data/x",
            "Forwarded": "for=192.0.2.1;host=elsewhere.example.com;proto=https",
        },
    ],
    ids=["unchanged", "host", "forwarded host", "all"],
)


@pytest.fixture(scope="module")
def proxy() -> Iterator[HostProxy]:
    with host_proxy() as running:
        yield running


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey, proxy: HostProxy) -> Iterator[Service]:
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        postgres.fresh_database() as name,
    ):
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        settings = settings_for(*urls, Path(directory), public_url=proxy.url)
        with running_service(settings) as running:
            proxy.target = running.url
            yield running


@pytest.fixture(scope="module")
def api_key(service: Service) -> str:
    """The key of a tenant that has a table."""
    api_key = service.new_key(f"proxy-{new_id()}", SCOPES)
    with service.client(api_key) as client:
        assert client.post("/datasets", json=PARTED).status_code == 201
        rows = [{"id": number, "place": place} for number, place in enumerate(PLACES)]
        body = {"operation": "insert", "source": {"kind": "rows", "rows": rows}}
        assert client.post("/datasets/parted/writes", json=body).status_code == 202
    service.work()
    return api_key


def loaded(proxy: HostProxy, api_key: str) -> dict[str, str]:
    """The settings that a client gets with the table through the proxy."""
    with httpx2.Client(base_url=proxy.url, trust_env=False) as client:
        answer = client.get(TABLE, headers={"Authorization": f"Bearer {api_key}"})
        assert answer.status_code == 200, answer.text
        config: dict[str, str] = answer.json()["config"]
        return config | {"location": answer.json()["metadata"]["location"]}


@PUBLIC
def test_table_is_read_by_the_public_address(
    service: Service, proxy: HostProxy, api_key: str, headers: dict[str, str]
) -> None:
    proxy.headers, proxy.paths[:] = headers, []
    config = loaded(proxy, api_key)
    assert config["s3.endpoint"] == f"{proxy.url}/"
    files = pafs.S3FileSystem(
        access_key=config["s3.access-key-id"],
        secret_key=config["s3.secret-access-key"],
        session_token=config["s3.session-token"],
        endpoint_override=urlsplit(config["s3.endpoint"]).netloc,
        scheme="http",
        region=config["s3.region"],
    )
    base = config["location"].removeprefix("s3://")
    infos = files.get_file_info(pafs.FileSelector(f"{base}/data", recursive=True))
    names = [each.path for each in infos if each.is_file]
    assert len(names) == len(PLACES)
    rows = [
        row
        for name in names
        for row in pq.read_table(files.open_input_file(name), partitioning=None).to_pylist()
    ]
    assert sorted(row["place"] for row in rows) == sorted(PLACES)
    assert any(path.startswith("/hw-tables/") for path in proxy.paths)


@PUBLIC
@pytest.mark.parametrize("link", [False, True])
def test_host_that_a_client_signs_is_the_public_one_or_that_of_the_request(
    service: Service, proxy: HostProxy, api_key: str, headers: dict[str, str], *, link: bool
) -> None:
    proxy.headers = headers
    own = table_client(service, api_key, "parted")
    below = "/?location"
    through = TableClient(url=proxy.url, key=own.key, base=own.base)
    assert through.send("GET", below, link=link).status_code == 200
    other = through.send("GET", below, link=link, host="elsewhere.example.com")
    if "Host" in headers:
        assert (other.status_code, error_code(other)) == (403, "SignatureDoesNotMatch")
    else:
        # The name in the request is the one that was signed.
        assert other.status_code == 200
    # Without the proxy.
    assert own.send("GET", below, link=link).status_code == 200
