"""Small changelog files in the catalogue, and their replacement by merged ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Integer, and_, bindparam, func, insert, select, update

from app.core.timeline.tables import IS_SMALL_CHANGELOG, changelog_files, commits, replaced_changelog_files
from app.features.maintenance.tables import table_maintenance
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.kernel.changelog.merge_plan import SmallFile
from app.kernel.format.file_group import StoredFile

# Made once: each check of a dataset reads it.
_SMALL: Final = (
    select(
        changelog_files.c.path,
        changelog_files.c.size_bytes,
        changelog_files.c.checksum,
        func.coalesce(changelog_files.c.file_rows, changelog_files.c.row_count).label("row_count"),
        changelog_files.c.schema_id,
        changelog_files.c.first_offset,
        func.coalesce(changelog_files.c.file_segments, 1).label("segments"),
        commits.c.committed_at,
    )
    .join(
        commits,
        and_(
            commits.c.dataset_id == changelog_files.c.dataset_id,
            commits.c.version == changelog_files.c.version,
        ),
    )
    .where(
        changelog_files.c.dataset_id == bindparam("dataset"),
        changelog_files.c.first_offset >= bindparam("since"),
        IS_SMALL_CHANGELOG,
    )
    .order_by(changelog_files.c.first_offset)
    .limit(bindparam("at_most", type_=Integer))
)


class ChangelogMergeStore:
    """The changelog files of datasets, in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def small_files(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> list[SmallFile]:
        """Up to `limit` small files that begin at offset `since` or later, by offset. Their beginnings were not cut."""
        values = {"dataset": dataset_id, "since": since, "at_most": limit}
        with self._database.tenant(tenant_id) as connection:
            return [_small_file(row) for row in connection.execute(_SMALL, values)]

    def replace(
        self, tenant_id: str, dataset_id: str, epoch: int, replaced: Sequence[SmallFile], merged: StoredFile
    ) -> bool:
        """Replaces files by one with the same rows in the same order: their segments become those of `merged`.

        False, and nothing is changed, if the claim `epoch` of the dataset's maintenance was lost, or not all segments
        of the files are there any more.
        """
        paths = [each.file.path for each in replaced]
        first, end = replaced[0].first_offset, replaced[-1].end_offset
        with self._database.tenant(tenant_id) as connection:
            if not _is_held(connection, dataset_id, epoch):
                return False
            segments = connection.execute(
                select(changelog_files.c.path, changelog_files.c.first_offset, changelog_files.c.row_count)
                .where(changelog_files.c.dataset_id == dataset_id, any_of(changelog_files.c.path, paths))
                .order_by(changelog_files.c.first_offset)
                .with_for_update()
            ).all()
            if not _are_complete(segments, replaced):
                return False
            connection.execute(
                update(changelog_files)
                .where(changelog_files.c.dataset_id == dataset_id, any_of(changelog_files.c.path, paths))
                .values(
                    path=merged.path,
                    size_bytes=merged.size_bytes,
                    checksum=merged.checksum,
                    first_row=changelog_files.c.first_offset - first,
                    file_rows=end - first,
                    file_segments=len(segments),
                )
            )
            connection.execute(
                insert(replaced_changelog_files),
                [
                    {
                        "dataset_id": dataset_id,
                        "path": each.file.path,
                        "size_bytes": each.file.size_bytes,
                    }
                    for each in replaced
                ],
            )
            return True


def _is_held(connection: Connection, dataset_id: str, epoch: int) -> bool:
    """Whether the claim still holds the dataset; then it does so until the transaction ends."""
    held = (
        select(table_maintenance.c.epoch)
        .where(
            table_maintenance.c.dataset_id == dataset_id,
            table_maintenance.c.epoch == epoch,
            table_maintenance.c.lease_until.is_not(None),
        )
        .with_for_update()
    )
    return connection.execute(held).first() is not None


def _are_complete(segments: Sequence[Any], replaced: Sequence[SmallFile]) -> bool:
    """Whether the segments are those of the files, in their order and without a gap."""
    segment_ranges = [(each.path, each.first_offset, each.first_offset + each.row_count) for each in segments]
    starts = [replaced[0].first_offset, *(end for _, _, end in segment_ranges)]
    if [start for _, start, _ in segment_ranges] != starts[:-1] or starts[-1] != replaced[-1].end_offset:
        return False
    spans: dict[str, tuple[int, int]] = {}
    for path, start, end in segment_ranges:
        spans[path] = (min(start, spans.get(path, (start, end))[0]), end)
    return spans == {each.file.path: (each.first_offset, each.end_offset) for each in replaced}


def _small_file(row: Any) -> SmallFile:
    return SmallFile(
        file=StoredFile(
            path=row.path,
            size_bytes=row.size_bytes,
            checksum=row.checksum,
            row_count=row.row_count,
            schema_id=row.schema_id,
        ),
        first_offset=row.first_offset,
        segments=row.segments,
        committed_at=row.committed_at,
    )
