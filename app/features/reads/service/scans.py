"""Plans scans of a table, and serves their parts: files of the table as they are, or rows that are merged here.

A part is named by the place of its rows among the files of a version, which never change. So a plan is not stored: the
lease of its version is all that is left of it.
"""

from __future__ import annotations

import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Final
from urllib.parse import urlencode

import msgspec
import pyarrow as pa

from app.access.errors import NotFound
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.core.timeline.ports import VersionRows
from app.core.timeline.service.live_groups import LiveGroups
from app.core.timeline.service.plan_files import FilePlanner, FileSelection
from app.core.timeline.service.version_definition import definition_at
from app.features.reads.content import stream_parts
from app.features.reads.errors import ScanTooLarge
from app.features.reads.scans import (
    CreateScan,
    PartOptions,
    PlannedPart,
    PlannedScan,
    ScanQuery,
    link_options,
)
from app.features.reads.service.sealed_places import NotSealed, SealedPlaces
from app.features.reads.tasks import PART_BYTES
from app.features.rendered_files.service.files import RenderedFiles
from app.features.versions.service.versions import VersionOf
from app.infra.files.errors import CorruptFile
from app.infra.files.ports import ObjectStorage
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.row_scan import RowChoice, base_rows, merged_rows
from app.kernel.commit.read_plan import in_globs, plan_read
from app.kernel.commit.table_rows import BaseRows, MergedRows, TableRows, cut_file, table_rows
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind, readable_files
from app.kernel.format.result_file import RunFile
from app.kernel.format.rows.file_columns import file_type
from app.kernel.format.rows.projection import check_partitions, projection
from app.kernel.format.rows.row_sizes import rows_within
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess

SCANS: Final = "scans"
"""The reader of the leases of scanned versions, which all scans of a version share."""
_PARTS_MAX: Final = 10_000
# Of files that are merged for a reader that sees a part of them. Workers merge more of them, many at a time.
_MERGED_BYTES_MAX: Final = 1024**3
# How long a request for a part keeps the version, at least.
_PART_SECONDS: Final = 600.0
_NAME_CHARACTERS_MAX: Final = 4_096
# A URL has 16 KiB, of which the name of a part takes some.
_QUERY_CHARACTERS_MAX: Final = 8 * 1024
_STEP_ROWS: Final = 64 * 1024
_STEP_BYTES: Final = 8 * 1024 * 1024
_FieldIdentity = tuple[int, str, str]


class _PartName(msgspec.Struct, frozen=True, array_like=True):
    """Which rows a part has: [first, end) of a base file of the group, or with file None all of the merged group."""

    file_group: str
    file: str | None = None
    first: Annotated[int, msgspec.Meta(ge=0)] = 0
    end: Annotated[int, msgspec.Meta(ge=0)] = 0


class _SealedGroup(msgspec.Struct, frozen=True, array_like=True):
    """What the seal of a merged group has. `only_base`: whether the rows are those of its base files."""

    file_group: str
    only_base: bool


