"""Rows that are merged into a file group: those of a group of writes, or of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from app.infra.files.slices.file_slice import Block
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.rows.changelog import OP_FIELD
from app.kernel.format.rows.kept_fields import KEPT_FIELD
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN

InScope = Callable[[Block], np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class Incoming:
    """Incoming rows: `_hw_op`, the dataset's columns, `_hw_kept` where rows keep fields, `_hw_row`, `_hw_job`; by job
    and row.

    `by_value`: the rows are changes, and each retraction removes a live row that equals it in every value.
    `in_scope`: whether live rows are retracted unless one of these rows has their key. `committed`: an earlier commit
    wrote the rows, so none of them may be rejected any more.
    """

    tables: Iterable[pa.Table]
    intents: Mapping[int, WriteIntent]
    rows: int
    in_scope: InScope | None = None
    committed: bool = False
    by_value: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingKeys:
    """The keys of all incoming rows. `hashes`: uint64, unique, ascending; without keys, of the rows that are retracted
    by value. `encoded_keys`: canonical keys; None if they take too much memory.
    """

    hashes: np.ndarray
    encoded_keys: Sequence[pa.ChunkedArray] | None

    def keys(self) -> pa.ChunkedArray | None:
        """The distinct canonical keys; None if they are not available."""
        if self.encoded_keys is None:
            return None
        chunks = [chunk for part in self.encoded_keys for chunk in part.chunks]
        keys = pa.chunked_array(chunks, pa.large_binary())
        # With as many hashes as keys, no key is repeated.
        return keys if len(self.hashes) == len(keys) else pa.chunked_array([keys.unique()])


def incoming_schema(dataset: DatasetDefinition, *, with_kept_fields: bool = False) -> pa.Schema:
    """The columns of incoming rows. Any of the dataset's may be null, since deletes omit them.

    `with_kept_fields`: with the column of kept fields.
    """
    fields = [field.with_nullable(True) for field in dataset.schema.to_arrow()]
    order = [
        pa.field(ROW_COLUMN, pa.int64(), nullable=False),
        pa.field(JOB_COLUMN, pa.int32(), nullable=False),
    ]
    return pa.schema([OP_FIELD, *fields, *([KEPT_FIELD] if with_kept_fields else []), *order])
