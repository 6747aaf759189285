"""Claims of rows by workers: due, owner, epoch, until; tenants in turn. All time is the database's clock.

A row is due at a time. A worker claims it with one conditional statement: it is the owner then, under a new epoch,
until its lease ends, when the row is due again. What the owner stores later is conditional on the epoch: so the row of
a worker that has died is found again, and what a slow worker still does is refused.

Jobs have claims of their own (`app/core/jobs/repository/claim.py`): they are claimed in groups, in the order of their
acceptance, and a heartbeat extends their leases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    case,
    func,
    literal_column,
    or_,
    select,
    update,
)

from app.infra.db.session import Database
from app.infra.db.times import interval, lease_end

_NEVER: Final[ColumnElement[Any]] = literal_column("'infinity'::timestamptz")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimColumns:
    """The columns of a table whose rows are claimed."""

    due_at: Column[Any]
    """When a worker is to claim the row. Of a claimed row: when the lease ends, unless it was woken since."""
    owner: Column[Any]
    """The worker that has the claim; null without one."""
    epoch: Column[Any]
    """The number of the claim."""
    until: Column[Any] | None = None
    """When the lease ends; null without a claim. None for a table that has no such column: there it is `due_at`."""

    @property
    def table(self) -> Table:
        """The table of the rows."""
        return self.epoch.table

    def is_due(self) -> ColumnElement[bool]:
        """Whether the time has come."""
        return self.due_at <= func.clock_timestamp()

    def is_free(self) -> ColumnElement[bool]:
        """Whether no lease runs."""
        if self.until is None:
            return self.is_due()
        return or_(self.until.is_(None), self.until < func.clock_timestamp())

    def is_held(self, epoch: int | BindParameter[int]) -> ColumnElement[bool]:
        """Whether the claim of this epoch is the last one."""
        return self.epoch == epoch

    def claimed(
        self, owner: str | BindParameter[str], lease_seconds: float | BindParameter[float]
    ) -> dict[str, Any]:
        """The values of a claim that is made now.

        The lease begins with the statement: both columns of a row get the same time.
        """
        end = func.statement_timestamp() + interval(lease_seconds)
        return {
            self.owner.key: owner,
            self.epoch.key: self.epoch + 1,
            self.due_at.key: end,
            **self._until(end),
        }

    def released(
        self, due_at: datetime | BindParameter[datetime] | ColumnElement[Any] | None
    ) -> dict[str, Any]:
        """The values of a row whose claim ends. `due_at`: when it is to be claimed again; None for never."""
        return {self.owner.key: None, self.due_at.key: due_at, **self._until(None)}

    def unless_woken(self, due_at: Any) -> ColumnElement[Any]:
        """When a row is due after its claim: at a time that another transaction has set meanwhile, else at `due_at`."""
        return case((self.due_at == self.until, due_at), else_=self.due_at)

    def settle(
        self, connection: Connection, row: ColumnElement[bool], epoch: int, after_seconds: float | None
    ) -> None:
        """Ends the claim of a row. It is due again as `due_after` says, unless it was woken meanwhile.

        Changes nothing if the claim was lost.
        """
        due_at = self.unless_woken(due_after(after_seconds))
        connection.execute(update(self.table).where(row, self.is_held(epoch)).values(self.released(due_at)))

    def holds(self, connection: Connection, epoch: int, *conditions: ColumnElement[bool]) -> bool:
        """Whether the row of these conditions has the claim of this epoch; it is locked until the transaction ends."""
        query = select(self.epoch).where(*conditions, self.is_held(epoch)).with_for_update()
        return connection.execute(query).one_or_none() is not None

    def end_of(
        self,
        database: Database,
        owner: str,
        *conditions: ColumnElement[bool],
        due_at: ColumnElement[Any] | None = None,
        returning: Column[Any] | None = None,
        on_end: Callable[[Connection, list[Any]], None] = lambda _, __: None,
    ) -> None:
        """Ends the claims of a worker that has ended, of every tenant. Their rows are due at `due_at`, or at once.

        The epoch is a new one, so that nothing is stored under the former claim. `on_end`: called in the transaction of
        each tenant with a value of each row, that of `returning`.
        """
        values = self.released(func.clock_timestamp() if due_at is None else due_at)
        mine = self.owner == owner
        with database.relay() as connection:
            tenants = connection.execute(
                select(self.table.c.tenant_id).where(mine, *conditions).distinct()
            ).scalars()
            tenant_ids = list(tenants)
        for tenant_id in tenant_ids:
            with database.tenant(tenant_id) as connection:
                rows = connection.execute(
                    update(self.table)
                    .where(mine, *conditions)
                    .values({**values, self.epoch.key: self.epoch + 1})
                    .returning(self.epoch if returning is None else returning)
                )
                on_end(connection, list(rows.scalars()))

    def _until(self, end: Any) -> dict[str, Any]:
        return {} if self.until is None else {self.until.key: end}


def due_after(seconds: float | None) -> Any:
    """When a row is due: after a time, for an infinite one never. Null for None, which each table has a meaning for."""
    if seconds is None:
        return None
    return _NEVER if math.isinf(seconds) else lease_end(seconds)


def tenants_in_turn(
    query: Select[Any], tenant_id: Column[Any], since: ColumnElement[Any], limit: int
) -> Select[Any]:
    """The first rows of a query: the first of every tenant come before the second of any, of each the oldest first."""
    number = func.row_number().over(partition_by=tenant_id, order_by=since)
    return query.order_by(number, since).limit(limit)
