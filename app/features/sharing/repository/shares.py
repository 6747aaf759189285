"""Shares and their datasets in Postgres.

Datasets are locked first, then the share, then what belongs to it, as everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.access.errors import NotFound, PreconditionFailed
from app.access.tenants.repository.credential_changes import notify_change
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.catalog.tables import datasets
from app.features.sharing.errors import ShareExists
from app.features.sharing.tables import shared_datasets, shares
from app.features.sharing.values import DeletedRows, NewShare, Share, SharedDataset, folded
from app.infra.db.acts import act_concerns
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page, PageTokens

_COUNT: Final[Select[int]] = select(func.count()).select_from(shares)
_COLUMNS: Final = tuple(
    shares.c[name] for name in ("id", "name", "folded_name", "deleted_rows", "revision", "created_at")
)


class ShareStore:
    """The shares of tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, tenant_id: str, share_id: str, new: NewShare) -> Share:
        """Raises ShareExists, NotFound if a dataset was deleted, QuotaExceeded."""
        with self._database.tenant(tenant_id) as connection:
            _keep_datasets(connection, new)
            act_concerns(share=share_id)
            values = {
                "id": share_id,
                "name": new.name,
                "folded_name": folded(new.name),
                "deleted_rows": new.deleted_rows.value,
            }
            try:
                with connection.begin_nested():
                    connection.execute(insert(shares).values(values))
            except IntegrityError:
                raise _name_taken(new.name) from None
            _add_datasets(connection, share_id, new.tables)
            check_count(connection, "shares", _COUNT)
            return find_share(connection, share_id)

    def get(self, tenant_id: str, reference: str) -> Share:
        """The share of this id or name, in any capitals. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return find_share(connection, reference)

    def list(
        self,
        tenant_id: str,
        *,
        page_size: int,
        page_token: str | None,
        dataset_ids: Collection[str] | None = None,
    ) -> Page:
        """Share items by name; those with one of the datasets, unless None.

        Raises InvalidRequest for a token that is not valid.
        """
        tokens = PageTokens("shares", tenant_id)
        query = select(*_COLUMNS).order_by(shares.c.folded_name).limit(page_size + 1)
        if dataset_ids is not None:
            members = select(shared_datasets.c.share_id)
            query = query.where(
                shares.c.id.in_(members.where(any_of(shared_datasets.c.dataset_id, dataset_ids)))
            )
        if page_token is not None:
            query = query.where(shares.c.folded_name > tokens.position(page_token))
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
            datasets_by_share = _datasets_of(connection, [row.id for row in rows])
        return tokens.page(
            rows,
            page_size,
            lambda row: row.folded_name,
            lambda row: _share_of(row, datasets_by_share[row.id]),
        )

    def change(self, tenant_id: str, share_id: str, new: NewShare, *, revision: int) -> Share:
        """Changes a share that must be at `revision` still. Raises NotFound, PreconditionFailed, ShareExists."""
        with self._database.tenant(tenant_id) as connection:
            _keep_datasets(connection, new)
            before = lock_share(connection, share_id, revision)
            values = {
                "name": new.name,
                "folded_name": folded(new.name),
                "deleted_rows": new.deleted_rows.value,
                "revision": shares.c.revision + 1,
            }
            try:
                with connection.begin_nested():
                    connection.execute(update(shares).where(shares.c.id == before.id).values(values))
            except IntegrityError:
                raise _name_taken(new.name) from None
            connection.execute(delete(shared_datasets).where(shared_datasets.c.share_id == before.id))
            _add_datasets(connection, before.id, new.tables)
            notify_change(connection, tenant_id)
            return find_share(connection, before.id)

    def delete(self, tenant_id: str, share_id: str, *, revision: int | None) -> None:
        """Deletes a share with its recipients, whose tokens end. Raises NotFound, PreconditionFailed."""
        with self._database.tenant(tenant_id) as connection:
            share = lock_share(connection, share_id, revision)
            connection.execute(delete(shares).where(shares.c.id == share.id))
            notify_change(connection, tenant_id)

    def count(self, tenant_id: str) -> int:
        """The shares that count against the quota `shares`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(_COUNT).scalar_one()


