"""What jobs do that write nothing to their dataset: they run beside its writes, in a lane of their own."""

from __future__ import annotations

import msgspec


class ExportTask(msgspec.Struct, frozen=True, kw_only=True, tag_field="task", tag="export"):
    """Run `number` (from 1) of an export: its range is in the run's own row."""

    export_id: str
    number: int


class VerifyTask(msgspec.Struct, frozen=True, kw_only=True, tag_field="task", tag="verify"):
    """Folds the feed up to a version (None: the head when it runs) and compares it with the table."""

    version: int | None = None


TaskRequest = ExportTask | VerifyTask
