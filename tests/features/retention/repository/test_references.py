"""What the reaper gets: a file that anything refers to, or may come to refer to, is never free."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from app.core.catalog.values import Dataset, Upload
from app.core.jobs.values import Job
from app.features.retention.repository.references import ReferenceStore
from app.infra.identifiers import new_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput
from tests.support.lakehouse import RULES, claim_of, commit_of, message, new_job
from tests.support.store_fixtures import Stores


@pytest.fixture
def references(stores: Stores) -> ReferenceStore:
    return ReferenceStore(stores.database)


def raw_job(stores: Stores, dataset: Dataset, path: str) -> Job:
    """Accepts a write that reads the file at `path`."""
    new = new_job(dataset.id)
    raw = RawInput(path=path, size_bytes=1, checksum="c", format=next(iter(Format)))
    others = (msgspec.structs.replace(raw, path=f"{path}/b"), msgspec.structs.replace(raw, path=f"{path}/c"))
    raw = msgspec.structs.replace(raw, others=others)
    request = msgspec.structs.replace(new.request, raw=raw)
    return stores.jobs.accept(dataset.tenant_id, msgspec.structs.replace(new, request=request)).job


def upload(stores: Stores, dataset: Dataset, path: str) -> Upload:
    made = Upload(
        id=new_id(),
        dataset_id=dataset.id,
        path=path,
        size_bytes=1,
        checksum="c",
        created_at=dataset.created_at,
    )
    stores.catalog.add_upload(dataset.tenant_id, made)
    return made


def test_tenants_and_datasets_are_listed_with_deleted_ones(
    stores: Stores, references: ReferenceStore, tenant_id: str, dataset: Dataset
) -> None:
    renamed = msgspec.structs.replace(dataset.definition, name="gone")
    gone = stores.catalog.create(tenant_id, new_id(), renamed)
    stores.catalog.delete(tenant_id, gone.id, version=None)
    assert tenant_id in references.tenants()
    assert sorted(references.datasets(tenant_id)) == sorted([(dataset.id, False), (gone.id, True)])


def test_files_of_commits_stay_referenced_after_their_removal(
    stores: Stores, references: ReferenceStore, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    base = message(0)
    stores.timeline.publish_one(tenant_id, commit_of([running()], [base]))
    removal = CommitMessage(file_group=base.file_group, removed=(base.added[0].path,))
    stores.timeline.publish_one(tenant_id, commit_of([running()], [removal], read_version=1))
    paths = [base.added[0].path, base.changelog[0].path]
    assert references.referenced(tenant_id, dataset.id, [*paths, "orphan"]) == set(paths)
    assert references.referenced(tenant_id, dataset.id, []) == set()
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    assert references.referenced(neighbour, dataset.id, paths) == set()


def test_input_is_referenced_until_its_job_ends(
    stores: Stores, references: ReferenceStore, tenant_id: str, dataset: Dataset
) -> None:
    job = raw_job(stores, dataset, "input/1")
    assert references.unfinished(tenant_id, dataset.id) == ({job.instant_id}, {job.id}, None)
    [claimed_job] = stores.jobs.claim(tenant_id, dataset.id, "w", RULES)
    paths = ["input/1", "input/1/b", "input/1/c"]
    assert references.referenced(tenant_id, dataset.id, [*paths, "input/2"]) == set(paths)
    stores.jobs.release(tenant_id, [claim_of(claimed_job)])
    assert references.unfinished(tenant_id, dataset.id) == ({job.instant_id}, {job.id}, None)
    stores.jobs.cancel(tenant_id, job.id)
    assert references.referenced(tenant_id, dataset.id, ["input/1"]) == set()
    assert references.unfinished(tenant_id, dataset.id) == (set(), set(), None)


def test_file_of_an_expired_upload_stays_while_a_job_reads_it(
    stores: Stores, references: ReferenceStore, tenant_id: str, dataset: Dataset
) -> None:
    for path in ("uploads/read", "uploads/idle"):
        upload(stores, dataset, path)
    raw_job(stores, dataset, "uploads/read")
    paths = ["uploads/read", "uploads/idle"]
    references.expire_uploads(tenant_id, dataset.id, older_than_seconds=3600)
    assert references.referenced(tenant_id, dataset.id, paths) == set(paths)
    references.expire_uploads(tenant_id, dataset.id, older_than_seconds=0)
    assert references.referenced(tenant_id, dataset.id, paths) == {"uploads/read"}
