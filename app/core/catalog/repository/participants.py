"""What other rooms do in the transactions of the catalogue. `CatalogStore` receives them from the composition root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import msgspec
from sqlalchemy import ColumnElement, Connection

from app.core.catalog.impact import ColumnReader, SchemaStep


class DefinitionCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a dataset's definition, which made `version` and no change in the feed."""

    dataset_id: str
    version: int
    committed_at: datetime
    next_offset: int
    schema_id: int
    instant_id: str
    actor: str | None


class DefinitionHistory(Protocol):
    """Keeps the commits that change definitions."""

    def definition_changed(self, connection: Connection, commit: DefinitionCommit) -> None:
        """Called after the head has moved to the version. The head's row is locked."""
        ...


class Derivations(Protocol):
    """Knows which datasets are derived from which."""

    def is_derived(self) -> ColumnElement[bool]:
        """The condition on a row of `datasets` that the dataset is derived."""
        ...

    def input_names(self, connection: Connection, dataset_id: str) -> Sequence[str]:
        """The names of the datasets from which a dataset is derived; none if it is not derived, or was deleted."""
        ...

    def pairs(self, connection: Connection) -> Sequence[tuple[str, str]]:
        """The ids of each dataset that another one is derived from, and of that one, of the tenant."""
        ...

    def check_unread(self, connection: Connection, dataset_id: str) -> None:
        """Raises DatasetInUse if other datasets are derived from it. The dataset's row is locked for update, so that
        none can be added.
        """
        ...


class DeletionParticipant(Protocol):
    """Takes part in the transaction that deletes a dataset."""

    def dataset_deleted(self, connection: Connection, dataset_id: str) -> None:
        """Called after the dataset was marked as deleted. The rows of its head and of the dataset are locked."""
        ...


class SchemaReaders(Protocol):
    """Knows what names columns of a dataset, of one kind."""

    def readers(self, connection: Connection, dataset_id: str, step: SchemaStep) -> Sequence[ColumnReader]:
        """What names columns of the dataset, each with what the step breaks of it. The step is not stored yet."""
        ...

    def pause(self, connection: Connection, readers: Sequence[ColumnReader]) -> None:
        """Pauses those of its kind (see `paused_by`). The head of the dataset is locked."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogParticipants:
    """`deletion` is called in order, which is an order of locks: jobs, views, consumers. So is `readers`."""

    history: DefinitionHistory
    derivations: Derivations
    deletion: tuple[DeletionParticipant, ...]
    readers: tuple[SchemaReaders, ...] = ()
