"""What a write would touch, and why, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headwater_client.connection import Connection, dataset_path, decoded
from headwater_client.encode import row_json, rows_json
from headwater_client.pages import JSON
from headwater_client.values import Dataset, Operation
from headwater_client.write_options import DEFAULTS, WriteOptions


class ExplainedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A live file of a file group. `read`: whether the write reads it, for the reason that `answer` gives."""

    path: str
    kind: str
    partition_path: str
    bucket: int
    size_bytes: int
    live_rows: int
    read: bool
    answer: str


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row that a key has now: the commit and the change that gave it its values, and where it stands."""

    version: int | None
    offset: int | None
    file: str | None
    position: int | None


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the write by its number: the row of its key now, what would become of it, and where it would go."""

    row: int
    key: dict[str, Any]
    hash: str | None
    live: LiveRow | None
    effect: str | None
    partition_path: str | None
    bucket: int | None


class ExplainedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A file group that the write touches. `storing`: the way its rows would be stored, for this `reason`."""

    file_group: str
    partition_path: str
    number: int
    rows: int
    storing: str
    reason: str
    files: tuple[ExplainedFile, ...]
    rewritten_bytes: int
    marked_files: tuple[str, ...]
    keys: tuple[ExplainedKey, ...]


class BucketRule(msgspec.Struct, frozen=True, kw_only=True):
    """How a key finds its file group: the `function` of the `key` fields, modulo `count`."""

    mode: str
    function: str
    key: tuple[str, ...]
    count: int


class WriteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a write would touch if it ran at `version`; of the `group_count` file groups the first are listed."""

    version: int
    operation: str
    index: str | None
    bucket: BucketRule
    group_count: int
    file_groups: tuple[ExplainedGroup, ...]


class ExplainCalls(Connection):
    """Asks what writes would do."""

    async def explain_keys(
        self, dataset: Dataset | str, keys: Sequence[Mapping[str, Any]]
    ) -> WriteExplanation:
        """What an upsert of these keys would touch: where each key is, and how its row would be replaced."""
        params = {"key": [row_json(key) for key in keys]}
        answer = await self._get(f"{dataset_path(dataset)}/explanations", params)
        return decoded(WriteExplanation, answer)

    async def explain_write(
        self,
        dataset: Dataset | str,
        rows: Sequence[Mapping[str, Any]],
        *,
        operation: Operation = "upsert",
        options: WriteOptions = DEFAULTS,
    ) -> WriteExplanation:
        """What a write of these rows (1,000 at most) would touch; nothing is written."""
        source = {"kind": "rows", "rows": msgspec.Raw(rows_json(rows))}
        answer = await self._send(
            "POST",
            f"{dataset_path(dataset)}/explanations",
            body=msgspec.json.encode({"operation": operation, "source": source} | options.members()),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(WriteExplanation, answer)
