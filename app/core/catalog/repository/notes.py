"""Settings of a dataset that are not of the table: its description, its labels, and how often it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    delete,
    func,
    insert,
    literal_column,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from app.core.catalog.tables import dataset_labels, datasets
from app.infra.db.stored_json import Document
from app.kernel.format.definition.settings import NOTES

_LABELS: Final = "labels"
_NONE: Final[ColumnElement[Any]] = literal_column("'{}'::json")


def _labels() -> ColumnElement[Any]:
    labels = dataset_labels.c
    objects = func.json_object_agg(labels.key, aggregate_order_by(labels.value, labels.key))
    of_dataset = select(func.coalesce(objects, _NONE)).where(labels.dataset_id == datasets.c.id)
    return type_coerce(of_dataset.scalar_subquery(), Document(dict[str, str])).label(_LABELS)


LABELS: Final = _labels()
"""The labels of a row of `datasets`."""


def note_columns() -> tuple[ColumnElement[Any], ...]:
    """The notes about a row of `datasets`, by name."""
    return (*(datasets.c[name] for name in NOTES if name != _LABELS), LABELS)


def has_label(key: str, value: str) -> ColumnElement[bool]:
    """Whether a row of `datasets` has the label."""
    labels = dataset_labels.c
    return (
        select(1).where(labels.dataset_id == datasets.c.id, labels.key == key, labels.value == value).exists()
    )


def store_notes(connection: Connection, dataset_id: str, notes: Mapping[str, Any]) -> None:
    """Stores these notes, by name, in place of those that the dataset has. The caller has locked its head."""
    columns = {name: value for name, value in notes.items() if name != _LABELS}
    if columns:
        connection.execute(update(datasets).where(datasets.c.id == dataset_id).values(columns))
    labels = notes.get(_LABELS)
    if labels is None:
        return
    connection.execute(delete(dataset_labels).where(dataset_labels.c.dataset_id == dataset_id))
    if labels:
        rows = [{"dataset_id": dataset_id, "key": key, "value": value} for key, value in labels.items()]
        connection.execute(insert(dataset_labels), rows)
