"""The base files of a version by the commits that wrote them: how many there are, and those of a range of commits.

A row of a file is valid from its `added_version` on, until it is removed, and is never valid again. So of some commits,
the valid rows at a version are found by their number and their greatest `added_version`: the rows at a later version
with both equal are a part of them, and as many. Their checksum shows whether some are not known any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    and_,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    union,
    union_all,
)

from app.core.timeline.repository.data_file_rows import FILE_COLUMNS, data_file
from app.core.timeline.repository.kept_versions import reading_files_of, reading_version
from app.core.timeline.repository.live_files import halves
from app.core.timeline.tables import files
from app.core.timeline.values import FileBlock, FileCounts, ValidFile
from app.infra.db.session import Database
from app.kernel.format.file_group import DataFile, FileKind

WRITTEN: Final = case(
    (files.c.written_version.is_(None), files.c.added_version), else_=files.c.written_version
)
"""The version of the commit that wrote a file, as an index has it. Row level security keeps `coalesce` from indexes."""
_FIRST: Final = bindparam("first", type_=BigInteger)
_END: Final = bindparam("end", type_=BigInteger)
_BASE: Final = and_(files.c.kind == literal_column(f"'{FileKind.BASE.value}'"), files.c.row_count > 0)
_HASH: Final = func.hashtext(files.c.path)
_CHECKSUM: Final = func.hashtextextended(files.c.path, files.c.added_version)
_HASHES: Final = (_HASH.label("hash"), _CHECKSUM.label("row_checksum"))
_SEPARATOR: Final = ","
_MEMBERS: Final = len(FileCounts._fields)


def _part(parts: int) -> ColumnElement[int]:
    """The part of a commit with many files that a file is in, of a power of two."""
    return _HASH.op("&")(parts - 1) if parts > 1 else literal(0)


@lru_cache(maxsize=8)
def _counts(step: int, parts: int) -> Any:
    """The counts of each commit as one text of numbers, which is read faster than as many rows."""
    added = files.c.added_version
    has_vector = files.c.deletion_vector.is_not(None)
    begin = (WRITTEN - WRITTEN % step).label("begin")
    columns = (
        begin,
        WRITTEN.label("written"),
        _part(parts).label("part"),
        added,
        has_vector.label("has_vector"),
        _CHECKSUM.label("row_checksum"),
    )
    valid = union_all(*halves(columns, _BASE, WRITTEN >= _FIRST, WRITTEN < _END)).subquery()
    vectors = valid.c.has_vector
    by_commit = (
        select(
            valid.c.begin,
            valid.c.part,
            func.max(valid.c.written).label("commit"),
            func.count().label("files"),
            func.max(valid.c.added_version).label("latest"),
            func.bit_xor(valid.c.row_checksum).label("checksum"),
            func.count().filter(vectors).label("vectors"),
            func.coalesce(func.max(valid.c.added_version).filter(vectors), 0).label("latest_vector"),
            func.coalesce(func.bit_xor(valid.c.row_checksum).filter(vectors), 0).label("vectors_checksum"),
        )
        .group_by(valid.c.begin, valid.c.part)
        .subquery()
    )
    return select(func.string_agg(func.concat_ws(_SEPARATOR, *by_commit.c), _SEPARATOR))


@lru_cache(maxsize=8)
def _changed_steps(step: int) -> Any:
    """The steps of the rows of files that begin or end to be valid in a range of versions."""
    begin = (WRITTEN - WRITTEN % step).label("begin")
    changes = union(
        *(
            select(begin).where(
                files.c.dataset_id == bindparam("dataset", type_=files.c.dataset_id.type),
                changed > bindparam("since", type_=BigInteger),
                changed <= bindparam("version", type_=BigInteger),
            )
            for changed in (files.c.added_version, files.c.removed_version)
        )
    ).subquery()
    return select(changes.c.begin).limit(bindparam("limit", type_=BigInteger))


class FileBlockStore:
    """Files by the commits that wrote them, in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(
        self, tenant_id: str, dataset_id: str, version: int, *, first: int, end: int, step: int, parts: int
    ) -> list[FileCounts]:
        """The counts of the files that the commits [first, end) wrote, of each `step` commits and part, in any order.

        Raises VersionExpired if files of the version are not known any more, NotFound (dataset gone).
        """
        values = {"dataset": dataset_id, "version": version, "first": first, "end": end}
        with reading_files_of(self._database, tenant_id, dataset_id, version) as connection:
            text: str | None = connection.execute(_counts(step, parts), values).scalar_one()
        numbers = list(map(int, text.split(_SEPARATOR))) if text else []
        return [FileCounts(*numbers[at : at + _MEMBERS]) for at in range(0, len(numbers), _MEMBERS)]

    def changed_steps(
        self, tenant_id: str, dataset_id: str, version: int, *, since: int, step: int, limit: int
    ) -> list[int]:
        """The first commit of each `step` commits whose files differ at a version from those at `since`, before it.

        At most `limit`. Raises VersionExpired if `since` is not kept any more, NotFound (dataset gone).
        """
        values = {"dataset": dataset_id, "version": version, "since": since, "limit": limit}
        with reading_version(self._database, tenant_id, dataset_id, since) as connection:
            return list(connection.execute(_changed_steps(step), values).scalars())

    def files(
        self, tenant_id: str, dataset_id: str, version: int, blocks: Sequence[FileBlock]
    ) -> list[ValidFile]:
        """The files of some blocks at a version, by path. If the version has expired, those that are still known."""
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(_files_of(blocks), {"dataset": dataset_id, "version": version}).all()
        return sorted((_valid_file(row) for row in rows), key=lambda each: each.file.path)

    def last_files(
        self, tenant_id: str, dataset_id: str, version: int, block: FileBlock, limit: int, *, vectors: bool
    ) -> list[ValidFile]:
        """Of the files of a block at a version (`vectors`: of those with a deletion vector), the `limit` that are or
        were valid for the longest time. So a block that is larger than any manifest is not read whole.
        """
        end = files.c.removed_version
        of_kind = files.c.deletion_vector.is_not(None) if vectors else true()
        columns = *FILE_COLUMNS, end, *_HASHES
        query = (
            union_all(*halves(columns, _BASE, of_kind, _in_block(block)))
            .order_by(literal_column(end.name).desc().nulls_first())
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query, {"dataset": dataset_id, "version": version}).all()
        return list(map(_valid_file, rows))

    def file(self, tenant_id: str, dataset_id: str, path: str, added_version: int) -> DataFile | None:
        """The file in a row, by what identifies the row; None if there is none, or not any more."""
        query = select(*FILE_COLUMNS).where(
            files.c.dataset_id == dataset_id, files.c.path == path, files.c.added_version == added_version
        )
        with self._database.tenant(tenant_id) as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else data_file(row)


def _files_of(blocks: Sequence[FileBlock]) -> CompoundSelect[Any]:
    columns = *FILE_COLUMNS, files.c.removed_version, *_HASHES
    return union_all(*halves(columns, _BASE, or_(*map(_in_block, blocks))))


def _in_block(block: FileBlock) -> ColumnElement[bool]:
    in_part = _part(block.parts) == block.part if block.parts > 1 else true()
    return and_(block.first <= WRITTEN, block.end > WRITTEN, in_part)


def _valid_file(row: Any) -> ValidFile:
    return ValidFile(
        file=data_file(row), removed_version=row.removed_version, hash=row.hash, checksum=row.row_checksum
    )
