"""Lookups: the rows of keys, at any version, through the indexes that writes keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.positions import StartingPosition
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.values import ChangePage
from app.core.timeline.errors import VersionExpired
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.version_definition import definition_at
from app.core.timeline.service.version_pins import expired_if_missing
from app.features.reads.service.later_corrections import LaterCorrections
from app.features.reads.values import FoundKeys, KeyQuery
from app.features.versions.service.versions import VersionOf
from app.infra.files.lookups.key_search import FoundTombstone, KeySearch
from app.kernel.codecs.json.json_rows import decode_json_rows
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import DataFile, bucket_file_group, halved_slot
from app.kernel.format.halving import file_groups_of, inside
from app.kernel.format.index.live_key import KeyTombstone
from app.kernel.format.partition.members import (
    columns_of,
    key_fields,
    key_rows,
    member_path,
    member_root,
    with_key_members,
)
from app.kernel.format.rows.meta_columns import META_FIELDS, OFFSET_COLUMN, VERSION_COLUMN
from app.kernel.format.rows.projection import projection
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.format.rows.staged import StagedBatch
from app.kernel.format.rows.staging import in_slot_order
from app.kernel.sql.conditions.bound_access import BoundAccess, bind_access
from app.kernel.sql.conditions.equality import KeyPart, equality
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.row_access import RowAccess

KEYS_MAX: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RowLookup:
    """Rows by key. A key is in one file group, so a lookup opens the indexes of the files of that group."""

    catalog: DatasetLookup
    timeline: VersionReader
    versions: VersionOf
    search: KeySearch
    changes: ReadChanges
    later: LaterCorrections

    def keys(self, dataset: Dataset, texts: Sequence[str], pointer: str) -> pa.Table:
        """The keys in JSON objects of the key fields. `pointer`: to the objects in the request.

        Raises InvalidRequest, SchemaMismatch.
        """
        definition = dataset.definition
        if not definition.keyed:
            detail = "the dataset has no record_key; read its rows with a filter"
            raise InvalidRequest(f"key: {detail}", [FieldError(pointer=pointer, detail=detail)])
        if not 1 <= len(texts) <= KEYS_MAX:
            detail = f"expected 1–{KEYS_MAX} keys, got {len(texts)}"
            raise InvalidRequest(f"keys: {detail}", [FieldError(pointer=pointer, detail=detail)])
        fields = with_key_members(definition.schema, definition.record_key).select(key_fields(definition))
        keys = decode_json_rows(f"[{','.join(texts)}]".encode(), fields, pointer=pointer)
        return key_rows(keys.select(fields.names()), definition.record_key)

    def find(self, dataset: Dataset, keys: pa.Table, query: KeyQuery, access: RowAccess) -> FoundKeys:
        """The row of each key that the access shows, with the version and the offset of the change that set its values.

        `keys`: the key columns. Raises InvalidRequest, VersionExpired, NotFound (no version has the tag), CorruptFile,
        MaskedColumn, GrantNotApplicable.
        """
        version = self.versions.find(dataset, version=query.version, as_of=query.as_of, tag=query.tag)
        try:
            with expired_if_missing(self.versions.leases, dataset.tenant_id, [(dataset.id, version)]):
                return self._find(dataset, keys, query, access, version)
        except VersionExpired:
            if any(choice is not None for choice in (query.version, query.as_of, query.tag)):
                raise
        # The version was the latest when the lookup began, and has expired since.
        return self.find(self.catalog.get(dataset.tenant_id, dataset.id), keys, query, access)

    def history(
        self,
        dataset: Dataset,
        keys: pa.Table,
        since: int | StartingPosition,
        limit: int,
        version: int,
        access: RowAccess,
    ) -> ChangePage:
        """A page of the changes of one key up to a version. Raises what `ReadChanges.page` does."""
        query = FeedQuery(
            limit=limit,
            until=self.timeline.next_offset(dataset.tenant_id, dataset.id, version),
            where=equality(_parts(dataset.definition, keys)),
            access=access,
        )
        return self.changes.page(dataset, since, query)

    def _find(
        self, dataset: Dataset, keys: pa.Table, query: KeyQuery, access: RowAccess, version: int
    ) -> FoundKeys:
        definition = definition_at(self.timeline, dataset, version)
        bound = bind_access(access, dataset.definition.schema, definition.schema)
        bound.refuse_masked(key_fields(definition), "a lookup by key")
        result_schema = projection(definition.schema, query.columns)
        rows = self._rows(
            dataset, definition, keys, _read_schema(definition, result_schema.names(), bound), version
        )
        if bound.where is not None:
            rows = rows.filter(pa.array(matches(bound.where, rows)))
        # The place of each requested key among the found rows; null for a key without a row.
        places = pc.index_in(
            encode_keys(keys, definition.record_key),
            value_set=encode_keys(rows, definition.record_key).combine_chunks(),
        )
        offsets = rows.column(OFFSET_COLUMN)
        offsets = pc.if_else(pc.less(offsets, 0), pa.scalar(None, pa.int64()), offsets)
        return FoundKeys(
            rows=bound.shown(rows.select(result_schema.names())).take(places),
            row_versions=rows.column(VERSION_COLUMN).take(places),
            row_offsets=offsets.take(places),
            version=version,
            schema_id=definition.schema.id,
            corrected=self.later.of_rows(dataset, version, offsets),
        )

    def tombstone(
        self, dataset: Dataset, keys: pa.Table, version: int, access: RowAccess
    ) -> KeyTombstone | None:
        """The tombstone that keeps older rows of a key away, at a version that was found; None if there is none.

        None if its time was over at the commit of the version, or, for the latest version, at the next commit. Also
        None for a reader that may not see all rows, or not the ordering value. Raises CorruptFile.
        """
        definition = definition_at(self.timeline, dataset, version)
        ordering_field = member_root(definition.ordering_field, definition.schema.names())
        bound = bind_access(access, dataset.definition.schema, definition.schema)
        if ordering_field is None or bound.where is not None or bound.hides_any([ordering_field]):
            return None
        try:
            with expired_if_missing(self.versions.leases, dataset.tenant_id, [(dataset.id, version)]):
                found = self._tombstone(dataset, definition, keys, version)
        except VersionExpired:
            return None
        if found is None or not found.keeps_away(None) or found.until < self._time_of(dataset, version):
            return None
        return found.described()

    def _time_of(self, dataset: Dataset, version: int) -> datetime:
        if version < dataset.version:
            times = self.timeline.commit_times(dataset.tenant_id, dataset.id, [version])
            if version in times:
                return times[version]
        return self.timeline.next_commit_time(dataset.tenant_id, dataset.id)

    def _tombstone(
        self, dataset: Dataset, definition: DatasetDefinition, keys: pa.Table, version: int
    ) -> FoundTombstone | None:
        for files, encoded_keys in self._groups(dataset, definition, keys, version):
            for found in self.search.tombstones(definition, files, encoded_keys).values():
                return found
        return None

    def _rows(
        self,
        dataset: Dataset,
        definition: DatasetDefinition,
        keys: pa.Table,
        schema: pa.Schema,
        version: int,
    ) -> pa.Table:
        """The rows of the keys at the version, in any order, each once."""
        found_rows = (
            self.search.rows(definition, files, encoded_keys, schema)
            for files, encoded_keys in self._groups(dataset, definition, keys, version)
        )
        return pa.concat_tables([schema.empty_table(), *found_rows])

    def _groups(
        self, dataset: Dataset, definition: DatasetDefinition, keys: pa.Table, version: int
    ) -> Iterator[tuple[list[DataFile], pa.ChunkedArray]]:
        """The files of each file group that may have some of the keys, by commit, and these, canonical."""
        sorted_keys, parts = in_slot_order(keys, definition)
        names = [_file_groups(part) for part in parts]
        every = list(chain.from_iterable(names))
        groups: dict[str, list[DataFile]] = {}
        for file in self.timeline.live_files(dataset.tenant_id, dataset.id, version, every):
            groups.setdefault(file.file_group, []).append(file)
        first = 0
        for part, own in zip(parts, names, strict=True):
            rows = sorted_keys.slice(first, part.rows)
            first += part.rows
            for name in own:
                files = sorted(groups.get(name, ()), key=lambda file: (file.added_version or 0, file.path))
                group_keys = _of_group(rows, definition, name)
                if files and group_keys.num_rows:
                    encoded_keys = encode_keys(group_keys, definition.record_key)
                    yield files, encoded_keys


def _parts(definition: DatasetDefinition, keys: pa.Table) -> Iterator[KeyPart]:
    """The parts of the first key."""
    names = definition.schema.names()
    first = columns_of(keys.slice(0, 1), definition.record_key)
    for field, column in zip(first.schema, first.columns, strict=True):
        yield member_path(field.name, names), field.type, column[0].as_py()


def _file_groups(part: StagedBatch) -> list[str]:
    """The file groups that may have the keys of a part."""
    if part.slot.of is None:
        return [bucket_file_group(part.slot)]
    return file_groups_of(part.slot.partition_path, part.numbers or ())


def _of_group(keys: pa.Table, dataset: DatasetDefinition, file_group: str) -> pa.Table:
    slot = halved_slot(file_group)
    return keys if slot is None else keys.filter(pa.array(inside(keys, dataset, slot)))


def _read_schema(
    definition: DatasetDefinition, result_columns: Sequence[str], access: BoundAccess
) -> pa.Schema:
    """The columns to read: those returned, those that decide, and those that identify a row."""
    columns = {*result_columns, *key_fields(definition), *(access.where.columns() if access.where else ())}
    fields = [field for field in definition.schema.to_arrow() if field.name in columns]
    return pa.schema([*(field.with_nullable(True) for field in fields), *META_FIELDS])