# A part of a reader that sees a part of the dataset: a rendered file by its digests, or the seal of a file group, whose
# name has values of rows that may be hidden.
_SeenPlace = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{16}/[0-9a-f]{32}|[A-Za-z0-9_-]{300,})$")]
_Place = _PartName | _SeenPlace


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanTables:
    """Scans. A reader that sees a part of a dataset gets rendered files; only one that sees all gets those stored."""

    catalog: DatasetLookup
    timeline: VersionRows
    planner: FilePlanner
    versions: VersionOf
    storage: ObjectStorage
    slices: SliceReader
    memory: MemoryBudget
    rendered: RenderedFiles
    places: SealedPlaces

    def plan(self, dataset: Dataset, new: CreateScan, access: RowAccess = EVERYTHING) -> PlannedScan:
        """The parts of a version, which is kept from now on for the requested time.

        Raises InvalidRequest, NotFound (no version has the name), VersionExpired, ScanTooLarge, MaskedColumn,
        GrantNotApplicable, RenderingUnderWay.
        """
        try:
            return self._plan(dataset, new, access)
        except VersionExpired:
            if any(choice is not None for choice in (new.version, new.as_of, new.tag)):
                raise
        # The version was the latest when the request came, and has expired since.
        return self._plan(self.catalog.get(dataset.tenant_id, dataset.id), new, access)

    def _plan(self, dataset: Dataset, new: CreateScan, access: RowAccess) -> PlannedScan:
        version = self.versions.find(dataset, version=new.version, as_of=new.as_of, tag=new.tag)
        definition = definition_at(self.timeline, dataset, version)
        result_schema = projection(definition.schema, new.columns)
        bound = bind_access(access, dataset.definition.schema, definition.schema)
        check_partitions(definition, new.partitions)
        bound.check_partitions(definition, new.partitions)
        _check_links(new)
        self._keep(dataset, version, new.keep_seconds)
        kinds = (FileKind.BASE,) if new.query is ScanQuery.READ_OPTIMIZED else tuple(FileKind)
        if access.restricted:
            parts = self._parts_seen(dataset, definition, version, new, access)
        else:
            selection = FileSelection(kinds=kinds, globs=new.partitions)
            scans = list(self.planner.scans(dataset, definition, version, selection))
            layouts = _Layouts(self.catalog, dataset, definition.schema, result_schema)
            pieces = table_rows(scans, piece_bytes=sys.maxsize)
            parts = [part for piece in pieces for part in _planned(piece, layouts)]
        if len(parts) > _PARTS_MAX:
            raise ScanTooLarge(
                f"the scan has {len(parts)} parts; one has {_PARTS_MAX} at most: select partitions, compact the "
                "dataset, or use a read job",
                parts=len(parts),
                parts_max=_PARTS_MAX,
            )
        return PlannedScan(
            version=version,
            schema=result_schema,
            columns=new.columns,
            partitions=new.partitions,
            kept_seconds=new.keep_seconds,
            parts=parts,
        )

    def file(
        self,
        dataset: Dataset,
        version: int,
        name: str,
        columns: Sequence[str] | None,
        access: RowAccess = EVERYTHING,
    ) -> RunFile:
        """The file that a part is. Keeps the version.

        Raises InvalidRequest, NotFound (no such part, or one that is no file), VersionExpired, CorruptFile,
        RenderingUnderWay.
        """
        place = _place(name)
        if _is_rendered(place) and access.restricted and version <= dataset.version:
            self._keep(dataset, version, _PART_SECONDS)
            return self._rendered(dataset, access, str(place))
        definition, sources = self._found(dataset, version, name, access)
        result_schema = projection(definition.schema, columns)
        layouts = _Layouts(self.catalog, dataset, definition.schema, result_schema)
        if access.restricted or not (isinstance(sources[0], BaseRows) and layouts.direct(sources[0])):
            raise NotFound(f"part {name[:100]!r} is no file of these columns: read its rows")
        return self._file(sources[0].file)

    def rows(
        self, dataset: Dataset, version: int, name: str, options: PartOptions, access: RowAccess = EVERYTHING
    ) -> Iterator[bytes]:
        """The rows of any part but a rendered file as an Arrow IPC stream, in pieces. Keeps the version.

        Raises InvalidRequest, NotFound (no such part), VersionExpired, CorruptFile, MaskedColumn, GrantNotApplicable.
        """
        definition, sources = self._found(dataset, version, name, access)
        bound = bind_access(access, dataset.definition.schema, definition.schema)
        result_schema = projection(definition.schema, options.columns)
        check_partitions(definition, options.partitions)
        bound.check_partitions(definition, options.partitions)
        schema = pa.schema([field.with_nullable(True) for field in result_schema.to_arrow()])
        choice = RowChoice(where=bound.where)
        tables = (
            bound.shown(rows)
            for source in sources
            for rows in self._rows(definition, source, schema, choice, options.partitions)
        )
        # The first rows are read before a byte is sent: after it, the status of the response is final.
        first = next(tables, None)
        return stream_parts(schema, chain([] if first is None else [first], tables))

    def _found(
        self, dataset: Dataset, version: int, name: str, access: RowAccess
    ) -> tuple[DatasetDefinition, Sequence[TableRows]]:
        """The dataset at a version, which is kept from now on, and the rows of a part.

        Raises NotFound, VersionExpired.
        """
        place = _place(name)
        # A version that does not exist has no parts, either.
        if version > dataset.version or _is_rendered(place):
            raise _no_part(name)
        if isinstance(place, str) != access.restricted:
            raise _no_part(name)
        self._keep(dataset, version, _PART_SECONDS)
        if isinstance(place, str):
            sources = self._group(dataset, version, place, name)
        else:
            sources = [self._source(dataset, version, place, name)]
        return definition_at(self.timeline, dataset, version), sources

    def open(self, file: RunFile) -> pa.NativeFile:
        """The bytes of a file. Raises CorruptFile."""
        return self.storage.open(file.path)

    def _keep(self, dataset: Dataset, version: int, seconds: float) -> None:
        self.versions.leases.acquire(dataset.tenant_id, dataset.id, version, SCANS, seconds)

    def _source(self, dataset: Dataset, version: int, place: _PartName, name: str) -> TableRows:
        """The rows of a part, among the files of its group at the version. Raises NotFound, VersionExpired."""
        live_files = self.timeline.live_files(dataset.tenant_id, dataset.id, version, [place.file_group])
        files = _in_order(live_files)
        if place.file is None:
            if not files:
                raise _no_part(name)
            return MergedRows(files=tuple(files))
        for file in files:
            if file.kind is FileKind.BASE and _file_name(file) == place.file:
                return BaseRows(file=file, first=place.first, end=min(place.end, file.row_count))
        raise _no_part(name)

    def _parts_seen(
        self,
        dataset: Dataset,
        definition: DatasetDefinition,
        version: int,
        new: CreateScan,
        access: RowAccess,
    ) -> list[PlannedPart]:
        """The parts of a reader that sees a part of the dataset: files with what it sees, and groups to merge.

        Raises ScanTooLarge, because the reader does not know how much there is to merge.
        """
        where = bind_access(access, dataset.definition.schema, definition.schema).where
        layouts = _Layouts(
            self.catalog, dataset, definition.schema, projection(definition.schema, new.columns)
        )
        groups, seal = self._groups(dataset, version), self.places.latest()
        only_base = new.query is ScanQuery.READ_OPTIMIZED
        files: list[DataFile] = []
        parts: list[PlannedPart] = []
        merged_bytes = 0
        for batch in groups.batches():
            readable = [file for file in batch if not only_base or file.kind is FileKind.BASE]
            for scan in plan_read(definition, readable, where=where, partitions=new.partitions):
                pieces = table_rows([scan], piece_bytes=sys.maxsize)
                base = [piece.file for piece in pieces if isinstance(piece, BaseRows)]
                if len(base) == len(pieces) and all(map(layouts.renders, base)):
                    files += base
                    continue
                merged_bytes += sum(piece.size_bytes for piece in pieces)
                if merged_bytes > _MERGED_BYTES_MAX:
                    raise ScanTooLarge(
                        "the service would have to merge too many rows for a key that sees a part of them: select "
                        "partitions, or use a read job"
                    )
                # Sizes and numbers of rows would be those of rows that may be hidden.
                content = msgspec.msgpack.encode(_SealedGroup(scan.file_group, only_base))
                name = _name(seal.seal(_scope(dataset, version), content))
                parts.append(PlannedPart(name=name, checksum=None, rows=None, size_bytes=None))
        parts += [
            PlannedPart(
                name=_name(f"{file.view}/{file.content}"),
                checksum=file.content,
                rows=file.row_count,
                size_bytes=file.size_bytes,
            )
            for file in self.rendered.require(dataset, definition, access, files)
        ]
        # The order of the groups would show hidden values.
        return sorted(parts, key=lambda part: part.name)

    def _rendered(self, dataset: Dataset, access: RowAccess, place: str) -> RunFile:
        """A rendered file. Raises NotFound unless the reader sees exactly this, RenderingUnderWay."""
        view, content = place.split("/")
        found = self.rendered.find(dataset, access, view, content)
        return RunFile(
            path=found.stored_path(),
            name=f"{content}.parquet",
            row_count=found.entry.row_count,
            size_bytes=found.size_bytes,
            checksum=content,
        )

    def _group(self, dataset: Dataset, version: int, seal: str, name: str) -> Sequence[TableRows]:
        """The rows of a group by its seal. Raises NotFound, VersionExpired, Unavailable."""
        try:
            _, content = self.places.open(_scope(dataset, version), seal)
        except NotSealed:
            raise _no_part(name) from None
        group = msgspec.msgpack.decode(content, type=_SealedGroup)
        live_files = self.timeline.live_files(dataset.tenant_id, dataset.id, version, [group.file_group])
        files = _in_order(file for file in live_files if not group.only_base or file.kind is FileKind.BASE)
        if any(file.kind is FileKind.LOG for file in files):
            return [MergedRows(files=tuple(files))]
        return [BaseRows(file=file, first=0, end=file.row_count) for file in files]

    def _groups(self, dataset: Dataset, version: int) -> LiveGroups:
        return LiveGroups(
            timeline=self.timeline,
            tenant_id=dataset.tenant_id,
            dataset_id=dataset.id,
            version=version,
            kinds=tuple(FileKind),
        )

    def _file(self, file: DataFile) -> RunFile:
        size = self.storage.size(file.path)
        if size != file.size_bytes:
            raise CorruptFile(
                f"{file.path} has {size} bytes, but its commit recorded {file.size_bytes}", path=file.path
            )
        return RunFile(
            path=file.path,
            name=_file_name(file),
            row_count=file.row_count,
            size_bytes=file.size_bytes,
            checksum=file.checksum,
        )

    def _rows(
        self,
        definition: DatasetDefinition,
        source: TableRows,
        schema: pa.Schema,
        choice: RowChoice,
        partitions: Sequence[str] | None,
    ) -> Iterator[pa.Table]:
        """The rows of a part, as the tasks of a read job read them."""
        if isinstance(source, MergedRows):
            tables = merged_rows(
                self.slices, definition, source.files, schema, choice, partitions, self.memory
            )
        elif partitions is None or in_globs(source.file.slot.partition_path, partitions):
            tables = base_rows(self.slices, definition, source.file, schema, choice, source.first, source.end)
        else:
            return
        for rows in tables:
            while rows.num_rows:
                step = rows.slice(0, _STEP_ROWS)
                step = step.slice(0, max(rows_within(step, _STEP_BYTES), 1))
                yield step.cast(schema)
                rows = rows.slice(step.num_rows)


