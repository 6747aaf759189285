"""What the use cases need of the world. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from app.format.dataset import DatasetDefinition
from app.format.operation import Operation
from app.format.rows.staging import StagedFile


class StagedFiles(Protocol):
    """Writes checked rows as staged input."""

    def write(
        self,
        dataset: DatasetDefinition,
        operation: Operation,
        tables: Iterable[pa.Table],
        path: str,
    ) -> StagedFile | None:
        """Splits the rows by slot and stores them; None if there is no row."""
        ...
