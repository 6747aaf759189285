"""Plans of scans: the files of a snapshot that may have rows which a filter selects.

The planning is that of `app/core/timeline/service/plan_files.py`. Nothing is stored: a task has the parameters of its
plan, and the file group that its files begin with.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from app.access.errors import NotFound
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.plan_files import FilePlanner, ReachedGroup, reached_groups
from app.core.timeline.service.version_definition import definition_at
from app.features.iceberg.plans import (
    CompletedPlan,
    ContentFile,
    FileScanTask,
    PlanRequest,
    ScanTasks,
)
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.table_form import TableForm, TableForms
from app.features.iceberg.service.visible_files import VisibleFiles
from app.features.objects.ports import ServedTable
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.file_group import DataFile
from app.kernel.iceberg.expressions import InvalidExpression, expression_filter
from app.kernel.iceberg.manifests import DELETION_VECTOR_OFFSET
from app.kernel.iceberg.omitted_columns import without_columns
from app.kernel.iceberg.partition_specs import (
    PARTITIONED_ID,
    UNPARTITIONED_ID,
    PartitionColumn,
    json_values,
    partition_columns,
    values_of,
)
from app.kernel.sql.conditions.tree import Filter

TASKS_MAX: Final = 1_000
"""How many files a response has, about: all of a file group are in one."""
COMPARISONS_MAX: Final = 10_000
"""How many files are compared with a filter for a response, about. The next plan task goes on."""
FILTER_BYTES_MAX: Final = 1024 * 1024
"""The bytes of the filter in a response, which each file has as its residual filter."""
_PLAN_ID_CHARACTERS_MAX: Final = 2_000
_LONG: Final = "completed"


class _Task(msgspec.Struct, frozen=True, array_like=True):
    """The rest of a plan. `first`: the file group that it begins with, or a name before it."""

    version: Annotated[int, msgspec.Meta(ge=1)]
    first: str
    filter: Any
    case_sensitive: bool
    use_snapshot_schema: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanScans:
    """Plans scans of tables.

    `planner`: of versions whose files are known, so that a plan goes on as long as its files are served.
    """

    planner: FilePlanner
    timeline: VersionReader
    forms: TableForms
    deletes: DeleteFiles
    visible: VisibleFiles

    def plan(self, table: ServedTable, request: PlanRequest) -> CompletedPlan:
        """The first tasks of a scan. Raises InvalidRequest, NotFound (no such snapshot), VersionExpired, and in part
        MaskedColumn, GrantNotApplicable, RenderingUnderWay.
        """
        dataset = table.dataset
        if request.start_snapshot_id is not None or request.end_snapshot_id is not None:
            raise InvalidRequest.of_member(
                "start-snapshot-id", "incremental scans are not planned here: plan them from the manifests"
            )
        version = dataset.version if request.snapshot_id is None else request.snapshot_id
        if not 0 < version <= dataset.version and request.snapshot_id is not None:
            raise NotFound(f"the table has no snapshot {version}")
        task = _Task(version, "", request.filter, request.case_sensitive, request.use_snapshot_schema)
        name = _name_of(task)
        tasks = self._tasks(table, task) if version else _NO_TASKS
        plan_id = name if len(name) <= _PLAN_ID_CHARACTERS_MAX else _LONG
        return CompletedPlan(**msgspec.structs.asdict(tasks), plan_id=plan_id)

    def plan_again(self, table: ServedTable, plan_id: str) -> CompletedPlan:
        """The plan with an id, made again. Raises what `plan` does."""
        tasks = self.tasks(table, plan_id)
        return CompletedPlan(**msgspec.structs.asdict(tasks), plan_id=plan_id)

    def tasks(self, table: ServedTable, name: str) -> ScanTasks:
        """The tasks of a plan task. Raises what `plan` does."""
        task = _decoded(name)
        if task.version > table.dataset.version:
            raise _no_task(name)
        return self._tasks(table, task)

    def _tasks(self, table: ServedTable, task: _Task) -> ScanTasks:
        form = self.forms.of(table)
        definition = self._definition(form, task)
        where = _filter(task, form, definition)
        files: list[DataFile] = []
        rest: tuple[str, ...] = ()
        comparisons, tasks_max = 0, _tasks_max(task)
        for group in self._groups(form, definition, task, where):
            files += [file for file in group.files if file.row_count]
            comparisons += group.comparisons
            if len(files) >= tasks_max or comparisons >= COMPARISONS_MAX:
                # No group is between: no name has a control character.
                following = msgspec.structs.replace(task, first=f"{group.name}\1")
                rest = (_encoded(following),)
                break
        return _scan_tasks(form, self.deletes, files, task, rest)

    def _groups(
        self, form: TableForm, definition: DatasetDefinition, task: _Task, where: Filter | None
    ) -> Iterator[ReachedGroup]:
        """The files that may have rows which the filter selects, by file group.

        In part they are chosen by what is visible of them: bounds of whole files depend on hidden rows.
        """
        if not form.in_part:
            return self.planner.base_files(form.dataset, definition, task.version, where, task.first)
        visible = self.visible.of(form, task.version)
        rest = (file for file in visible if file.file_group >= task.first)
        return reached_groups(definition, rest, where)

    def _definition(self, form: TableForm, task: _Task) -> DatasetDefinition:
        """The dataset under the schema whose names the filter has."""
        dataset = form.dataset
        definition = dataset.definition
        if task.use_snapshot_schema:
            definition = definition_at(self.timeline, dataset, task.version)
        return form.visible_definition(definition) if form.in_part else definition


_NO_TASKS: Final = ScanTasks(file_scan_tasks=(), delete_files=(), plan_tasks=())


def _tasks_max(task: _Task) -> int:
    """How many files a response has, about."""
    if task.filter is None:
        return TASKS_MAX
    return max(1, min(TASKS_MAX, FILTER_BYTES_MAX // len(msgspec.json.encode(task.filter))))


def _filter(task: _Task, form: TableForm, definition: DatasetDefinition) -> Filter | None:
    """The filter, which may name the columns that the table is published with."""
    if task.filter is None:
        return None
    schema = without_columns(definition, form.omit).schema if form.omit else definition.schema
    try:
        where = expression_filter(task.filter, schema, case_sensitive=task.case_sensitive)
    except InvalidExpression as error:
        raise InvalidRequest.of_member("filter", str(error)) from None
    form.bound(schema).refuse_masked(where.columns(), "filter")
    return where


def _scan_tasks(
    form: TableForm, deletes: DeleteFiles, files: Sequence[DataFile], task: _Task, rest: tuple[str, ...]
) -> ScanTasks:
    partitions = _Partitions(form.definition)
    delete_files: list[ContentFile] = []
    tasks = []
    for file in files:
        references: tuple[int, ...] = ()
        if file.deletion_vector is not None:
            references = (len(delete_files),)
            delete_files.append(_delete_file(form, deletes, file, partitions))
        tasks.append(
            FileScanTask(
                data_file=_data_file(form, file, partitions),
                residual_filter=True if task.filter is None else task.filter,
                delete_file_references=references,
            )
        )
    return ScanTasks(file_scan_tasks=tuple(tasks), delete_files=tuple(delete_files), plan_tasks=rest)


def _data_file(form: TableForm, file: DataFile, partitions: _Partitions) -> ContentFile:
    spec_id, values = partitions.of(file.slot.partition_path)
    return ContentFile(
        spec_id=spec_id,
        partition=values,
        content="data",
        file_path=form.data_path(file),
        file_format="parquet",
        file_size_in_bytes=form.size_bytes(file),
        record_count=file.row_count,
    )


def _delete_file(
    form: TableForm, deletes: DeleteFiles, file: DataFile, partitions: _Partitions
) -> ContentFile:
    entry = deletes.entry(form, file)
    spec_id, values = partitions.of(file.slot.partition_path)
    is_vector = entry.vector_bytes is not None
    return ContentFile(
        spec_id=spec_id,
        partition=values,
        content="position-deletes",
        file_path=entry.path,
        file_format="puffin" if is_vector else "parquet",
        file_size_in_bytes=entry.size_bytes,
        record_count=entry.cardinality,
        referenced_data_file=entry.data_path,
        content_offset=DELETION_VECTOR_OFFSET if is_vector else None,
        content_size_in_bytes=entry.vector_bytes,
    )


class _Partitions:
    """The specs and values of partitions, by path."""

    def __init__(self, definition: DatasetDefinition) -> None:
        self._columns = partition_columns(definition)
        self._known: dict[str, tuple[int, tuple[Any, ...]]] = {}

    def of(self, path: str) -> tuple[int, tuple[Any, ...]]:
        """The id of the spec of a partition, and its values in the protocol's form."""
        if path not in self._known:
            self._known[path] = _partition(self._columns, path)
        return self._known[path]


