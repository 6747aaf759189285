"""The shares of a tenant: which datasets a key may share, and under which names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.access.errors import scope_missing
from app.access.tenants.values import KeyScope
from app.core.catalog.service import GrantedDatasets
from app.features.sharing.errors import InvalidShare
from app.features.sharing.repository.shares import ShareStore
from app.features.sharing.values import (
    DATASETS_MAX,
    SHARING_NAME,
    DeletedRows,
    NewShare,
    Share,
    folded,
)
from app.infra.identifiers import new_id
from app.kernel.format.errors import FieldError
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page

_NAME_EXPECTED = (
    "expected 1 to 128 letters, digits, `_` and `-`, of which the first is none of `-`, and no dots"
)


class DatasetEntry(NamedTuple):
    """A dataset to share, by its id or name. `alias`: the name of its table; None for that of the dataset."""

    reference: str
    alias: str | None


class ShareRequest(NamedTuple):
    """What a request says of a share; None leaves a member as it is."""

    name: str | None = None
    datasets: Sequence[DatasetEntry] | None = None
    deleted_rows: DeletedRows | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """The shares of tenants. `granted_datasets`: those that the key may manage. It must see whole what it shares."""

    store: ShareStore

    def create(self, granted_datasets: GrantedDatasets, request: ShareRequest) -> Share:
        """Raises InvalidShare, NotFound, Forbidden, RestrictedGrant, ShareExists, QuotaExceeded."""
        name = _checked_name(request.name or "")
        if not request.datasets and granted_datasets.principal.grants is not None:
            detail = "expected a dataset: a key with grants sees no share without one"
            raise InvalidShare.of([FieldError(pointer="/datasets", detail=detail)])
        new = NewShare(
            name=name,
            deleted_rows=request.deleted_rows or DeletedRows.RENDERED,
            tables=_tables(granted_datasets, request.datasets or ()),
        )
        return self.store.add(granted_datasets.principal.tenant_id, new_id(), new)

    def get(self, tenant_id: str, reference: str) -> Share:
        """The share of this id or name. Raises NotFound."""
        return self.store.get(tenant_id, reference)

    def list(
        self,
        granted_datasets: GrantedDatasets,
        *,
        page_size: int,
        page_token: str | None,
        dataset_ids: Collection[str] | None = None,
    ) -> Page:
        """Share items by name: those of which the principal sees all datasets whole.

        `dataset_ids`: those with one of these datasets only.
        """
        principal = granted_datasets.principal
        page = self.store.list(
            principal.tenant_id, page_size=page_size, page_token=page_token, dataset_ids=dataset_ids
        )
        if principal.grants is None:
            return page
        return page.filtered(
            lambda share: (
                bool(share.datasets) and all(principal.sees_whole(each.name) for each in share.datasets)
            )
        )

    def change(
        self, granted_datasets: GrantedDatasets, reference: str, request: ShareRequest, *, revision: int
    ) -> Share:
        """Changes a share that must be at `revision` still. What its recipients see changes at once.

        Raises NotFound, PreconditionFailed, InvalidShare, Forbidden, RestrictedGrant, ShareExists.
        """
        tenant_id = granted_datasets.principal.tenant_id
        before = self.store.get(tenant_id, reference)
        tables = {each.id: each.table for each in before.datasets}
        new = NewShare(
            name=before.name if request.name is None else _checked_name(request.name),
            deleted_rows=request.deleted_rows or before.deleted_rows,
            tables=tables if request.datasets is None else _tables(granted_datasets, request.datasets),
        )
        return self.store.change(tenant_id, before.id, new, revision=revision)

    def delete(self, tenant_id: str, reference: str, *, revision: int | None) -> None:
        """Deletes a share with its recipients, whose tokens end at once. Raises NotFound, PreconditionFailed."""
        self.store.delete(tenant_id, self.store.get(tenant_id, reference).id, revision=revision)


def _checked_name(name: str) -> str:
    """Raises InvalidShare."""
    if SHARING_NAME.fullmatch(name) is None:
        raise InvalidShare.of([FieldError(pointer="/name", detail=_NAME_EXPECTED)])
    if is_uuid(name):
        detail = "expected a name that has not the form of an id"
        raise InvalidShare.of([FieldError(pointer="/name", detail=detail)])
    return name


def _tables(granted_datasets: GrantedDatasets, entries: Sequence[DatasetEntry]) -> dict[str, str]:
    """The names of the tables by the ids of the datasets.

    Raises NotFound, Forbidden and RestrictedGrant for a dataset that the principal does not manage and read whole, and
    InvalidShare.
    """
    principal, tables = granted_datasets.principal, dict[str, str]()
    names: dict[str, int] = {}
    errors = []
    if len(entries) > DATASETS_MAX:
        detail = f"expected at most {DATASETS_MAX} datasets, got {len(entries)}"
        raise InvalidShare.of([FieldError(pointer="/datasets", detail=detail)])
    for number, entry in enumerate(entries):
        dataset = granted_datasets.get(principal.tenant_id, entry.reference)
        name = dataset.definition.name
        if KeyScope.READ not in principal.scopes_on(name):
            raise scope_missing(KeyScope.READ.value)
        table = entry.alias or name
        if SHARING_NAME.fullmatch(table) is None:
            detail = _NAME_EXPECTED
            if entry.alias is None:
                detail = f"{name!r} cannot be a name in Delta Sharing: give the table another one with `as`"
            errors.append(FieldError(pointer=f"/datasets/{number}/as", detail=detail))
        elif (first := names.setdefault(folded(table), number)) != number:
            detail = f"/datasets/{first} has the name {table!r} too, in these or other capitals: choose another one"
            errors.append(FieldError(pointer=f"/datasets/{number}/as", detail=detail))
        elif dataset.id in tables:
            detail = "the dataset is in the share already"
            errors.append(FieldError(pointer=f"/datasets/{number}/name", detail=detail))
        tables.setdefault(dataset.id, table)
    if errors:
        raise InvalidShare.of(errors)
    return tables
