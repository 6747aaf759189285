"""The reaper on the catalogue: a file that any column refers to stays, however old it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs
from sqlalchemy import Table, delete, insert

from app.core.catalog.values import Dataset, Upload
from app.core.changes.positions import StartingPosition
from app.core.jobs.kinds.read import Disposition, ReadQuery, ReadTask
from app.core.jobs.values import NewJob
from app.core.timeline.tables import changelog_files, files, replaced_changelog_files, timeline_archives
from app.core.timeline.values import NewCommit
from app.features.exports.repository.exports import ExportStore
from app.features.exports.tables import export_files
from app.features.exports.tasks import ExportFormat, ExportQuery
from app.features.exports.values import ExportDefinition, NewExport
from app.features.reads.tables import read_files
from app.features.rendered_files.repository.renderings import RenderingStore
from app.features.rendered_files.values import RenderingEntry, RenderingOrigin
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.service.reaper import Reap
from app.infra.db.columns import metadata
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.definition.settings import DEFAULT_TARGET_BYTES
from app.kernel.format.file_group import DataFile, DeletionVector, IndexFile, IndexKind
from app.kernel.format.paths import dataset_prefix
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput
from tests.support.lakehouse import RULES, commit_of, message, new_job
from tests.support.store_fixtures import Stores

Refer = Callable[[Stores, Dataset, str], None]
_SUM: Final = {"size_bytes": 1, "checksum": "c"}
# Paths of partitions, and of files that have a row of their own in files and in quarantine_files.
_NO_FILES: Final = {
    "files.partition_path",
    "partition_marks.path",
    "quarantine_redrives.path",
    "rendered_files.data_path",
}


def _commit(stores: Stores, dataset: Dataset, change: Callable[[NewCommit], NewCommit]) -> None:
    """Publishes a commit of one file, as `change` makes it."""
    stores.jobs.accept(dataset.tenant_id, new_job(dataset.id))
    [job] = stores.jobs.claim(dataset.tenant_id, dataset.id, "worker", RULES)
    outcome = stores.timeline.publish(dataset.tenant_id, [change(commit_of([job], [message()]))])
    assert isinstance(outcome, tuple)


def _commit_data(stores: Stores, dataset: Dataset, **settings: Any) -> None:
    """Publishes a data file with these settings."""

    def change(commit: NewCommit) -> NewCommit:
        [made] = commit.messages
        file: DataFile = structs.replace(made.added[0], **settings)
        return structs.replace(commit, messages=(structs.replace(made, added=(file,)),))

    _commit(stores, dataset, change)


def _data(stores: Stores, dataset: Dataset, path: str) -> None:
    _commit_data(stores, dataset, path=path)


def _vector(stores: Stores, dataset: Dataset, path: str) -> None:
    _commit_data(stores, dataset, deletion_vector=DeletionVector(path=path, offset=0, cardinality=1, **_SUM))


def _index(stores: Stores, dataset: Dataset, path: str) -> None:
    _commit_data(stores, dataset, index_file=IndexFile(path=path, kind=next(iter(IndexKind)), **_SUM))


def _changelog(stores: Stores, dataset: Dataset, path: str) -> None:
    def change(commit: NewCommit) -> NewCommit:
        [made] = commit.messages
        changes = structs.replace(made.changelog[0], path=path)
        return structs.replace(commit, messages=(structs.replace(made, changelog=(changes,)),))

    _commit(stores, dataset, change)


def _replaced(stores: Stores, dataset: Dataset, path: str) -> None:
    """Replaced just now: a job that began before may still read it."""
    stores.jobs.accept(dataset.tenant_id, new_job(dataset.id))
    stores.jobs.claim(dataset.tenant_id, dataset.id, "worker", RULES)
    _row(stores, dataset, replaced_changelog_files, path=path, size_bytes=1)


def _quarantine(stores: Stores, dataset: Dataset, path: str) -> None:
    def change(commit: NewCommit) -> NewCommit:
        file = QuarantineFile(path=path, row_count=1, **_SUM)
        return structs.replace(
            commit, outcomes=(structs.replace(commit.outcomes[0], quarantine_files=(file,)),)
        )

    _commit(stores, dataset, change)


def _upload(stores: Stores, dataset: Dataset, path: str) -> None:
    upload = Upload(id=new_id(), dataset_id=dataset.id, path=path, created_at=dataset.created_at, **_SUM)
    stores.catalog.add_upload(dataset.tenant_id, upload)


def _export(stores: Stores, dataset: Dataset, path: str) -> None:
    definition = ExportDefinition(
        name=None,
        query=ExportQuery.CHANGES,
        format=ExportFormat.CSV,
        form=ChangeForm.TWO_EVENT,
        columns=None,
        where=None,
        partitions=None,
        since=0,
        until=None,
        schedule=None,
        target_bytes=DEFAULT_TARGET_BYTES,
    )
    new = NewExport(
        id=new_id(),
        dataset_id=dataset.id,
        schema_id=dataset.definition.schema.id,
        definition=definition,
        start=StartingPosition.EARLIEST,
        job_id=new_id(),
    )
    ExportStore(stores.database).create(dataset.tenant_id, new)
    place = {"export_id": new.id, "number": 1, "name": "part-1.csv", "row_count": 1}
    _row(stores, dataset, export_files, path=path, **place, **_SUM)


def _result(stores: Stores, dataset: Dataset, path: str) -> None:
    task = ReadTask(query=ReadQuery.SNAPSHOT, version=0, format="csv", disposition=Disposition.FILES)
    job = stores.jobs.accept(dataset.tenant_id, NewJob(id=new_id(), dataset_id=dataset.id, request=task)).job
    _row(stores, dataset, read_files, path=path, job_id=job.id, number=1, name="part-1", row_count=1, **_SUM)


def _rendering(stores: Stores, dataset: Dataset, path: str) -> None:
    entry = RenderingEntry(
        key=b"k", view="v", content="c", size_bytes=1, row_count=1, statistics={}, path=path
    )
    RenderingStore(stores.database).put(dataset.tenant_id, dataset.id, entry, RenderingOrigin(version=1))


def _archive(stores: Stores, dataset: Dataset, path: str) -> None:
    _row(
        stores,
        dataset,
        timeline_archives,
        path=path,
        first_instant="1",
        last_instant="2",
        row_count=1,
        **_SUM,
    )


def _row(stores: Stores, dataset: Dataset, table: Table, **values: Any) -> None:
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(insert(table).values(dataset_id=dataset.id, **values))


def _raw_input(stores: Stores, dataset: Dataset, path: str) -> None:
    new = new_job(dataset.id)
    raw = RawInput(path=path, format=next(iter(Format)), **_SUM)
    request = structs.replace(new.request, raw=raw)
    stores.jobs.accept(dataset.tenant_id, structs.replace(new, request=request))


REFERENCES: Final[dict[str, Refer]] = {
    "files.path": _data,
    "files.vector_path": _vector,
    "files.index_path": _index,
    "changelog_files.path": _changelog,
    "replaced_changelog_files.path": _replaced,
    "quarantine_files.path": _quarantine,
    "uploads.path": _upload,
    "export_files.path": _export,
    "read_files.path": _result,
    "timeline_archives.path": _archive,
    "rendered_files.path": _rendering,
}


def reaper(stores: Stores, storage: LocalStorage) -> Reap:
    """One that leaves nothing for its age."""
    return Reap(
        references=ReferenceStore(stores.database),
        storage=storage,
        grace_seconds=-60,
        upload_seconds_max=3600,
        result_seconds_max=3600,
    )


@pytest.mark.parametrize("refer", [*REFERENCES.values(), _raw_input], ids=[*REFERENCES, "jobs.request"])
def test_reaper_keeps_files_that_a_column_refers_to(
    stores: Stores, tenant_id: str, dataset: Dataset, tmp_path: Path, refer: Refer
) -> None:
    storage = LocalStorage(tmp_path)
    kept, orphan = (f"{dataset_prefix(tenant_id, dataset.id)}/{name}" for name in ("kept", "orphan"))
    for path in (kept, orphan):
        with storage.create(path) as file:
            file.write(b"1")
    refer(stores, dataset, kept)
    assert reaper(stores, storage).dataset(tenant_id, dataset.id) == 1
    assert [path for path, _ in storage.list("")] == [kept]


@pytest.mark.parametrize("first", [files, changelog_files], ids=lambda table: table.name)
def test_data_file_that_is_a_changelog_file_stays_as_long_as_either(
    stores: Stores, tenant_id: str, dataset: Dataset, tmp_path: Path, first: Table
) -> None:
    storage = LocalStorage(tmp_path)
    path = f"{dataset_prefix(tenant_id, dataset.id)}/data"
    with storage.create(path) as file:
        file.write(b"1")

    def change(commit: NewCommit) -> NewCommit:
        [made] = commit.messages
        data, changes = (
            structs.replace(made.added[0], path=path),
            structs.replace(made.changelog[0], path=path),
        )
        return structs.replace(commit, messages=(structs.replace(made, added=(data,), changelog=(changes,)),))

    _commit(stores, dataset, change)
    [last] = {files, changelog_files} - {first}
    for table, gone in ((first, 0), (last, 1)):
        with stores.database.tenant(tenant_id) as connection:
            connection.execute(delete(table).where(table.c.path == path))
        assert reaper(stores, storage).dataset(tenant_id, dataset.id) == gone


def test_reaper_cases_cover_every_column_of_a_path() -> None:
    """A new column is added to the cases above and to the reaper's query."""
    columns = {
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if column.name == "path" or column.name.endswith("_path")
    }
    assert columns == REFERENCES.keys() | _NO_FILES
