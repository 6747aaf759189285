"""Recipients whose grants name columns of a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, or_, select

from app.core.catalog.impact import ColumnReader, ReaderKind, SchemaStep
from app.features.sharing.tables import recipients, shared_datasets
from app.features.sharing.values import access_to


class RecipientReaders:
    """See `SchemaReaders`."""

    def readers(self, connection: Connection, dataset_id: str, step: SchemaStep) -> Sequence[ColumnReader]:
        """The live recipients that see a part of the dataset, the earliest first."""
        query = (
            select(recipients.c.id, recipients.c.name, recipients.c.grants)
            .join(shared_datasets, shared_datasets.c.share_id == recipients.c.share_id)
            .where(
                shared_datasets.c.dataset_id == dataset_id,
                recipients.c.grants.is_not(None),
                or_(recipients.c.expires_at.is_(None), recipients.c.expires_at > func.clock_timestamp()),
            )
            .order_by(recipients.c.id)
        )
        readers = []
        for row in connection.execute(query):
            access = access_to(row.grants, dataset_id)
            if access is not None and access.restricted:
                readers.append(
                    ColumnReader(
                        kind=ReaderKind.RECIPIENT,
                        id=row.id,
                        name=row.name,
                        dataset=step.before.name,
                        columns=step.names(access.masked, access.where),
                        access=access,
                        breaks=step.breaks(access.masked, access.where),
                    )
                )
        return readers

    def pause(self, connection: Connection, readers: Sequence[ColumnReader]) -> None:
        """They need no pause: a grant that does not fit shows nothing."""
