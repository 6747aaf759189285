"""Manifests of generated histories: they list the files of each version, and are found again by their paths alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from pyroaring import FrozenBitMap
from sqlalchemy import and_, delete, select

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.core.timeline.repository.pending_writes import PendingWriteStore
from app.core.timeline.tables import files
from app.core.timeline.values import FileBlock, Published
from app.features.iceberg.repository.table_versions import TableVersionStore
from app.features.iceberg.service import blocks
from app.features.iceberg.service.deletes_tree import DeletesTree
from app.features.iceberg.service.manifests import SnapshotManifests, list_name
from app.features.iceberg.service.metadata_tree import MetadataTree
from app.features.iceberg.service.rendered_tables import RenderedTables
from app.features.iceberg.service.table_form import CACHE_SECONDS
from app.features.iceberg.values import SnapshotSelection
from app.features.rendered_files.values import RenderedFile
from app.features.retention.repository.history import HistoryStore
from app.infra.files.deletion_vector_file import write_vectors
from app.infra.files.storage import LocalStorage
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.file_group import DataFile, DeletionVector, FileKind
from app.kernel.format.paths import data_folder, dataset_prefix
from app.kernel.format.policies import HistoryPolicy
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.kernel.iceberg.tables import avro_records
from tests.support.iceberg_tables import served, snapshot_manifests
from tests.support.lakehouse import commit_of, data_file, written_once
from tests.support.store_fixtures import Stores

VERSIONS = 24
GROUP = "bucket-00000"
_ADDED, _EXISTING = 1, 0


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_FILES", 4)
    monkeypatch.setattr(blocks, "_STEP", 4)


@pytest.fixture
def rendering(stores: Stores, tmp_path: Path) -> Callable[[], SnapshotManifests]:
    """What renders manifests, with nothing cached."""

    return lambda: snapshot_manifests(stores, tmp_path)


@pytest.fixture
def history(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job], tmp_path: Path
) -> Dataset:
    """The dataset after commits that add files, remove some, and delete rows of some."""
    random = Random(7)
    folder = data_folder(dataset_prefix(tenant_id, dataset.id))
    storage = LocalStorage(tmp_path)

    def placed(file: DataFile) -> DataFile:
        slot = msgspec.structs.replace(file.slot, partition_path="")
        path = f"{folder}/{file.path.removeprefix('data/')}"
        return msgspec.structs.replace(file, path=path, slot=slot, file_group=GROUP, statistics={})

    def vector() -> DeletionVector:
        [made] = write_vectors(storage, "v", {"a": FrozenBitMap(random.sample(range(50), 3))}).values()
        return made

    for version in range(VERSIONS):
        count = 11 if version == 5 else random.choice([0, 1, 1, 2])
        live = stores.timeline.live_files(tenant_id, dataset.id, version, None)
        gone = random.sample(live, min(len(live), random.choice([0, 0, 1, 2])))
        added = [placed(data_file(0, rows=50)) for _ in range(count)]
        listed = [
            msgspec.structs.replace(file, deletion_vector=vector()) for file in gone if random.random() < 0.5
        ]
        if not (added or gone):
            added = [placed(data_file(0, rows=50))]
        message = CommitMessage(
            file_group=GROUP,
            removed=tuple(file.path for file in gone),
            added=(*added, *listed),
            changelog=(),
        )
        commit = commit_of([running()], [message], read_version=version)
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)
    return stores.catalog.get(tenant_id, dataset.id)


def visible_part(dataset: Dataset, file: DataFile) -> RenderedFile | None:
    """Two rows of about every second file, and no row of the others."""
    digest = blake2b(f"{file.path} {file.added_version}".encode(), digest_size=16).hexdigest()
    if int(digest[0], 16) % 2:
        return None
    return RenderedFile(
        view="0" * 16,
        content=digest,
        size_bytes=100,
        row_count=2,
        statistics={},
        source=file,
        schema_id=dataset.definition.schema.id,
    )


PART = RowAccess(masked=("note",))


def listed(
    rendered: SnapshotManifests,
    dataset: Dataset,
    variant: str,
    version: int,
    access: RowAccess = EVERYTHING,
) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The manifests of a snapshot: by name, what the list says of each, and its entries."""
    form = rendered.forms.of(served(dataset, variant, access))
    _, records = avro_records(rendered.find(served(dataset, variant, access), list_name(form, version)))
    found = {}
    for record in records:
        name = record["manifest_path"].removeprefix(f"{form.location}/metadata/")
        content = rendered.find(served(dataset, variant, access), name)
        assert record["manifest_length"] == len(content)
        found[name] = record, avro_records(content)[1]
    return found


