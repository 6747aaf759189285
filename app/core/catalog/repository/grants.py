"""API keys whose grants name columns of a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from app.access.tenants.repository.credentials import LIVE
from app.access.tenants.repository.rows import KEY_COLUMNS, key_of
from app.access.tenants.tables import api_keys
from app.access.tenants.values import Principal
from app.core.catalog.impact import ColumnReader, ReaderKind, SchemaStep


def key_readers(connection: Connection, step: SchemaStep) -> Sequence[ColumnReader]:
    """The live keys that see a part of the dataset. They need no pause: a grant that does not fit shows nothing."""
    name = step.before.name
    query = select(*KEY_COLUMNS).where(*LIVE, api_keys.c.grants.is_not(None)).order_by(api_keys.c.id)
    readers = []
    for row in connection.execute(query):
        key = key_of(row)
        principal = Principal(
            tenant_id=key.tenant_id, actor=key.id, scopes=frozenset(key.scopes), grants=key.grants
        )
        access = principal.access(name)
        if principal.reaches(name) and access.restricted:
            readers.append(
                ColumnReader(
                    kind=ReaderKind.KEY,
                    id=key.id,
                    name=key.name,
                    dataset=name,
                    columns=step.names(access.masked, access.where),
                    access=access,
                    breaks=step.breaks(access.masked, access.where),
                )
            )
    return readers
