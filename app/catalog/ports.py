"""What the use cases need of the store. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from typing import Protocol

from app.catalog.values import Dataset, SchemaVersion, Upload
from app.format.dataset import DatasetDefinition
from app.paging import Page


class Catalog(Protocol):
    """Registered datasets and uploads."""

    def create(self, tenant_id: str, dataset_id: str, definition: DatasetDefinition) -> Dataset:
        """Raises DatasetExists if a live dataset has the name."""
        ...

    def get(self, tenant_id: str, reference: str) -> Dataset:
        """The dataset with this id or name. Raises NotFound."""
        ...

    def list(self, tenant_id: str, *, page_size: int, page_token: str | None) -> Page:
        """Live datasets by name. Raises InvalidRequest for a token that is not valid."""
        ...

    def delete(self, tenant_id: str, reference: str, *, version: int | None) -> None:
        """Ends the dataset and cancels its jobs; its name is free at once. A view ends with its dataset.

        Raises NotFound, PreconditionFailed, DatasetInUse if views read it.
        """
        ...

    def evolve(
        self,
        tenant_id: str,
        dataset_id: str,
        definition: DatasetDefinition,
        *,
        version: int,
        instant_id: str,
        actor: str | None = None,
    ) -> Dataset:
        """Gives the dataset, which must be at `version` still, another definition; that makes the next version.

        Raises NotFound, PreconditionFailed.
        """
        ...

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        """One of the schemas that the dataset had. Raises NotFound."""
        ...

    def schemas(self, tenant_id: str, dataset_id: str, *, page_size: int, page_token: str | None) -> Page:
        """SchemaVersion items, the latest first. Raises InvalidRequest for a token that is not valid."""
        ...

    def add_upload(self, tenant_id: str, upload: Upload) -> None: ...

    def get_upload(self, tenant_id: str, dataset_id: str, upload_id: str) -> Upload:
        """Raises NotFound."""
        ...
