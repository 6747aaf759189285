"""Provides handlers with the dataset of the path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.catalog.service import Datasets
from app.catalog.values import Dataset
from app.http.dependencies import Provided, Provider
from app.http.parameters.query_parameters import DatasetReference
from app.http.threads import Threads
from app.tenants.values import Principal


async def found(
    dataset: DatasetReference,
    datasets: Provided[Datasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Dataset:
    """The dataset of the path. Raises NotFound."""
    return await threads.run(datasets.get, principal.tenant_id, dataset)


PROVIDERS: Final[Mapping[str, Provider]] = {"found": found}
