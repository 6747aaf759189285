"""Links to objects of a storage: where they point, and when there are none."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.infra.errors import StorageUnavailable
from app.infra.files.s3.links import StorageLinks, storage_links

AWS = (
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Those of the environment, and of no file or machine."""
    for name in AWS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret/+=")


def links(uri: str = "s3://bucket/a b/tables", **options: Any) -> StorageLinks | None:
    return storage_links(uri, **{"endpoint": "", "seconds": 300, "environment": {}} | options)


@pytest.mark.parametrize(
    ("uri", "options", "place"),
    [
        ("s3://bucket", {}, "https://bucket.s3.us-east-1.amazonaws.com"),
        (
            "s3://bucket",
            {"environment": {"AWS_REGION": "eu-north-1"}},
            "https://bucket.s3.eu-north-1.amazonaws.com",
        ),
        ("s3://my.bucket", {}, "https://s3.us-east-1.amazonaws.com/my.bucket"),
        ("s3://bucket/a b/tables/", {}, "https://bucket.s3.us-east-1.amazonaws.com/a%20b/tables"),
        (
            "s3://bucket",
            {"environment": {"AWS_ENDPOINT_URL": "http://storage:9000"}},
            "http://storage:9000/bucket",
        ),
        (
            "s3://bucket",
            {
                "endpoint": "https://s3.example.com/",
                "environment": {"AWS_ENDPOINT_URL": "http://storage:9000"},
            },
            "https://s3.example.com/bucket",
        ),
    ],
)
def test_link_points_to_the_object_where_clients_reach_it(
    uri: str, options: dict[str, Any], place: str
) -> None:
    made = links(uri, **options)
    assert made is not None
    url = made.download("t/d/exports/day=1/part 1.csv", name="part 1.csv", media_type="text/csv")
    assert url.startswith(f"{place}/t/d/exports/day%3D1/part%201.csv?")


def test_link_is_for_one_file_and_a_short_time_and_has_no_secret() -> None:
    made = links(seconds=60)
    assert made is not None
    url = made.download("t/d/reads/1", name="rows.csv", media_type="text/csv")
    query = {name: value for name, [value] in parse_qs(urlsplit(url).query).items()}
    assert query["X-Amz-Expires"] == "60"
    assert query["response-content-disposition"] == 'attachment; filename="rows.csv"'
    assert query["response-content-type"] == "text/csv"
    assert query["X-Amz-Credential"].startswith("key-id/")
    assert "secret" not in url
    other = made.download("t/d/reads/2", name="rows.csv", media_type="text/csv")
    signature = parse_qs(urlsplit(other).query)["X-Amz-Signature"]
    assert [query["X-Amz-Signature"]] != signature


def test_link_has_the_token_of_temporary_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    made = links()
    assert made is not None
    url = made.download("t/d/reads/1", name="rows.csv", media_type="text/csv")
    assert parse_qs(urlsplit(url).query)["X-Amz-Security-Token"] == ["token"]


def test_storage_without_credentials_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    made = links()
    assert made is not None
    with pytest.raises(StorageUnavailable, match="no credentials"):
        made.download("t/d/reads/1", name="rows.csv", media_type="text/csv")


def test_link_to_upload_is_for_these_bytes() -> None:
    made = links(seconds=60)
    assert made is not None
    url, headers = made.upload("t/d/uploads/a b", size_bytes=7, sha256="ab" * 32)
    assert headers["Content-Length"] == "7"
    assert base64.b64decode(headers["x-amz-checksum-sha256"]) == bytes.fromhex("ab" * 32)
    parts = urlsplit(url)
    query = {name: value for name, [value] in parse_qs(parts.query).items()}
    assert (parts.path, query["X-Amz-Expires"]) == ("/a%20b/tables/t/d/uploads/a%20b", "60")
    # What is signed cannot be changed.
    assert query["X-Amz-SignedHeaders"] == "content-length;host;x-amz-checksum-sha256"
    others = [
        made.upload("t/d/uploads/a b", size_bytes=size, sha256=digest * 32)[0]
        for size, digest in [(8, "ab"), (7, "cd")]
    ]
    signatures = {parse_qs(urlsplit(each).query)["X-Amz-Signature"][0] for each in [url, *others]}
    assert len(signatures) == 3


def test_folders_have_no_links_and_0_seconds_turn_them_off() -> None:
    assert links("file:///srv/storage") is None
    assert links(seconds=0) is None
