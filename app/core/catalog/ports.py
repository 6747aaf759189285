"""What use cases need of the catalogue.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from app.core.catalog.values import Dataset, ReadingExample, SchemaVersion
from app.kernel.format.schema.schema import Schema

ReadingExamples: TypeAlias = Callable[[str, str], Sequence[ReadingExample]]
"""How engines read a dataset, by the address under which clients reach the service, and the name of the dataset."""


class DatasetLookup(Protocol):
    """Registered datasets."""

    def get(self, tenant_id: str, reference: str) -> Dataset:
        """The dataset with this id or name. Raises NotFound."""
        ...

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        """One of the schemas that the dataset had. Raises NotFound."""
        ...

    def later_schemas(self, tenant_id: str, dataset_id: str, schema_id: int) -> Sequence[Schema]:
        """The schemas of the dataset after this one, in their order."""
        ...
