"""Links to objects: signed with a key for the table in their query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from app.features.objects.service.signatures import LinkSigner
from app.features.objects.values import BUCKET, VendedKey
from tests.features.objects.conftest import World
from tests.support.tables_in_s3 import KnownContent, TableClient, error_code

PATH = "country=DE/day=1%2F2 ü/+~'\"#?.parquet"


def signer_of(table: TableClient, at: datetime | None = None, key: VendedKey | None = None) -> LinkSigner:
    return LinkSigner(key or table.key, table.url, at or datetime.now(UTC))


def fetched(url: str, method: str = "GET", **headers: str) -> httpx2.Response:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        return client.request(method, url, headers=headers)


@pytest.fixture
def table(world: World) -> TableClient:
    world.tree.contents[PATH] = KnownContent(b"0123456789")
    return world.table()


def link_of(table: TableClient, path: str = PATH, at: datetime | None = None) -> str:
    return signer_of(table, at).link(f"/{BUCKET}/{table.base}notes/{path}")


def test_link_gives_the_object_its_parts_and_its_size(table: TableClient) -> None:
    link = link_of(table)
    assert parse_qs(urlsplit(link).query)["X-Amz-SignedHeaders"] == ["host"]
    assert fetched(link).content == b"0123456789"
    part = fetched(link, Range="bytes=2-4")
    assert (part.status_code, part.content) == (206, b"234")
    head = fetched(link, "HEAD")
    assert (head.status_code, head.headers["content-length"]) == (200, "10")


@pytest.mark.parametrize(
    "change",
    [
        lambda link: link.replace("X-Amz-Expires=", "X-Amz-Expires=1"),
        lambda link: link.replace("/notes/", "/notes/x"),
        lambda link: link.replace("/share/", "/v3/").replace("/v3/", "/v2/"),
        lambda link: link[:-1] + ("0" if link[-1] != "0" else "1"),
        lambda link: link + "&X-Amz-Security-Token=x",
    ],
)
def test_link_that_was_changed_is_refused(table: TableClient, change) -> None:
    refused = fetched(change(link_of(table)))
    assert (refused.status_code, error_code(refused)) == (403, "SignatureDoesNotMatch")


def test_link_ends_with_its_key(table: TableClient) -> None:
    signer = signer_of(table)
    assert signer.ends_at == table.key.expires_at
    earlier = datetime.now(UTC) - timedelta(hours=3)
    ended = VendedKey(
        access_key_id=table.key.access_key_id,
        secret_access_key=table.key.secret_access_key,
        session_token=None,
        expires_at=earlier + timedelta(hours=1),
    )
    link = signer_of(table, earlier, ended).link(f"/{BUCKET}/{table.base}notes/{PATH}")
    refused = fetched(link)
    assert (refused.status_code, error_code(refused)) == (403, "AccessDenied")


def test_link_lists_nothing(table: TableClient) -> None:
    refused = fetched(signer_of(table).link(f"/{BUCKET}") + "&list-type=2")
    assert (refused.status_code, error_code(refused)) == (403, "SignatureDoesNotMatch")
