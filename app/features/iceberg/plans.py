"""Requests for plans of scans, and the tasks of plans, as the Iceberg protocol names them."""

from __future__ import annotations

from typing import Any

import msgspec


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """What a scan reads. Members that could only make the response smaller are ignored."""

    snapshot_id: int | None = None
    select: tuple[str, ...] | None = None
    filter: Any = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    min_rows_requested: int | None = None
    stats_fields: tuple[str, ...] | None = None


class PlanTaskRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A plan task, whose file scan tasks are requested."""

    plan_task: str


class ContentFile(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A data file, or a file of deleted rows."""

    spec_id: int
    partition: tuple[Any, ...]
    content: str
    file_path: str
    file_format: str
    file_size_in_bytes: int
    record_count: int
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


class FileScanTask(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A data file to read, and the places of its deleted rows among the delete files.

    `residual_filter`: the filter of the request, or true. Iceberg's Java library fails without it where a table has a
    partition spec.
    """

    data_file: ContentFile
    residual_filter: Any
    delete_file_references: tuple[int, ...] = ()


class ScanTasks(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Files to read, and tasks that have further files."""

    file_scan_tasks: tuple[FileScanTask, ...]
    delete_files: tuple[ContentFile, ...]
    plan_tasks: tuple[str, ...]


class CompletedPlan(ScanTasks, frozen=True, kw_only=True, rename="kebab"):
    """A plan, which is completed at once."""

    plan_id: str
    status: str = "completed"