@pytest.mark.parametrize("variant", ["v3", "v2"])
def test_manifests_list_the_files_of_each_version(
    stores: Stores, history: Dataset, rendering: Callable[[], SnapshotManifests], variant: str
) -> None:
    rendered = rendering()
    form = rendered.forms.of(served(history, variant))
    table = served(history, variant)
    tree = DeletesTree(blocks=rendered.blocks, forms=rendered.forms, deletes=rendered.deletes)
    for version in range(1, VERSIONS + 1):
        live = stores.timeline.live_files(history.tenant_id, history.id, version, None)
        data: dict[str, int] = {}
        deletes: dict[str, int] = {}
        for record, entries in listed(rendered, history, variant, version).values():
            assert record["added_snapshot_id"] <= version
            found = data if record["content"] == 0 else deletes
            for entry in entries:
                path = entry["data_file"]["file_path"]
                assert path not in found
                found[path] = entry["status"]
                assert entry["snapshot_id"] <= version
                assert (entry["status"] == _ADDED) == (entry["snapshot_id"] == version)
                if record["content"] == 1:
                    below = path.removeprefix(f"{form.location}/deletes/")
                    content = tree.find(table, below)
                    assert content.size_bytes == entry["data_file"]["file_size_in_bytes"]
                    assert len(content.read(0, 2**20)) == content.size_bytes
        assert set(data) == {form.data_path(file) for file in live}
        assert set(deletes) == {form.delete_path(file) for file in live if file.deletion_vector}


def test_deleted_rows_are_those_of_base_files_in_their_rows(
    stores: Stores, history: Dataset, rendering: Callable[[], SnapshotManifests]
) -> None:
    rendered = rendering()
    form = rendered.forms.of(served(history))
    live = stores.timeline.live_files(history.tenant_id, history.id, VERSIONS, None)
    file = next(file for file in live if file.deletion_vector)
    path = form.delete_path(file).removeprefix(f"{form.location}/deletes/")
    added, _, rest = path.partition("/")

    table = served(history)

    def found(kind: FileKind, at: str) -> bool:
        blocks = KnownKind(rendered.blocks, kind)
        tree = DeletesTree(blocks=blocks, forms=rendered.forms, deletes=rendered.deletes)
        try:
            return bool(tree.find(table, at).size_bytes)
        except NotFound:
            return False

    assert found(FileKind.BASE, path)
    assert not found(FileKind.LOG, path)
    assert not found(FileKind.BASE, f"{int(added) + 1}/{rest}")


@dataclass
class KnownKind:
    """The files of a store, as if they were of a kind."""

    store: FileBlockStore
    kind: FileKind

    def file(self, *row: Any) -> DataFile | None:
        """The file in a row."""
        file = self.store.file(*row)
        return file and msgspec.structs.replace(file, kind=self.kind)


def test_manifest_is_found_by_its_path_alone(
    history: Dataset, rendering: Callable[[], SnapshotManifests]
) -> None:
    rendered, elsewhere = rendering(), rendering()
    for version in range(1, VERSIONS + 1):
        for name in listed(rendered, history, "v3", version):
            assert elsewhere.find(served(history, "v3"), name) == rendered.find(served(history, "v3"), name)


@pytest.mark.parametrize("variant", ["v3", "v2"])
def test_manifests_of_a_part_list_its_files(
    stores: Stores, history: Dataset, tmp_path: Path, variant: str
) -> None:
    def new() -> SnapshotManifests:
        return snapshot_manifests(stores, tmp_path, visible_part)

    rendered = new()
    form = rendered.forms.of(served(history, variant, PART))
    whole = rendered.forms.of(served(history, variant))
    assert form.digest != whole.digest
    dataset, found = history, {}
    for version in range(1, VERSIONS + 1):
        live = stores.timeline.live_files(history.tenant_id, history.id, version, None)
        shown = [each for file in live if (each := visible_part(history, file))]
        found[version] = listed(rendered, history, variant, version, PART)
        entries = [entry for _, entries in found[version].values() for entry in entries]
        assert sorted(entry["data_file"]["file_path"] for entry in entries) == sorted(
            f"{form.location}/{each.path}" for each in shown
        )
        assert all(entry["data_file"]["content"] == 0 for entry in entries)
        for entry in entries:
            assert (entry["status"] == _ADDED) == (entry["snapshot_id"] == version)
    # By another process, and after the versions have expired.
    dataset = expire(stores, history, VERSIONS)
    for version, names in found.items():
        assert listed(new(), dataset, variant, version, PART) == names
        for name in names:
            assert new().find(served(dataset, variant, PART), name)
            for other in (EVERYTHING, RowAccess(masked=("note",), where=("id = 1",))):
                with pytest.raises(NotFound):
                    rendered.find(served(dataset, variant, other), name)


