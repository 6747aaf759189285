"""The description and the labels of a dataset: stored beside its definition, found by an index, of one tenant."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import insert, text

from app.access.errors import NotFound, PreconditionFailed
from app.core.catalog.errors import DatasetExists
from app.core.catalog.repository.notes import has_label
from app.core.catalog.tables import dataset_labels, datasets
from app.core.catalog.values import Dataset, DatasetFilter
from app.features.retention.repository.expired_rows import DeletedDatasetStore
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.format.definition.dataset_definition import with_settings
from app.kernel.format.definition.schema_change import UpdateDataset
from app.kernel.format.errors import InvalidRequest
from tests.support.lakehouse import definition
from tests.support.query_plans import plan_of, rows_read
from tests.support.store_fixtures import Stores

NOTES = {"description": "All orders.", "labels": {"team": "ops", "example.org/tier": "", "Env": "prod"}}


def labelled(
    stores: Stores, tenant_id: str, *labels: tuple[str, str], page_token: str | None = None
) -> list[str]:
    page = stores.catalog.list(
        tenant_id, DatasetFilter(labels=tuple(labels)), page_size=10, page_token=page_token
    )
    return [item.definition.name for item in page.items]


def test_new_dataset_has_its_notes(stores: Stores, tenant_id: str) -> None:
    made = stores.catalog.create(tenant_id, new_id(), definition("flights"), NOTES)
    assert (made.description, made.labels) == ("All orders.", NOTES["labels"])
    assert list(made.labels) == ["Env", "example.org/tier", "team"]
    assert stores.catalog.get(tenant_id, "flights") == made
    assert stores.catalog.list(tenant_id, page_size=1, page_token=None).items == [made]


def test_dataset_without_notes_has_none(dataset: Dataset) -> None:
    assert (dataset.description, dataset.labels) == (None, {})


def test_changed_notes_make_no_version_and_no_instant(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    noted = stores.catalog.note(tenant_id, dataset.id, NOTES, version=0)
    assert noted == msgspec.structs.replace(dataset, **NOTES)
    assert stores.catalog.note(tenant_id, dataset.id, {"labels": {"team": "sales"}}, version=0) == (
        msgspec.structs.replace(noted, labels={"team": "sales"})
    )
    assert stores.catalog.note(tenant_id, dataset.id, {"description": None}, version=0).description is None
    assert stores.catalog.note(tenant_id, dataset.id, {"labels": {}}, version=0) == dataset
    assert stores.timeline.instants(tenant_id, dataset.id, page_size=10, page_token=None).items == []
    assert len(stores.catalog.schemas(tenant_id, dataset.id, page_size=10, page_token=None).items) == 1


def test_notes_of_another_version_or_of_no_dataset_are_refused(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    with pytest.raises(PreconditionFailed):
        stores.catalog.note(tenant_id, dataset.id, NOTES, version=1)
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        stores.catalog.note(tenant_id, dataset.id, NOTES, version=0)


def test_notes_are_changed_with_a_definition_or_not_at_all(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    stores.catalog.create(tenant_id, new_id(), definition("taken"))
    for name in ("taken", "free"):
        renamed = with_settings(dataset.definition, UpdateDataset(name=name))
        try:
            stores.catalog.evolve(
                tenant_id, dataset.id, renamed, version=0, instant_id=new_instant_id(), notes=NOTES
            )
        except DatasetExists:
            assert stores.catalog.get(tenant_id, dataset.id) == dataset
    changed = stores.catalog.get(tenant_id, dataset.id)
    assert (changed.version, changed.definition.name, changed.labels) == (1, "free", NOTES["labels"])


def test_listing_has_the_datasets_with_all_of_the_labels(stores: Stores, tenant_id: str) -> None:
    for name, labels in {
        "a": {"team": "ops", "env": "prod"},
        "b": {"team": "ops"},
        "c": {"team": "sales", "env": "prod"},
        "d": {},
        "e": {"ops": "team"},
    }.items():
        stores.catalog.create(tenant_id, new_id(), definition(name), {"labels": labels})
    assert labelled(stores, tenant_id) == ["a", "b", "c", "d", "e"]
    assert labelled(stores, tenant_id, ("team", "ops")) == ["a", "b"]
    assert labelled(stores, tenant_id, ("team", "ops"), ("env", "prod")) == ["a"]
    assert labelled(stores, tenant_id, ("team", "ops"), ("team", "sales")) == []
    assert labelled(stores, tenant_id, ("team", "")) == []
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    stores.catalog.create(neighbour, new_id(), definition("theirs"), {"labels": {"team": "ops"}})
    assert labelled(stores, neighbour, ("team", "ops")) == ["theirs"]
    assert labelled(stores, tenant_id, ("team", "ops")) == ["a", "b"]


def test_page_token_belongs_to_its_labels(stores: Stores, tenant_id: str) -> None:
    for name in ("a", "b", "c"):
        stores.catalog.create(tenant_id, new_id(), definition(name), {"labels": {"x": "1", "y": "2"}})
    labels = [("x", "1"), ("y", "2")]
    page = stores.catalog.list(tenant_id, DatasetFilter(labels=tuple(labels)), page_size=2, page_token=None)
    assert labelled(stores, tenant_id, *reversed(labels), page_token=page.next_token) == ["c"]
    with pytest.raises(InvalidRequest):
        stores.catalog.list(
            tenant_id, DatasetFilter(labels=tuple(labels[:1])), page_size=2, page_token=page.next_token
        )


def test_datasets_with_a_label_are_found_by_the_index(stores: Stores, tenant_id: str) -> None:
    ids = [stores.catalog.create(tenant_id, new_id(), definition(f"d{n}")).id for n in range(40)]
    with stores.database.tenant(tenant_id) as connection:
        rows = [
            {"dataset_id": dataset_id, "key": f"k{number}", "value": "v"}
            for dataset_id in ids
            for number in range(64)
        ]
        connection.execute(
            insert(dataset_labels), [*rows, {"dataset_id": ids[7], "key": "team", "value": "ops"}]
        )
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        query = stores.catalog.live.query().where(has_label("team", "ops"))
        assert [row.id for row in connection.execute(query)] == [ids[7]]
        plan = plan_of(connection, datasets.select().where(has_label("team", "ops")))
    # All labels are 2,561 rows; those of the dataset that is found are read for its response only.
    assert rows_read(plan, "dataset_labels") <= 1


def test_labels_end_with_their_dataset(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    stores.catalog.note(tenant_id, dataset.id, NOTES, version=0)
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    assert labelled(stores, tenant_id, ("team", "ops")) == []
    ended = DeletedDatasetStore(stores.database)
    while ended.purge(tenant_id, dataset.id, 100):
        pass
    with stores.database.tenant(tenant_id) as connection:
        assert connection.execute(dataset_labels.select()).all() == []
