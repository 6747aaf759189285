"""The tables that a recipient sees."""

from __future__ import annotations

from dataclasses import dataclass

from app.access.errors import NotFound
from app.access.tenants.values import ActorKind, Principal
from app.features.sharing.repository.shared_tables import SharedTableStore
from app.features.sharing.values import SHARING_NAME, RecipientShare, SharedTable, folded
from app.kernel.format.errors import GrantNotApplicable
from app.kernel.paging import Page
from app.kernel.sql.conditions.bound_access import bind_access


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedTables:
    """The share of a recipient, and its tables. A recipient has one share, and other shares do not exist for it."""

    store: SharedTableStore

    def share(self, principal: Principal) -> RecipientShare:
        """The share of the recipient. Raises NotFound."""
        own_share = self.store.share(principal) if principal.kind is ActorKind.RECIPIENT else None
        if own_share is None:
            raise NotFound("there is no share for this token")
        return own_share

    def find_share(self, principal: Principal, share: str) -> RecipientShare:
        """The share of this name, in any capitals. Raises NotFound."""
        own_share = self.share(principal)
        if folded(own_share.name) != folded(share):
            raise NotFound(f"there is no share {share!r} for this token")
        return own_share

    def list(self, principal: Principal, *, page_size: int, page_token: str | None) -> Page:
        """SharedTable items of the share of the recipient, by name, without those that its grants do not fit.

        A page may have fewer items than `page_size`.

        Raises NotFound, InvalidRequest for a token that is not valid.
        """
        self.share(principal)
        return self.store.tables(principal, page_size=page_size, page_token=page_token).filtered(_fits)

    def find(self, principal: Principal, share: str, table: str) -> SharedTable:
        """The table of this name in the share of this name, both in any capitals. Raises NotFound."""
        shared_table = None
        if principal.kind is ActorKind.RECIPIENT and SHARING_NAME.fullmatch(table):
            shared_table = self.store.table(principal, table)
        if shared_table is None or folded(shared_table.share) != folded(share):
            raise NotFound(f"there is no table {share}.default.{table} for this token")
        return shared_table


def _fits(table: SharedTable) -> bool:
    """Whether the recipient can read the latest version. A change of the schema may have paused it."""
    schema = table.dataset.definition.schema
    try:
        bind_access(table.access, schema, schema)
    except GrantNotApplicable:
        return False
    return True