class _Layouts:
    """Which files have the columns of a read as they are."""

    def __init__(
        self, catalog: DatasetLookup, dataset: Dataset, schema: Schema, result_schema: Schema
    ) -> None:
        """`schema`: of the version. `result_schema`: the columns that are read."""
        self._catalog = catalog
        self._dataset = dataset
        self._schema_id = schema.id
        self._schema_columns = _identities(schema)
        self._result_columns = _identities(result_schema)
        self._plain = {schema.id: True}
        self._complete = {schema.id: True}
        self._are_signed = _are_signed(result_schema)

    def direct(self, rows: BaseRows) -> bool:
        """Whether the file can be read as it is: it has no deleted rows, it has the columns that are read under their
        names and types, and none that the schema has not.

        A file of the present layout has signed integers in place of unsigned ones, which clients do not expect.
        """
        file = rows.file
        if file.layout is not None and not self._are_signed:
            return False
        if file.deletion_vector is not None or (rows.first, rows.end) != (0, file.row_count):
            return False
        if file.schema_id not in self._plain:
            file_columns = _identities(self._schema(file.schema_id))
            self._plain[file.schema_id] = self._result_columns <= file_columns <= self._schema_columns
        return self._plain[file.schema_id]

    def renders(self, file: DataFile) -> bool:
        """Whether a rendered file of it has the columns that are read: it has those of the version that the file has,
        under the names and types of the version.
        """
        if file.schema_id not in self._complete:
            ids = {field.id for field in self._schema(file.schema_id).fields}
            self._complete[file.schema_id] = ids >= {each for each, _, _ in self._result_columns}
        return self._are_signed and self._complete[file.schema_id]

    def _schema(self, schema_id: int) -> Schema:
        return self._catalog.schema(self._dataset.tenant_id, self._dataset.id, schema_id).schema