class SharedDatasetDeletion:
    """Takes a dataset that is deleted out of all shares. See `DeletionParticipant`."""

    def dataset_deleted(self, connection: Connection, dataset_id: str) -> None:
        """Its recipients see it no longer, and a dataset that gets its name is not shared."""
        share_query = select(shared_datasets.c.share_id).where(shared_datasets.c.dataset_id == dataset_id)
        lock = select(shares.c.id).where(shares.c.id.in_(share_query)).order_by(shares.c.id).with_for_update()
        share_ids = connection.execute(lock).scalars().all()
        if not share_ids:
            return
        connection.execute(delete(shared_datasets).where(shared_datasets.c.dataset_id == dataset_id))
        change = (
            update(shares)
            .where(any_of(shares.c.id, share_ids))
            .values(revision=shares.c.revision + 1)
            .returning(shares.c.tenant_id)
        )
        notify_change(connection, connection.execute(change).scalars().all()[0])


def find_share(connection: Connection, reference: str) -> Share:
    """The share of this id or name, in any capitals. Raises NotFound."""
    row = None
    if "\0" not in reference:
        # A name never has the form of an id.
        this = shares.c.id == reference if is_uuid(reference) else shares.c.folded_name == folded(reference)
        row = connection.execute(select(*_COLUMNS).where(this)).one_or_none()
    if row is None:
        raise share_not_found(reference)
    return _share_of(row, _datasets_of(connection, [row.id])[row.id])


def lock_share(connection: Connection, share_id: str, revision: int | None = None) -> Share:
    """The share, locked. Raises NotFound, PreconditionFailed."""
    connection.execute(select(shares.c.id).where(shares.c.id == share_id).with_for_update())
    share = find_share(connection, share_id)
    if revision is not None and share.revision != revision:
        raise PreconditionFailed(
            f"The share is at revision {share.revision}, not {revision}", revision=share.revision
        )
    return share


def share_not_found(reference: str) -> NotFound:
    """The error for a reference to no share."""
    return NotFound(f"there is no share {reference!r}")


def _keep_datasets(connection: Connection, new: NewShare) -> None:
    """Keeps the datasets of a share from being deleted until the transaction ends. Raises NotFound."""
    if missing := sorted(new.tables.keys() - share_datasets(connection, list(new.tables))):
        raise NotFound(f"there is no dataset {missing[0]!r}")


def _add_datasets(connection: Connection, share_id: str, tables: dict[str, str]) -> None:
    rows = [
        {"share_id": share_id, "dataset_id": dataset_id, "name": name, "folded_name": folded(name)}
        for dataset_id, name in tables.items()
    ]
    if rows:
        connection.execute(insert(shared_datasets), rows)


def _datasets_of(connection: Connection, share_ids: Collection[str]) -> dict[str, list[SharedDataset]]:
    """The datasets of shares by the name of the table, by the id of the share."""
    query = (
        select(
            shared_datasets.c.share_id,
            shared_datasets.c.dataset_id,
            shared_datasets.c.name,
            datasets.c.name.label("dataset"),
        )
        .join(datasets, datasets.c.id == shared_datasets.c.dataset_id)
        .where(any_of(shared_datasets.c.share_id, share_ids))
        .order_by(shared_datasets.c.folded_name)
    )
    datasets_by_share: dict[str, list[SharedDataset]] = defaultdict(list)
    for row in connection.execute(query):
        datasets_by_share[row.share_id].append(
            SharedDataset(id=row.dataset_id, name=row.dataset, table=row.name)
        )
    return datasets_by_share


def _share_of(row: Any, members: Sequence[SharedDataset]) -> Share:
    return Share(
        id=row.id,
        name=row.name,
        deleted_rows=DeletedRows(row.deleted_rows),
        datasets=tuple(members),
        revision=row.revision,
        created_at=row.created_at,
    )


def _name_taken(name: str) -> ShareExists:
    return ShareExists(
        f"there is a share named {name!r} already, in these or other capitals; choose another name", name=name
    )
