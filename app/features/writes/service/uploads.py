"""Uploads: bytes that are stored before the writes that name them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.access.tenants.repository.quotas import QuotaStore
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.values import Dataset, Upload
from app.features.writes.errors import LinksUnavailable
from app.features.writes.values import UploadLink
from app.infra.files.ports import ObjectStorage
from app.infra.files.received_body import BodySpool
from app.infra.files.s3.links import StorageLinks
from app.infra.identifiers import new_id
from app.kernel.format.errors import BodyTooLarge
from app.kernel.format.paths import dataset_prefix, upload_path


@dataclass(frozen=True, kw_only=True, slots=True)
class Uploads:
    """The uploads of datasets, whose bytes come through the API or go to the storage by a link."""

    catalog: CatalogStore
    quotas: QuotaStore
    storage: ObjectStorage
    upload_bytes_max: int

    def check(self, dataset: Dataset) -> None:
        """Called before the body is read. Raises QuotaExceeded if the tenant has stored as much as it may."""
        self.quotas.check_metered(dataset.tenant_id, "storage_bytes")

    def spool(self, dataset: Dataset, upload_id: str) -> BodySpool:
        """Where the chunks of an upload go."""
        path = upload_path(dataset_prefix(dataset.tenant_id, dataset.id), upload_id)
        return BodySpool(self.storage, path, memory_bytes_max=0, bytes_max=self.upload_bytes_max)

    def record(self, dataset: Dataset, upload: Upload) -> None:
        """Makes a finished upload known, so that writes can name it."""
        self.catalog.add_upload(dataset.tenant_id, upload)

    def link(
        self, dataset: Dataset, links: StorageLinks | None, *, size_bytes: int, sha256: str
    ) -> UploadLink:
        """An upload whose bytes go to the storage by themselves.

        Raises LinksUnavailable, BodyTooLarge, QuotaExceeded, StorageUnavailable, NotFound.
        """
        if links is None:
            raise LinksUnavailable(
                "this service gives no links to its storage; send the bytes to POST /datasets/{dataset}/uploads"
            )
        if size_bytes > self.upload_bytes_max:
            most = self.upload_bytes_max
            raise BodyTooLarge(
                f"the upload has {size_bytes} bytes, over the limit of {most}", limit_bytes=most
            )
        self.check(dataset)
        now, upload_id = datetime.now(UTC), new_id()
        upload = Upload(
            id=upload_id,
            dataset_id=dataset.id,
            path=upload_path(dataset_prefix(dataset.tenant_id, dataset.id), upload_id),
            size_bytes=size_bytes,
            checksum=sha256,
            created_at=now,
        )
        url, headers = links.upload(upload.path, size_bytes=size_bytes, sha256=sha256)
        self.record(dataset, upload)
        return UploadLink(
            upload=upload, url=url, headers=headers, expires_at=now + timedelta(seconds=links.seconds)
        )
