"""Parts of multi-part uploads that no process will complete. They are in no list of files, but are paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from app.infra.errors import StorageUnavailable
from app.infra.files.s3.address import S3, S3Address, s3_address

_TIMEOUT_SECONDS: Final = 20.0
_ABORTED_MAX: Final = 10_000


class OrphanedParts:
    """The unfinished uploads of an S3 storage."""

    def __init__(self, address: S3Address) -> None:
        self._address = address

    def abort(self, older_than_seconds: float) -> int:
        """Aborts uploads that were begun longer ago, 10,000 at most, which deletes their parts. Returns their number.

        Raises StorageUnavailable, also if the storage has no such request or does not permit it.
        """
        before = datetime.now(UTC) - timedelta(seconds=older_than_seconds)
        try:
            client = self._client()
            old = (upload for upload in self._unfinished(client) if upload["Initiated"] < before)
            return sum(self._abort(client, upload) for upload in islice(old, _ABORTED_MAX))
        except (BotoCoreError, ClientError) as error:
            raise StorageUnavailable(f"unfinished uploads cannot be listed or aborted: {error}") from error

    def _unfinished(self, client: Any) -> Iterator[Mapping[str, Any]]:
        prefix = self._address.prefix
        pages = client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self._address.bucket, Prefix=f"{prefix}/" if prefix else ""
        )
        for page in pages:
            yield from page.get("Uploads", ())

    def _abort(self, client: Any, upload: Mapping[str, Any]) -> int:
        """1, or 0 for an upload that has ended meanwhile: another worker aborts them, too."""
        try:
            client.abort_multipart_upload(
                Bucket=self._address.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchUpload":
                raise
            return 0
        return 1

    def _client(self) -> Any:
        config = Config(
            connect_timeout=_TIMEOUT_SECONDS,
            read_timeout=_TIMEOUT_SECONDS,
            retries={"total_max_attempts": 3},
            s3={"addressing_style": "path"} if self._address.endpoint else None,
        )
        return Session().create_client(
            S3, region_name=self._address.region, endpoint_url=self._address.endpoint or None, config=config
        )


def orphaned_parts(storage_uri: str, environment: Mapping[str, str]) -> OrphanedParts | None:
    """Those of a storage; None for a folder."""
    address = s3_address(storage_uri, environment)
    return None if address is None else OrphanedParts(address)
