"""Rows of sources as values."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Select, func, select

from app.access.errors import NotFound
from app.core.catalog.tables import datasets
from app.features.sources.tables import sources
from app.features.sources.values import DataSource, SourceState
from app.kernel.format.identifiers import is_uuid

_OTHERS: Final = {"dataset_name", "state", "reported_rounds"}
_OWN: Final = tuple(sources.c[name] for name in DataSource.__struct_fields__ if name not in _OTHERS)
DATASET_NAME: Final = func.coalesce(datasets.c.name, sources.c.dataset_name)
"""The present name of the dataset; the requested one, while there is none."""


def select_sources() -> Select[Any]:
    """Selects the members of `DataSource`."""
    return select(
        *_OWN,
        sources.c.state,
        sources.c.reported.label("reported_rounds"),
        DATASET_NAME.label("dataset_name"),
    ).join_from(sources, datasets, datasets.c.id == sources.c.dataset_id, isouter=True)


def source_of(row: Any) -> DataSource:
    """The source in a row of `select_sources`."""
    values = row._asdict()
    return DataSource(**{**values, "state": SourceState(values["state"])})


def find_source(connection: Connection, reference: str) -> DataSource:
    """The source with this id or name. Raises NotFound."""
    if "\0" in reference:
        raise source_not_found(reference)
    condition = sources.c.id == reference if is_uuid(reference) else sources.c.name == reference
    row = connection.execute(select_sources().where(condition)).one_or_none()
    if row is None:
        raise source_not_found(reference)
    return source_of(row)


def lock_source(connection: Connection, reference: str) -> DataSource:
    """`find_source`, its row locked. Raises NotFound."""
    source_id = find_source(connection, reference).id
    connection.execute(select(sources.c.id).where(sources.c.id == source_id).with_for_update())
    return find_source(connection, source_id)


def source_not_found(reference: str) -> NotFound:
    """The error of a source that is not there."""
    return NotFound(f"there is no source {reference!r}")
