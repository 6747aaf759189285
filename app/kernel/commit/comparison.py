"""The differences between two versions of a table: its rows, its files and its schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from app.kernel.commit.merge.numbered_rows import key_numbers
from app.kernel.commit.merge.values import equal_rows, row_codes
from app.kernel.commit.restore_plan import changed_groups, files_by_group
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.engine_task import EngineTask
from app.kernel.format.file_group import DataFile, FileKind, partition_of, readable_files
from app.kernel.format.halving import largest
from app.kernel.format.schema.schema import Field, Schema

_FilesOfGroups = tuple[tuple[DataFile, ...], ...]
"""The files of each of some file groups."""


class RowDifferences(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="Compared",
    rename={
        "added_rows": "added",
        "removed_rows": "removed",
        "changed_rows": "changed",
        "unchanged_rows": "unchanged",
    },
):
    """The numbers of rows that are only in the later version, only in the earlier one, changed, and unchanged.

    Without a key no row is changed: a row with other values is another row. `values`: by field id, the number of
    changed rows in which it differs.
    """

    added_rows: int = 0
    removed_rows: int = 0
    changed_rows: int = 0
    unchanged_rows: int = 0
    values: dict[int, int] = {}

    def __add__(self, other: RowDifferences) -> RowDifferences:
        ids = {**self.values, **other.values}
        return RowDifferences(
            added_rows=self.added_rows + other.added_rows,
            removed_rows=self.removed_rows + other.removed_rows,
            changed_rows=self.changed_rows + other.changed_rows,
            unchanged_rows=self.unchanged_rows + other.unchanged_rows,
            values={number: self.values.get(number, 0) + other.values.get(number, 0) for number in ids},
        )


class CompareTask(
    EngineTask[RowDifferences],
    frozen=True,
    kw_only=True,
    tag=True,
    rename={
        "dataset_before": "was",
        "dataset_after": "is_",
        "files_before": "before",
        "files_after": "after",
        "equal_groups": "same",
    },
):
    """Compares the rows of file groups at two versions: all groups that may contain the same keys.

    `dataset`: under the later of the two schemas, by which rows are compared. `dataset_before`, `dataset_after`: under
    the schema of each version. `files_before`, `files_after`: by group, in the order of their commits. `equal_groups`:
    groups that have the same files at both versions; their rows are only counted.
    """

    dataset: DatasetDefinition
    dataset_before: DatasetDefinition
    dataset_after: DatasetDefinition
    files_before: _FilesOfGroups = ()
    files_after: _FilesOfGroups = ()
    equal_groups: _FilesOfGroups = ()

    @property
    def size_bytes(self) -> int:
        """The size of its files."""
        groups = (*self.files_before, *self.files_after, *self.equal_groups)
        return sum(file.size_bytes for group in groups for file in group)


def compare_rows(dataset: DatasetDefinition, before: pa.Table, after: pa.Table) -> RowDifferences:
    """Compares two tables with the dataset's columns. Both have all rows of their keys."""
    rows = pa.concat_tables([before, after])
    if not dataset.keyed:
        return _of_bags(row_codes(rows), before.num_rows)
    keys = key_numbers(dataset.record_key, rows)
    old_number = np.full(int(keys.max(initial=-1)) + 1, -1)
    new_number = old_number.copy()
    old_number[keys[: before.num_rows]] = np.arange(before.num_rows)
    new_number[keys[before.num_rows :]] = np.arange(after.num_rows)
    both = np.flatnonzero((old_number >= 0) & (new_number >= 0))
    old_rows, new_rows = before.take(pa.array(old_number[both])), after.take(pa.array(new_number[both]))
    equal = equal_rows(old_rows, new_rows)
    differs = pa.array(~equal)
    old_rows, new_rows = old_rows.filter(differs), new_rows.filter(differs)
    return RowDifferences(
        added_rows=int(((old_number < 0) & (new_number >= 0)).sum()),
        removed_rows=int(((old_number >= 0) & (new_number < 0)).sum()),
        changed_rows=old_rows.num_rows,
        unchanged_rows=int(equal.sum()),
        values=_changed_values(dataset.schema, old_rows, new_rows),
    )


def _of_bags(codes: np.ndarray, before_rows: int) -> RowDifferences:
    """Compares rows without keys: as a multiset of values."""
    size = int(codes.max(initial=-1)) + 1
    old_counts = np.bincount(codes[:before_rows], minlength=size)
    new_counts = np.bincount(codes[before_rows:], minlength=size)
    return RowDifferences(
        added_rows=int(np.maximum(new_counts - old_counts, 0).sum()),
        removed_rows=int(np.maximum(old_counts - new_counts, 0).sum()),
        unchanged_rows=int(np.minimum(old_counts, new_counts).sum()),
    )


def _changed_values(schema: Schema, old_rows: pa.Table, new_rows: pa.Table) -> dict[int, int]:
    counts = {
        field.id: int((~equal_rows(old_rows.select([field.name]), new_rows.select([field.name]))).sum())
        for field in schema.fields
    }
    return {number: count for number, count in counts.items() if count}


class ComparisonPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a comparison, and the number of rows that are unchanged for certain without any task."""

    tasks: tuple[CompareTask, ...]
    unchanged_rows: int


def plan_comparison(
    dataset: DatasetDefinition,
    dataset_before: DatasetDefinition,
    dataset_after: DatasetDefinition,
    files_before: Iterable[DataFile],
    files_after: Iterable[DataFile],
) -> ComparisonPlan:
    """Tasks that never share a key: one per file group that differs; without keys one per partition with a difference.
    Buckets that were halved in between are compared together.

    `dataset`, `dataset_before`, `dataset_after`: see `CompareTask`. `files_before`, `files_after`: all files of the two
    versions.
    """
    old, new = files_by_group(files_before), files_by_group(files_after)
    group_names = changed_groups(old, new)
    units: dict[str, tuple[list[str], list[str]]] = {}
    whole = largest(group_names)
    for group in group_names:
        sides = units.setdefault(whole[group] if dataset.keyed else partition_of(group), ([], []))
        for side, groups in zip(sides, (old, new), strict=True):
            if group in groups:
                side.append(group)
    equal_groups = [readable_files(old[group]) for group in sorted(old.keys() - set(group_names))]
    to_merge = [files for files in equal_groups if any(file.kind is FileKind.LOG for file in files)]
    tasks = [
        CompareTask(
            dataset=dataset,
            dataset_before=dataset_before,
            dataset_after=dataset_after,
            files_before=_groups(old, sides[0]),
            files_after=_groups(new, sides[1]),
        )
        for _, sides in sorted(units.items())
    ]
    # The number of rows in logs is only known after they are merged.
    tasks += [
        CompareTask(
            dataset=dataset,
            dataset_before=dataset_before,
            dataset_after=dataset_after,
            equal_groups=(tuple(files),),
        )
        for files in to_merge
    ]
    unchanged_rows = sum(file.live_rows for files in equal_groups if files not in to_merge for file in files)
    return ComparisonPlan(tasks=tuple(tasks), unchanged_rows=unchanged_rows)


def _groups(files: dict[str, list[DataFile]], names: Sequence[str]) -> _FilesOfGroups:
    return tuple(tuple(readable_files(files[name])) for name in names)


class FilesCompared(msgspec.Struct, frozen=True, kw_only=True):
    """Data files that are only in the later version, or only in the earlier one. `marked`: files in both, with other
    deleted rows.
    """

    added: int
    added_bytes: int
    removed: int
    removed_bytes: int
    marked: int


def compare_files(before: Iterable[DataFile], after: Iterable[DataFile]) -> FilesCompared:
    """Compares the files of two versions."""
    old = {file.path: file for file in before}
    new = {file.path: file for file in after}
    new_files = [new[path] for path in new.keys() - old.keys()]
    old_files = [old[path] for path in old.keys() - new.keys()]
    return FilesCompared(
        added=len(new_files),
        added_bytes=sum(file.size_bytes for file in new_files),
        removed=len(old_files),
        removed_bytes=sum(file.size_bytes for file in old_files),
        marked=sum(
            old[path].deletion_vector != new[path].deletion_vector for path in old.keys() & new.keys()
        ),
    )


class FieldChange(str, Enum):
    """The kind of a field's difference. Narrowed and required are the inverses of widened and relaxed."""

    ADDED = "added"
    DROPPED = "dropped"
    RENAMED = "renamed"
    WIDENED = "widened"
    NARROWED = "narrowed"
    RELAXED = "relaxed"
    REQUIRED = "required"
    REORDERED = "reordered"


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two schemas, of a field with its later name (its earlier name if it was dropped).

    `before`, `after`: its names or types, where they differ; for `reordered` its position among the fields of both.
    """

    change: FieldChange
    field_id: int
    name: str
    before: Any = None
    after: Any = None


def compare_schemas(before: Schema, after: Schema) -> list[FieldDifference]:
    """The differences of two schemas. Fields are matched by id."""
    old = {field.id: field for field in before.fields}
    new = {field.id: field for field in after.fields}
    differences = [
        FieldDifference(change=FieldChange.DROPPED, field_id=field.id, name=field.name, before=field.type)
        for field in before.fields
        if field.id not in new
    ]
    places = {field.id: place for place, field in enumerate(each for each in before.fields if each.id in new)}
    place = 0
    for field in after.fields:
        if field.id not in old:
            differences.append(
                FieldDifference(
                    change=FieldChange.ADDED, field_id=field.id, name=field.name, after=field.type
                )
            )
            continue
        differences += _differences(old[field.id], field, later=after.id >= before.id)
        if places[field.id] != place:
            differences.append(
                FieldDifference(
                    change=FieldChange.REORDERED,
                    field_id=field.id,
                    name=field.name,
                    before=places[field.id],
                    after=place,
                )
            )
        place += 1
    return differences


def _differences(old: Field, new: Field, *, later: bool) -> Iterator[FieldDifference]:
    def difference(change: FieldChange, before: Any = None, after: Any = None) -> FieldDifference:
        return FieldDifference(change=change, field_id=new.id, name=new.name, before=before, after=after)

    if old.name != new.name:
        yield difference(FieldChange.RENAMED, old.name, new.name)
    if old.type != new.type:
        yield difference(FieldChange.WIDENED if later else FieldChange.NARROWED, old.type, new.type)
    if old.nullable != new.nullable:
        yield difference(FieldChange.RELAXED if new.nullable else FieldChange.REQUIRED)
