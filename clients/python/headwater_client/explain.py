"""Explanations of writes: what a write would touch, and why, without running it."""

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
    """A live file of a file group. `read`: whether the write reads it, for the reason in `answer`."""

    path: str
    kind: str
    partition_path: str
    bucket: int
    size_bytes: int
    live_rows: int
    read: bool
    answer: str


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """The live row of a key: the commit and the change that gave it its values, and its position."""

    version: int | None
    offset: int | None
    file: str | None
    position: int | None


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the write by its number: the live row of its key, its effect, and its destination."""

    row: int
    key: dict[str, Any]
    hash: str | None
    live: LiveRow | None
    effect: str | None
    partition_path: str | None
    bucket: int | None


class ExplainedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A file group that the write touches. `storing`: the form in which its rows would be stored, for this `reason`."""

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
    """The file group of a key: the `function` of the `key` fields, modulo `count`."""

    mode: str
    function: str
    key: tuple[str, ...]
    count: int


class WriteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The file groups that a write would touch at `version`; the first of `group_count` are listed."""

    version: int
    operation: str
    index: str | None
    bucket: BucketRule
    group_count: int
    file_groups: tuple[ExplainedGroup, ...]


class ExplainCalls(Connection):
    """Explains writes."""

    async def explain_keys(
        self, dataset: Dataset | str, keys: Sequence[Mapping[str, Any]]
    ) -> WriteExplanation:
        """Explains an upsert of these keys: the position of each key, and how its row would be replaced."""
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
        """Explains a write of these rows (at most 1,000); nothing is written."""
        source = {"kind": "rows", "rows": msgspec.Raw(rows_json(rows))}
        answer = await self._send(
            "POST",
            f"{dataset_path(dataset)}/explanations",
            body=msgspec.json.encode({"operation": operation, "source": source} | options.members()),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(WriteExplanation, answer)