def expire(stores: Stores, dataset: Dataset, first: int) -> Dataset:
    """Versions before `first` expire, and their files are found to be unused."""
    history = HistoryStore(stores.database)
    place = dataset.tenant_id, dataset.id
    history.advance_start(*place, HistoryPolicy(versions=VERSIONS - first + 1))
    history.expire_files(*place, 0, 1_000)
    return stores.catalog.get(*place)


def test_expired_version_is_listed_until_rows_of_its_files_are_removed(
    stores: Stores, history: Dataset, rendering: Callable[[], SnapshotManifests]
) -> None:
    before = {version: listed(rendering(), history, "v3", version) for version in range(1, VERSIONS + 1)}
    dataset = expire(stores, history, VERSIONS)
    assert dataset.earliest_version == VERSIONS
    for version, found in before.items():
        assert listed(rendering(), dataset, "v3", version) == found
    place = dataset.tenant_id, dataset.id
    assert HistoryStore(stores.database).remove_files(*place, unused_seconds=0, limit=1) == 1
    rendered, lost = rendering(), []
    for version, found in before.items():
        try:
            assert listed(rendered, dataset, "v3", version) == found
        except NotFound:
            lost.append(version)
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert lost[-1] < VERSIONS


@pytest.mark.parametrize("seed", range(4))
def test_manifest_of_an_expired_version_has_the_same_rows_or_is_not_found(
    stores: Stores, history: Dataset, rendering: Callable[[], SnapshotManifests], seed: int
) -> None:
    rendered, dice = rendering(), Random(seed)
    contents = {
        name: rendered.find(served(history), name)
        for version in range(1, VERSIONS + 1)
        for name in listed(rendered, history, "v3", version)
    }
    # Files of versions with a name stay longer than others that were removed later.
    with stores.database.tenant(history.tenant_id) as connection:
        removed = connection.execute(
            select(files.c.path, files.c.added_version).where(files.c.removed_version.is_not(None))
        ).all()
        for path, added_version in dice.sample(removed, len(removed) // 2):
            row = and_(files.c.path == path, files.c.added_version == added_version)
            connection.execute(delete(files).where(row))
    elsewhere, lost = rendering(), 0
    for name, content in contents.items():
        try:
            assert elsewhere.find(served(history), name) == content
        except NotFound:
            lost += 1
    assert 0 < lost < len(contents)


def test_version_whose_files_are_removed_while_it_is_listed_is_not_found(
    stores: Stores, history: Dataset, rendering: Callable[[], SnapshotManifests],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    rendered = rendering()
    dataset = expire(stores, history, VERSIONS)
    form = rendered.forms.of(served(dataset, "v3"))
    read = FileBlockStore.files

    def remove_first(*request: Any) -> Any:
        HistoryStore(stores.database).remove_files(
            dataset.tenant_id, dataset.id, unused_seconds=0, limit=1_000
        )
        return read(*request)

    monkeypatch.setattr(FileBlockStore, "files", remove_first)
    with pytest.raises(NotFound):
        rendered.find(served(dataset, "v3"), list_name(form, VERSIONS // 2))


def test_rendered_bytes_are_used_for_a_time(
    stores: Stores, history: Dataset, rendering: Callable[[], SnapshotManifests]
) -> None:
    now = [0.0]
    rendered = dataclasses.replace(rendering(), clock=lambda: now[0])
    dataset = expire(stores, history, VERSIONS)
    name = list_name(rendered.forms.of(served(dataset, "v3")), VERSIONS // 2)
    content = rendered.find(served(dataset, "v3"), name)
    HistoryStore(stores.database).remove_files(dataset.tenant_id, dataset.id, unused_seconds=0, limit=1_000)
    now[0] = CACHE_SECONDS - 1
    assert rendered.find(served(dataset, "v3"), name) == content
    now[0] = CACHE_SECONDS
    with pytest.raises(NotFound):
        rendered.find(served(dataset, "v3"), name)


def test_document_of_before_a_clean_is_found_as_long_as_the_files_of_its_versions(
    stores: Stores, history: Dataset, rendering: Callable[[], SnapshotManifests]
) -> None:
    def tables() -> RenderedTables:
        return RenderedTables(
            versions=TableVersionStore(stores.database),
            pending_writes=PendingWriteStore(stores.database),
            forms=rendering().forms,
            documents=ByteCache(2**20),
            snapshots=ByteCache(2**20),
        )

    def found(tables: RenderedTables, path: str) -> bytes:
        tree = MetadataTree(tables=tables, manifests=rendering())
        return tree.find(served(dataset), path.removeprefix("metadata/")).read(0, 2**20)

    own = tables()
    documents = [own.render(served(history), selection) for selection in SnapshotSelection]
    dataset = expire(stores, history, VERSIONS // 2)
    for document in documents:
        assert found(own, document.metadata_path) == document.metadata.text
        # Another process has not rendered it, nor this one.
        assert found(tables(), document.metadata_path) == document.metadata.text
    HistoryStore(stores.database).remove_files(dataset.tenant_id, dataset.id, unused_seconds=0, limit=1_000)
    for document in documents[:2]:
        with pytest.raises(NotFound):
            found(own, document.metadata_path)
    # It has the head only.
    assert found(own, documents[2].metadata_path) == documents[2].metadata.text


def test_commit_changes_few_manifests(
    stores: Stores, tenant_id: str, history: Dataset, rendering: Callable[[], SnapshotManifests],
    running: Callable[[], Job],
) -> None:  # fmt: skip
    rendered = rendering()
    before = set(listed(rendered, history, "v3", VERSIONS))
    added = written_once(0, rows=50, files=1)
    commit = commit_of([running()], [added], read_version=VERSIONS)
    assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)
    after = set(listed(rendered, stores.catalog.get(tenant_id, history.id), "v3", VERSIONS + 1))
    assert len(before) > 8
    # The block of the commit, and that of the last one, whose entries are not added any more.
    assert len(after - before) <= 5


def test_name_of_all_files_reads_no_more_than_it_states(
    history: Dataset, rendering: Callable[[], SnapshotManifests]
) -> None:
    blocks, every = rendering().blocks, FileBlock(0, 2**62)
    at = history.tenant_id, history.id, VERSIONS // 2
    whole = sorted(blocks.files(*at, [every]), key=lambda each: -(each.removed_version or 2**62))
    for vectors in (False, True):
        candidates = [each for each in whole if each.file.deletion_vector or not vectors]
        assert len(candidates) > 1
        answer = blocks.last_files(*at, every, len(candidates) - 1, vectors=vectors)
        assert [each.removed_version for each in answer] == [each.removed_version for each in candidates[:-1]]


@pytest.mark.parametrize(
    "name",
    ["m0x4-1n1{sum}as0-0000000000000000.avro", "snap-1-0000000000000000.avro", "snap-99-{digest}.avro",
     "snap-0-{digest}.avro", "snap-1-{digest}c.avro",
     "m0x4-9999999999999999999n1{sum}as0-{digest}.avro", "m0x4-1n0{sum}as0-{digest}.avro",
     "d0x4-1n0{sum}as0-{digest}.avro", "m\u0660x4-1n1{sum}as0-{digest}.avro", "m0x4-1n99{sum}as0-{digest}.avro",
     "m0x4p1of3-1n1{sum}as0-{digest}.avro", "../m.avro", "d0x64-1n1{sum}es0-{digest}.avro"],
)  # fmt: skip
def test_no_other_name_is_found(
    history: Dataset, rendering: Callable[[], SnapshotManifests], name: str
) -> None:
    rendered = rendering()
    digest = rendered.forms.of(served(history, "v3")).digest
    with pytest.raises(NotFound):
        rendered.find(served(history, "v3"), name.replace("{digest}", digest).replace("{sum}", f"c{0:016x}"))
