"""The rows of a table as files: which files a version has, and how a reader gets each.

A reader without a filter or a mask gets data files as they are stored, without the columns of the format itself, and
files of which rows are deleted without these rows, or with a deletion vector. Others get rendered files only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from typing import Final

import msgspec

from app.core.timeline.ports import VersionReader
from app.core.timeline.service.plan_files import FilePlanner
from app.core.timeline.service.version_pins import KeptVersions
from app.features.objects.service.keys import TableKeys
from app.features.objects.service.signatures import LinkSigner
from app.features.objects.values import BUCKET, SHARE, SHARE_VECTORS, table_prefix
from app.features.rendered_files.service.files import RenderedFiles
from app.features.rendered_files.values import RenderedFile
from app.features.sharing.service.table_forms import SharedForm, SharedForms, TableRead
from app.features.sharing.service.version_times import first_version_since
from app.features.sharing.values import SharedTable
from app.infra.files.deletion_vector_file import VectorReader
from app.kernel.delta.actions import ResponseFormat, SharedFile, file_lines, head_lines
from app.kernel.delta.predicates import hinted_filter
from app.kernel.delta.schemas import has_parts_of_other_types
from app.kernel.delta.statistics import StatisticsTexts
from app.kernel.delta.vectors import INLINE_BYTES_MAX, inline_vector
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.deletion_vector import to_bytes
from app.kernel.iceberg.omitted_columns import unsigned_columns
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.prune import may_match
from app.kernel.sql.conditions.tree import Filter

FILES_MAX: Final = 20_000
"""How many files a response has at most."""
_BATCH: Final = 2_000
# Of a query whose first files may be enough.
_LIMITED_BATCH: Final = 4
_ID_BYTES: Final = 16


class TableVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader requests: a version, the latest before a time, or the latest."""

    version: int | None = None
    timestamp: datetime | None = None


