"""The HTTP statuses of the errors of datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.catalog.errors import (
    DatasetExists,
    DatasetInUse,
    DerivedDataset,
    SchemaChanged,
    SchemaInUse,
)
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    DatasetExists: 409,
    DatasetInUse: 409,
    DerivedDataset: 409,
    SchemaChanged: 409,
    SchemaInUse: 409,
}
