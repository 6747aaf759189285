"""Participants of the deletion of a dataset and of changes of its definition."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from sqlalchemy import ColumnElement, Connection, select, true

from app.access.errors import NotFound
from app.core.catalog.errors import DatasetInUse
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.repository.participants import CatalogParticipants, DefinitionCommit
from app.core.catalog.tables import datasets
from app.core.catalog.values import Dataset
from app.infra.identifiers import new_instant_id
from app.kernel.format.definition.dataset_definition import with_changelog
from app.kernel.format.definition.new_dataset import CreateRetention
from app.kernel.format.definition.schema_change import UpdateChangelog
from tests.support.store_fixtures import Stores


@dataclass
class Recorder:
    """Every participant of the catalogue at once."""

    calls: list[object] = field(default_factory=list)
    read_by: tuple[str, ...] = ()

    def is_derived(self) -> ColumnElement[bool]:
        return true()

    def input_names(self, connection: Connection, dataset_id: str) -> list[str]:
        return []

    def pairs(self, connection: Connection) -> list[tuple[str, str]]:
        return []

    def check_unread(self, connection: Connection, dataset_id: str) -> None:
        self.calls.append("check")
        if self.read_by:
            raise DatasetInUse("it is read", views=list(self.read_by))

    def dataset_deleted(self, connection: Connection, dataset_id: str) -> None:
        query = select(datasets.c.deleted_at.is_not(None)).where(datasets.c.id == dataset_id)
        self.calls.append(("deleted", connection.execute(query).scalar_one()))

    def definition_changed(self, connection: Connection, commit: DefinitionCommit) -> None:
        self.calls.append(commit)


def catalog_with(stores: Stores, recorder: Recorder) -> CatalogStore:
    participants = CatalogParticipants(history=recorder, derivations=recorder, deletion=(recorder, recorder))
    return CatalogStore(stores.database, participants)


def test_a_deletion_is_checked_first_and_then_reported_to_each_participant(
    stores: Stores, dataset: Dataset
) -> None:
    recorder = Recorder()
    catalog_with(stores, recorder).delete(dataset.tenant_id, dataset.id, version=None)
    assert recorder.calls == ["check", ("deleted", True), ("deleted", True)]


def test_a_dataset_that_is_read_is_not_deleted(stores: Stores, dataset: Dataset) -> None:
    recorder = Recorder(read_by=("view",))
    with pytest.raises(DatasetInUse):
        catalog_with(stores, recorder).delete(dataset.tenant_id, dataset.id, version=None)
    assert recorder.calls == ["check"]
    assert stores.catalog.get(dataset.tenant_id, dataset.id).id == dataset.id


def test_participant_determines_whether_a_dataset_is_derived(stores: Stores, dataset: Dataset) -> None:
    assert not stores.catalog.get(dataset.tenant_id, dataset.id).is_view
    assert catalog_with(stores, Recorder()).get(dataset.tenant_id, dataset.id).is_view


def test_a_change_of_the_definition_is_reported_with_its_version(stores: Stores, dataset: Dataset) -> None:
    recorder, instant_id = Recorder(), new_instant_id()
    changed = with_changelog(dataset.definition, UpdateChangelog(retention=CreateRetention(seconds=3600)))
    after = catalog_with(stores, recorder).evolve(
        dataset.tenant_id, dataset.id, changed, version=0, instant_id=instant_id, actor=None
    )
    [commit] = recorder.calls
    assert isinstance(commit, DefinitionCommit)
    assert (commit.version, commit.instant_id, commit.schema_id) == (1, instant_id, 1)
    assert (after.version, after.committed_at) == (1, commit.committed_at)
    with pytest.raises(NotFound):
        catalog_with(stores, recorder).evolve(
            dataset.tenant_id, new_instant_id(), changed, version=1, instant_id=new_instant_id()
        )
    assert recorder.calls == [commit]
