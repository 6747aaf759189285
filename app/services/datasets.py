"""Registering datasets and finding them again."""

from __future__ import annotations

from dataclasses import dataclass

from app.lake.define import define_dataset
from app.lake.identifiers import new_id
from app.lake.new_dataset import NewDataset
from app.services.model import Dataset, Page
from app.services.ports import Catalog


@dataclass(frozen=True, kw_only=True, slots=True)
class Datasets:
    """The datasets of a tenant."""

    catalog: Catalog

    def register(self, tenant_id: str, new: NewDataset) -> Dataset:
        """Raises InvalidDataset, DatasetExists."""
        return self.catalog.create(tenant_id, new_id(), define_dataset(new))

    def get(self, tenant_id: str, reference: str) -> Dataset:
        """`reference` is an id or a name. Raises NotFound."""
        return self.catalog.get(tenant_id, reference)

    def list(self, tenant_id: str, *, page_size: int, page_token: str | None) -> Page:
        """Datasets by name."""
        return self.catalog.list(tenant_id, page_size=page_size, page_token=page_token)

    def delete(self, tenant_id: str, reference: str, *, version: int | None) -> None:
        """Ends a dataset; `version`, if given, must be its version still. Raises NotFound, PreconditionFailed."""
        self.catalog.delete(tenant_id, reference, version=version)