class FileHints(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows a reader needs, as far as it says. `limit`: how many rows are enough."""

    predicates: tuple[str, ...] = ()
    json_predicate: str | None = None
    limit: int | None = None


class TableLines(msgspec.Struct, frozen=True, kw_only=True):
    """A response: the version that it is about, its format, and its lines."""

    version: int
    response_format: ResponseFormat
    lines: list[bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """Makes links to the files of a table."""

    keys: TableKeys

    def signer(self, read: TableRead, variant: str) -> TableLinks:
        """What signs links for a reader. Raises Forbidden, Unavailable."""
        now = datetime.now(UTC)
        key = self.keys.issue(read.principal, read.table.dataset, variant, now)
        prefix = f"/{BUCKET}/{table_prefix(read.table.dataset.id, variant)}"
        return TableLinks(signer=LinkSigner(key, read.url, now), prefix=prefix)


@dataclass(frozen=True, kw_only=True, slots=True)
class TableLinks:
    """Signs links to the files of one table. `prefix`: of their paths."""

    signer: LinkSigner
    prefix: str

    def link(self, path: str) -> str:
        """The link to a file, by its path below the table."""
        return self.signer.link(self.prefix + path)

    @property
    def ends_at(self) -> int:
        """When the links end, in milliseconds since the epoch."""
        return milliseconds(self.signer.ends_at)


class _ServedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as the reader gets it. `source`: the data file. `rendering`: None for one that is sent as it is stored."""

    source: DataFile
    rendering: RenderedFile | None = None

    @property
    def row_count(self) -> int:
        return self.source.live_rows if self.rendering is None else self.rendering.row_count

    def shown_path(self) -> str:
        """The path of a rendered file, which depends on what the reader sees only."""
        return "" if self.rendering is None else self.rendering.path


@dataclass(frozen=True, kw_only=True, slots=True)
class TableQueries:
    """Versions, metadata and files of tables."""

    forms: SharedForms
    timeline: VersionReader
    versions: KeptVersions
    planner: FilePlanner
    rendered_files: RenderedFiles
    vectors: VectorReader
    links: Links

    def version(self, table: SharedTable, since: datetime | None) -> int:
        """The latest version, or the first that was committed at a time or later. Raises InvalidRequest, and
        GrantNotApplicable if the recipient cannot read the latest version.
        """
        dataset = table.dataset
        bind_access(table.access, dataset.definition.schema, dataset.definition.schema)
        if since is None:
            return dataset.version
        first = first_version_since(self.timeline, dataset, since)
        if first > dataset.version:
            raise InvalidRequest.of_member(
                "startingTimestamp", "expected a time up to that of the latest version"
            )
        return first

    def metadata(self, read: TableRead, at: TableVersion) -> TableLines:
        """The metadata of a version. Raises InvalidRequest, VersionExpired, GrantNotApplicable."""
        version = self._version(read.table, at)
        form = self.forms.of(read, version, states_version=_is_stated(at))
        return TableLines(
            version=version, response_format=form.format.response_format, lines=head_lines(form.format)
        )

    def files(self, read: TableRead, at: TableVersion, hints: FileHints) -> TableLines:
        """The files of a version that may have the rows which the hints select.

        Raises InvalidRequest, VersionExpired, GrantNotApplicable, RenderingUnderWay.
        """
        table = read.table
        dataset = table.dataset
        version = self._version(table, at)
        form = self.forms.of(read, version, states_version=_is_stated(at))
        where = hinted_filter(
            form.definition.schema, form.access.masked, hints.predicates, hints.json_predicate
        )
        # The rows of a file may all be others than those that a hint selects, so then no number of them is enough.
        limit = None if where is not None or hints.predicates or hints.json_predicate else hints.limit
        lines = head_lines(form.format)
        if version and limit != 0:
            committed_at = None
            if _is_stated(at):
                times = self.timeline.commit_times(dataset.tenant_id, dataset.id, [version])
                committed_at = milliseconds(times[version]) if version in times else None
            table_files: list[_ServedFile] = []
            for batch in self._batches(read, form, version, where, limit):
                table_files += batch
                if len(table_files) > FILES_MAX:
                    raise InvalidRequest.of_member(
                        "predicateHints",
                        "read less of it with predicates, or have its owner compact it",
                        f"the table has more than {FILES_MAX:,} files for this query",
                    )
            if table.access.restricted:
                table_files.sort(key=_ServedFile.shown_path)
            lines += _FileLines(self, read, form, committed_at).of(table_files)
        return TableLines(version=version, response_format=form.format.response_format, lines=lines)

    def _version(self, table: SharedTable, at: TableVersion) -> int:
        dataset = table.dataset
        if at.version is not None and at.timestamp is not None:
            raise InvalidRequest.of_member("timestamp", "expected one of version and timestamp")
        if at.version is not None:
            version = at.version
            if not 0 <= version <= dataset.version:
                raise InvalidRequest.of_member("version", f"expected a version up to {dataset.version}")
        elif at.timestamp is not None:
            version = self.timeline.version_at(dataset.tenant_id, dataset.id, at.timestamp)
            if not version and dataset.version:
                raise InvalidRequest.of_member("timestamp", "expected a time after the first version")
        else:
            return dataset.version
        if version:
            self.versions.check(dataset.tenant_id, dataset.id, version)
        return version

    def _batches(
        self, read: TableRead, form: SharedForm, version: int, where: Filter | None, limit: int | None
    ) -> Iterator[list[_ServedFile]]:
        missing = limit
        for files in self._planned(read, form, version, where, is_limited=limit is not None):
            batch = self._served(read, form, files, where)
            if missing is not None:
                batch, missing = _first(batch, missing)
            yield batch
            if missing is not None and missing <= 0:
                return

    def _planned(
        self, read: TableRead, form: SharedForm, version: int, where: Filter | None, *, is_limited: bool
    ) -> Iterator[list[DataFile]]:
        """The base files with rows, some at a time, and of a limited query few at first. Those of a restricted reader
        are pruned when they are rendered: how their source is pruned would show it bounds of hidden rows.
        """
        in_part = read.table.access.restricted
        groups = self.planner.base_files(
            read.table.dataset, form.definition, version, None if in_part else where
        )
        files: Iterator[DataFile] = (file for group in groups for file in group.files if file.live_rows)
        if in_part:
            # A limit takes the first. Their names are random, and their partitions have hidden values.
            files = iter(sorted(files, key=lambda file: blake2b(file.path.encode()).digest()))
        size = _LIMITED_BATCH if is_limited else _BATCH
        while batch := list(islice(files, size)):
            yield batch
            size = min(size * 4, _BATCH)

    def _served(
        self,
        read: TableRead,
        form: SharedForm,
        files: Sequence[DataFile],
        where: Filter | None,
    ) -> list[_ServedFile]:
        whole_paths = {file.path for file in files if self._serves_stored(read, form, file)}
        others = [file for file in files if file.path not in whole_paths]
        renderings = (
            {
                each.source.path: each
                for each in self.rendered_files.require(
                    read.table.dataset, form.definition, read.table.access, others
                )
                if where is None or may_match(where, each.statistics, form.definition.schema, each.row_count)
            }
            if others
            else {}
        )
        return [
            _ServedFile(source=file, rendering=renderings.get(file.path))
            for file in files
            if file.path in whole_paths or file.path in renderings
        ]

    def _serves_stored(self, read: TableRead, form: SharedForm, file: DataFile) -> bool:
        """Whether the reader gets the file as it is stored."""
        if read.table.access.restricted or not form.files.exchange(file).columns:
            return False
        if file.layout is None and unsigned_columns([form.files.schemas[file.schema_id]]):
            # Readers refuse unsigned numbers of 32 bits.
            return False
        if has_parts_of_other_types(form.files.schemas[file.schema_id], form.format.schema):
            return False
        vector = file.deletion_vector
        return vector is None or (form.format.has_vectors and vector.size_bytes <= INLINE_BYTES_MAX)


class _FileLines:
    """The lines of files."""

    def __init__(
        self, queries: TableQueries, read: TableRead, form: SharedForm, committed_at: int | None
    ) -> None:
        self._form = form
        self._committed_at = committed_at
        self._statistics = StatisticsTexts(form.format.schema, by_id=form.format.by_id)
        self._vectors = queries.vectors
        self._links = queries.links.signer(read, SHARE_VECTORS if form.format.has_vectors else SHARE)

    def of(self, files: Sequence[_ServedFile]) -> list[bytes]:
        """Their lines, in the same order."""
        return file_lines(self._form.format.response_format, [self._shared(file) for file in files])

    def _shared(self, what: _ServedFile) -> SharedFile:
        file, rendering, table = what.source, what.rendering, self._form.format
        vector = None if rendering is not None else file.deletion_vector
        if rendering is not None:
            path, size_bytes = rendering.path, rendering.size_bytes
            row_count, statistics = rendering.row_count, rendering.statistics
        else:
            path, size_bytes = self._form.files.path(file), self._form.files.size_bytes(file)
            # Bounds of rows that are deleted are not those of the rows that are read.
            row_count, statistics = file.row_count, {} if vector else file.statistics
        return SharedFile(
            url=self._links.link(path),
            id=blake2b(path.encode(), digest_size=_ID_BYTES).hexdigest(),
            size_bytes=size_bytes,
            expires_at=self._links.ends_at,
            version=table.version,
            committed_at=self._committed_at,
            statistics=self._statistics.text(row_count, statistics),
            vector=None
            if vector is None
            else inline_vector(to_bytes(self._vectors.read(vector)), vector.cardinality),
        )


def milliseconds(moment: datetime) -> int:
    """A time in milliseconds since the epoch."""
    return int(moment.timestamp() * 1_000)


def _first(files: list[_ServedFile], rows: int) -> tuple[list[_ServedFile], int]:
    """The first files that have this number of rows together, and how many rows are missing then."""
    for number, file in enumerate(files, 1):
        rows -= file.row_count
        if rows <= 0:
            return files[:number], 0
    return files, rows


def _is_stated(at: TableVersion) -> bool:
    return at.version is not None or at.timestamp is not None
