"""Provides handlers with the dataset of the path, and with those that the principal may name elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Never, TypeAlias

from app.access.errors import NotFound
from app.access.tenants.values import Principal
from app.core.catalog.service import Datasets, GrantedDatasets
from app.core.catalog.values import Dataset
from app.http.auth import scope_of
from app.http.dependencies import Provided, Provider
from app.http.limits.threads import Threads
from app.http.parameters.query_parameters import DatasetReference
from app.http.request import DATASET_NAME, ApiRequest
from app.infra.sharing.next_flight import NextFlight
from app.kernel.format.identifiers import is_uuid
from app.kernel.sql.conditions.row_access import RowAccess

DatasetLookups: TypeAlias = NextFlight[tuple[str, str], Never, Dataset]
"""The lookups of datasets by tenant and reference, which concurrent requests share."""


def dataset_lookups(threads: Threads, get: Callable[[str, str], Dataset]) -> DatasetLookups:
    """`get` is called in a thread, with a tenant and the id or name of a dataset."""
    return NextFlight(lambda key, _: threads.run_for(key[0], get, *key))


async def path_dataset(
    request: ApiRequest,
    dataset: DatasetReference,
    dataset_lookups: Provided[DatasetLookups],
    principal: Provided[Principal],
) -> Dataset:
    """The dataset of the path, which `RequireGrant` has checked. Raises NotFound."""
    value = await dataset_lookups.join((principal.tenant_id, dataset))
    request.scope["state"][DATASET_NAME] = value.definition.name
    return value


async def existing(
    request: ApiRequest,
    dataset: DatasetReference,
    dataset_lookups: Provided[DatasetLookups],
    principal: Provided[Principal],
) -> Dataset | None:
    """The dataset of the path; None if there is none of this name, where the handler may register it.

    Raises NotFound for an id.
    """
    try:
        return await path_dataset(request, dataset, dataset_lookups, principal)
    except NotFound:
        # A name never has the form of an id.
        if is_uuid(dataset):
            raise
        return None


async def granted_datasets(
    request: ApiRequest, datasets: Provided[Datasets], principal: Provided[Principal]
) -> GrantedDatasets:
    """The datasets with which the principal may do what the scope of the handler names."""
    scope = scope_of(request.route_handler)
    assert scope is not None, "a handler that reaches datasets needs a scope"
    return GrantedDatasets(catalog=datasets.catalog, principal=principal, scope=scope)


async def access(path_dataset: Provided[Dataset], principal: Provided[Principal]) -> RowAccess:
    """What the principal sees of the dataset of the path."""
    return principal.access(path_dataset.definition.name)


PROVIDERS: Final[Mapping[str, Provider]] = {
    "path_dataset": path_dataset,
    "existing": existing,
    "granted_datasets": granted_datasets,
    "access": access,
}