def _are_signed(schema: Schema) -> bool:
    """Whether files of the present layout have the types that clients expect: unsigned integers are stored signed."""
    return all(field.type.equals(file_type(field.type)) for field in schema.to_arrow())


def _identities(schema: Schema) -> frozenset[_FieldIdentity]:
    return frozenset((field.id, field.name, str(field.data_type())) for field in schema.fields)


def _check_links(new: CreateScan) -> None:
    """Raises ScanTooLarge if the options of the parts are too long for URLs."""
    if len(urlencode(link_options(new.columns, new.partitions))) > _QUERY_CHARACTERS_MAX:
        raise ScanTooLarge(
            "the links of the parts would be too long: name fewer columns or partitions, leave them out for all, or "
            "use a read job"
        )


def _planned(piece: TableRows, layouts: _Layouts) -> Iterator[PlannedPart]:
    """The parts of a base file, which is one if it can be read as it is, or of a merged group."""
    if isinstance(piece, MergedRows):
        name = _name(_PartName(piece.files[0].file_group))
        yield PlannedPart(name=name, checksum=None, rows=None, size_bytes=piece.size_bytes)
        return
    file = piece.file
    direct = layouts.direct(piece)
    for each in [piece] if direct else cut_file(file, PART_BYTES):
        yield PlannedPart(
            name=_name(_PartName(file.file_group, _file_name(file), each.first, each.end)),
            checksum=file.checksum if direct else None,
            rows=each.end - each.first if file.deletion_vector is None else None,
            size_bytes=each.size_bytes,
        )


def _in_order(files: Iterable[DataFile]) -> list[DataFile]:
    """Those that have rows, in the order of their commits."""
    return sorted(readable_files(files), key=lambda file: (file.added_version or 0, file.path))


def _file_name(file: DataFile) -> str:
    return file.path.rpartition("/")[2]


def _name(place: _Place) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(place)).decode().rstrip("=")


def _place(name: str) -> _Place:
    """Raises NotFound for a text that is not the name of a part."""
    try:
        raw = urlsafe_b64decode(name[:_NAME_CHARACTERS_MAX] + "=" * (-len(name) % 4))
        place: _Place = msgspec.msgpack.decode(raw, type=_Place)
    except (ValueError, RecursionError, msgspec.DecodeError):
        raise _no_part(name) from None
    if isinstance(place, _PartName) and ("\0" in place.file_group or place.first > place.end):
        raise _no_part(name)
    return place


def _is_rendered(place: _Place) -> bool:
    return isinstance(place, str) and "/" in place


def _scope(dataset: Dataset, version: int) -> str:
    return f"scan {dataset.id} {version}"


def _no_part(name: str) -> NotFound:
    return NotFound(f"the version has no part {name[:100]!r}: parts are those of a scan of this version")
