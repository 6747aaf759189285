"""Binds a `RowAccess` to one schema of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import pyarrow as pa

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import GrantNotApplicable, InvalidFilter, MaskedColumn
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.row_access import RowAccess
from app.kernel.sql.conditions.tree import And, Filter, Or


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundAccess:
    """A RowAccess for rows of one schema. `where`: None for all rows."""

    where: Filter | None = None
    masked: frozenset[str] = field(default_factory=frozenset)

    @property
    def restricted(self) -> bool:
        """Whether some rows or values may be hidden."""
        return self.where is not None or bool(self.masked)

    def selecting(self, where: Filter | None) -> Filter | None:
        """The rows that the reader's own filter selects of those that it may see. Raises MaskedColumn."""
        if where is None:
            return self.where
        self.refuse_masked(where.columns(), "where")
        if self.where is None:
            return where
        text = f"({self.where.text}) AND ({where.text})"
        return Filter(root=And(operands=(self.where.root, where.root)), text=text)

    def refuse_masked(self, columns: Iterable[str], used_in: str) -> None:
        """Raises MaskedColumn if one of the columns is masked: to select by it or to order by it shows its values."""
        for name in sorted(self.masked.intersection(columns)):
            raise MaskedColumn(
                f"column {name!r} is masked for this key: it reads as null and cannot be used in {used_in}",
                column=name,
            )

    def check_partitions(self, definition: DatasetDefinition, globs: Sequence[str] | None) -> None:
        """Raises MaskedColumn for globs of partitions that a masked column determines."""
        if globs is not None:
            self.refuse_masked(partition_sources(definition), "partitions")

    def hides_any(self, columns: Iterable[str]) -> bool:
        """Whether one of the columns is masked, so that whatever is derived from them is hidden, too."""
        return not self.masked.isdisjoint(columns)

    def shown(self, rows: pa.Table) -> pa.Table:
        """The rows with nulls in masked columns, which are nullable in the schema of the result."""
        for at, each in enumerate(rows.schema):
            if each.name in self.masked:
                rows = rows.set_column(at, each.with_nullable(True), pa.nulls(rows.num_rows, each.type))
        return rows


WHOLE: Final = BoundAccess()
"""The access to all rows and values."""


def bind_access(access: RowAccess, latest: Schema, schema: Schema) -> BoundAccess:
    """The access to rows of `schema`; `latest` is the present schema of the dataset. Raises GrantNotApplicable.

    A column is masked under each name that it had, and so is a column of another time that has the name.
    """
    return _bound(access, latest, schema) if access.restricted else WHOLE


@lru_cache(maxsize=256)
def _bound(access: RowAccess, latest: Schema, schema: Schema) -> BoundAccess:
    # A reader of a feed binds the same access for every page.
    missing = sorted(set(access.masked).difference(latest.names()))
    if missing:
        raise GrantNotApplicable(
            f"the grants of this key mask the column {missing[0]!r}, which the dataset does not have, so nothing is "
            "shown"
        )
    ids = {each.id for each in latest.fields if each.name in access.masked}
    columns = frozenset(access.masked).union(each.name for each in schema.fields if each.id in ids)
    try:
        conditions = [parse_filter(text, schema) for text in access.where]
    except InvalidFilter:
        # The condition may have values that are hidden from the reader.
        raise GrantNotApplicable(
            "a condition of the grants does not fit the columns that the dataset has at this version, so nothing is "
            "shown: ask who gave the grants, or read another version"
        ) from None
    where = None
    if conditions:
        text = " OR ".join(f"({each.text})" for each in conditions)
        only = conditions[0] if len(conditions) == 1 else None
        where = only or Filter(root=Or(operands=tuple(each.root for each in conditions)), text=text)
    return BoundAccess(where=where, masked=columns)