def _partition(columns: tuple[PartitionColumn, ...], path: str) -> tuple[int, tuple[Any, ...]]:
    """A partition with a null is planned as without a spec, since PyIceberg 0.12 refuses a plan with a null in it."""
    values = values_of(columns, path) if columns else None
    if values is None or None in values:
        return UNPARTITIONED_ID, ()
    return PARTITIONED_ID, tuple(json_values(columns, values))


def _name_of(task: _Task) -> str:
    """The name of a task whose filter the client has stated. Raises InvalidRequest."""
    try:
        return _encoded(task)
    except OverflowError:
        raise InvalidRequest.of_member("filter", "a whole number in it has more than 64 bits") from None


def _encoded(task: _Task) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(task)).decode().rstrip("=")


def _decoded(name: str) -> _Task:
    """Raises NotFound for a text that is not the name of a task."""
    try:
        raw = urlsafe_b64decode(name + "=" * (-len(name) % 4))
        task = msgspec.msgpack.decode(raw, type=_Task)
    except (ValueError, RecursionError, msgspec.DecodeError):
        raise _no_task(name) from None
    if "\0" in task.first or task.version >= 2**63:
        raise _no_task(name)
    return task


def _no_task(name: str) -> NotFound:
    return NotFound(f"there is no plan task {name[:100]!r}: plan the scan again")
