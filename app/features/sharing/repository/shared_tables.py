"""The tables that a recipient sees, by the ids of datasets, as they are at this moment."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Select, func, or_, select

from app.access.tenants.values import Principal
from app.core.catalog.repository.live_datasets import LiveDatasets, dataset_of
from app.core.catalog.tables import datasets
from app.features.sharing.tables import recipients, shared_datasets, shares
from app.features.sharing.values import DeletedRows, RecipientShare, SharedTable, access_to, folded
from app.infra.db.session import Database
from app.kernel.paging import Page, PageTokens


class SharedTableStore:
    """What recipients see, in Postgres. `live`: how datasets are found."""

    def __init__(self, database: Database, live: LiveDatasets) -> None:
        self._database = database
        self._tables: Final[Select[Any]] = (
            live.query()
            .add_columns(
                shares.c.id.label("share_id"),
                shares.c.name.label("share"),
                shared_datasets.c.name,
                shared_datasets.c.folded_name,
                shares.c.deleted_rows,
                recipients.c.grants,
            )
            .join(shared_datasets, shared_datasets.c.dataset_id == datasets.c.id)
            .join(shares, shares.c.id == shared_datasets.c.share_id)
            .join(recipients, recipients.c.share_id == shares.c.id)
            .where(
                or_(recipients.c.expires_at.is_(None), recipients.c.expires_at > func.clock_timestamp()),
            )
        )

    def share(self, principal: Principal) -> RecipientShare | None:
        """The share of a recipient; None if it was deleted meanwhile."""
        query = (
            select(shares.c.id, shares.c.name)
            .join(recipients, recipients.c.share_id == shares.c.id)
            .where(recipients.c.id == principal.actor)
        )
        with self._database.tenant(principal.tenant_id) as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else RecipientShare(id=row.id, name=row.name)

    def tables(self, principal: Principal, *, page_size: int, page_token: str | None) -> Page:
        """SharedTable items that the recipient sees, by name. Raises InvalidRequest for a token that is not valid."""
        tokens = PageTokens("shared tables", principal.tenant_id, principal.actor)
        query = self._tables.where(recipients.c.id == principal.actor)
        query = query.order_by(shared_datasets.c.folded_name).limit(page_size + 1)
        if page_token is not None:
            query = query.where(shared_datasets.c.folded_name > tokens.position(page_token))
        with self._database.tenant(principal.tenant_id) as connection:
            rows = connection.execute(query).all()
        page = tokens.page(rows, page_size, lambda row: row.folded_name, _table_of)
        return page.filtered(lambda table: table is not None)

    def table(self, principal: Principal, name: str) -> SharedTable | None:
        """The table of this name in the share of the recipient, in any capitals; None if it sees none."""
        query = self._tables.where(
            recipients.c.id == principal.actor, shared_datasets.c.folded_name == folded(name)
        )
        with self._database.tenant(principal.tenant_id) as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _table_of(row)


def _table_of(row: Any) -> SharedTable | None:
    """The table in a row; None if the grants of the recipient leave the dataset out."""
    access = access_to(row.grants, row.id)
    if access is None:
        return None
    return SharedTable(
        share_id=row.share_id,
        share=row.share,
        name=row.name,
        dataset=dataset_of(row),
        access=access,
        deleted_rows=DeletedRows(row.deleted_rows),
    )
