"""The merge of rows that are all new, such as those of a load: without live rows and without a repeated key.

The result is that of the general merge, without its steps: no rows are compared or gathered.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from app.kernel.commit.merge.fold import Fold
from app.kernel.commit.merge.outcome import MergeResult, appends, row_counts
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.index.key_hash import Hashes, hash_keys
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.meta_columns import META_FIELDS, META_NAMES, relative_offsets
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.format.rows.staging import JOB_COLUMN


def add_new_rows(
    dataset: DatasetDefinition, current: pa.Table, incoming: pa.Table, intents: Mapping[int, WriteIntent]
) -> MergeResult | None:
    """The result of `merge` for the same arguments; None if there are live rows or deletes, if several rows may have
    one key, or if values are folded.
    """
    if not dataset.keyed or current.num_rows or Fold.of(dataset) is not None:
        return None
    if incoming.num_rows == 0 or not set(META_NAMES).isdisjoint(incoming.column_names):
        return None
    if (incoming.column(OP_COLUMN).to_numpy() != Op.APPEND).any():
        return None
    hashes = hash_keys(encode_keys(incoming, dataset.record_key))
    if _may_repeat(hashes):
        return None
    rows = incoming.select(dataset.schema.names()).cast(dataset.schema.to_arrow()).combine_chunks()
    count = rows.num_rows
    versioned_rows = rows.append_column(META_FIELDS[0], pa.nulls(count, pa.int64()))
    return MergeResult(
        stays=np.zeros(0, dtype=bool),
        rows=versioned_rows.append_column(META_FIELDS[1], relative_offsets(np.arange(count))),
        replaces=np.full(count, -1, dtype=np.int64),
        changes=appends(rows),
        counts=row_counts({"inserted": [incoming.column(JOB_COLUMN).to_numpy()]}, intents),
        conflicts=(),
        quarantined_rows=incoming.slice(0, 0),
        appends_only=True,
        key_hashes=hashes,
    )


def _may_repeat(hashes: Hashes) -> bool:
    """Whether several rows may have one key: then their hashes are equal. Different keys rarely share one."""
    ascending = np.sort(hashes)
    return bool((ascending[1:] == ascending[:-1]).any())
