"""Small commits to several file groups: one changelog file, and each row at its offset of the feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.changes.repository import ChangelogStore
from app.infra.files import data_sink
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.commit.restore_plan import files_by_group
from app.kernel.format.definition.new_dataset import CreateBucket
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.operation import Operation
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, META_NAMES, resolved_offsets
from tests.support.store_fixtures import Stores
from tests.support.versioned_tables import kind_of
from tests.support.writing import Row, Writing


def row(number: int, n: int = 0) -> Row:
    return {"id": number, "day": "2026-11-23", "n": n, "note": None}


@pytest.fixture(params=["copy_on_write", "merge_on_read full"])
def writing(stores: Stores, tenant_id: str, tmp_path: Path, request: pytest.FixtureRequest) -> Writing:
    """Of a table with four file groups."""
    definition = kind_of(request.param, partition_by=[], bucket=CreateBucket(count=4))
    made = stores.catalog.create(tenant_id, new_id(), definition)
    return Writing(database=stores.database, storage=LocalStorage(tmp_path), dataset=made)


def segments(writing: Writing) -> list[ChangelogSegment]:
    found = writing.catalog.get(writing.tenant_id, writing.dataset.id)
    return ChangelogStore(writing.database).segments(writing.tenant_id, found.id, 0, found.next_offset)


def feed(writing: Writing) -> list[dict[str, Any]]:
    """The changes, each at its offset."""
    reader, changes = ParquetReader(writing.storage), []
    for segment in segments(writing):
        assert segment.first_offset == len(changes), "offsets are dense"
        table = reader.open(segment.file).read()
        corrects = resolved_offsets(table.column(CORRECTS_COLUMN), segment.first_offset)
        at = table.schema.get_field_index(CORRECTS_COLUMN)
        changes += table.set_column(at, CORRECTS_COLUMN, corrects).to_pylist()
        assert table.num_rows == segment.file.row_count
    return changes


def live_rows(writing: Writing) -> list[tuple[int, Row]]:
    """Each live row with the offset of the change that made it."""
    files = writing.timeline.live_files(writing.tenant_id, writing.dataset.id, writing.version, None)
    slices = SliceReader(ParquetReader(writing.storage), VectorReader(writing.storage))
    definition = writing.catalog.get(writing.tenant_id, writing.dataset.id).definition
    found = []
    for group in files_by_group(files).values():
        for block in merged_blocks(slices, definition, group, MemoryBudget(bytes_max=2**26)):
            offsets = block.rows.column(META_NAMES[1]).to_pylist()
            rows = block.rows.drop_columns(list(META_NAMES)).to_pylist()
            found += list(zip(offsets, rows, strict=True))
    return found


def check_offsets(writing: Writing) -> None:
    """Every live row equals the change at its offset, and every correction the change that it takes back."""
    changes = feed(writing)
    values = [{name: change[name] for name in row(0)} for change in changes]
    live = live_rows(writing)
    assert len({offset for offset, _ in live}) == len(live)
    assert all(values[offset] == found for offset, found in live)
    corrected = [at for at, change in enumerate(changes) if change[CORRECTS_COLUMN] is not None]
    assert corrected
    assert all(values[at] == values[changes[at][CORRECTS_COLUMN]] for at in corrected)


def test_small_commit_to_several_file_groups_has_one_changelog_file(writing: Writing) -> None:
    writing.write([row(number) for number in range(40)])
    writing.write([row(number, n=1) for number in range(20, 60)])
    writing.write([row(number) for number in range(5)], Operation.DELETE)
    assert [segment.version for segment in segments(writing)] == [1, 2, 3]
    check_offsets(writing)
    assert len(feed(writing)) == 40 + 20 + 2 * 20 + 5
    assert writing.rows() == sorted([row(at, n=int(at >= 20)) for at in range(5, 60)], key=repr)


def test_rows_of_several_writes_with_one_key_share_a_changelog_file(writing: Writing) -> None:
    jobs = [writing.send([row(number, n=n) for number in range(30)]) for n in range(3)]
    assert writing.run()
    assert {writing.job(job_id).state.value for job_id in jobs} == {"succeeded"}
    writing.write([row(number, n=9) for number in range(30)])
    assert len(segments(writing)) == 2
    check_offsets(writing)


def test_after_a_conflict_the_groups_that_share_a_changelog_file_are_merged_again(writing: Writing) -> None:
    job_id = writing.send([row(number) for number in range(40)])
    writing.engine.before_merge = [lambda: writing.write([row(0, n=7)])]
    assert writing.run()
    first, other, again = (len(groups) for groups in writing.engine.merged)
    assert (first, other, again) == (4, 1, 4)
    assert writing.job(job_id).state.value == "succeeded"
    assert [segment.version for segment in segments(writing)] == [1, 2]
    assert writing.rows() == sorted([row(number) for number in range(40)], key=repr)
    check_offsets(writing)


def test_insert_of_a_live_key_fails_alone_beside_a_shared_changelog_file(writing: Writing) -> None:
    writing.write([row(0)])
    bad = writing.send([row(number) for number in range(10)], Operation.INSERT)
    good = writing.send([row(number) for number in range(10, 50)], Operation.INSERT)
    assert writing.run()
    assert (writing.job(bad).state.value, writing.job(good).state.value) == ("failed", "succeeded")
    assert len(segments(writing)) == 2
    assert len(feed(writing)) == 41


def test_many_changes_of_a_file_group_have_a_file_of_their_own(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing.write([row(number) for number in range(40)])
    monkeypatch.setattr(data_sink, "SMALL_CHANGES_BYTES", 1)
    writing.write([row(number, n=1) for number in range(40)])
    assert [segment.version for segment in segments(writing)] == [1, 2, 2, 2, 2]
    check_offsets(writing)


def test_worker_claims_again_only_if_more_writes_wait(writing: Writing) -> None:
    """A claim that finds nothing costs as much as one that does."""
    for number in range(2):
        writing.send([row(number)])
    worker = writing.worker()
    one = writing.worker(rules=msgspec.structs.replace(worker.rules, group_jobs_max=1))
    assert one.run(writing.tenant_id, writing.dataset.id)
    assert not one.run(writing.tenant_id, writing.dataset.id)
    assert len(writing.announced) == 2
