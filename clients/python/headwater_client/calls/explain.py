"""Explanations of writes: what a write would touch, and why, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headwater_client.models import Dataset, Operation, WriteExplanation
from headwater_client.transport.connection import Connection, dataset_path, decoded
from headwater_client.transport.encode import row_json, rows_json
from headwater_client.transport.pages import JSON
from headwater_client.write_options import DEFAULTS, WriteOptions


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
