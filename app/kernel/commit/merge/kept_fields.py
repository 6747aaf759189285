"""Kept fields in a merge: a row that is put takes them from the live row before it, and they are null without one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from app.kernel.commit.merge.incoming_rows import UnitRows
from app.kernel.commit.merge.key_steps import LIVE, UNMADE, States
from app.kernel.commit.merge.numbered_rows import NumberedRows
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.rows.kept_fields import KEPT_COLUMN, keeps_fields, kept_ids

_NO_PLACE = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptFields:
    """`by_field`: by column, which incoming rows keep it (bool). `any`: which keep one."""

    by_field: dict[str, np.ndarray]
    any: np.ndarray

    @classmethod
    def of(cls, dataset: DatasetDefinition, incoming: pa.Table) -> KeptFields | None:
        """Those of the incoming rows; None if no row keeps a field."""
        if not keeps_fields(incoming):
            return None
        texts = incoming.column(KEPT_COLUMN).combine_chunks().dictionary_encode()
        distinct = [kept_ids(text) for text in texts.dictionary.to_pylist()]
        # Null is the last number.
        numbers = texts.indices.fill_null(len(distinct)).to_numpy()
        by_field = {}
        for field in dataset.schema.fields:
            keeps = np.array([field.id in ids for ids in distinct] + [False])
            if keeps.any():
                by_field[field.name] = keeps[numbers]
        return cls(by_field=by_field, any=numbers < len(distinct))

    def resolved(
        self, rows: NumberedRows, number: np.ndarray, members: UnitRows, before: States, causes: np.ndarray
    ) -> np.ndarray:
        """The numbers of new rows: those of incoming rows with the values that they keep.

        `number`: by incoming row, its number in `rows`. `members`, `before`: the rows of some units, and the states
        before each. `causes`: the positions of the rows, which are among the members.
        """
        place_of = np.full(len(number), _NO_PLACE, dtype=np.int64)
        place_of[members.row] = np.arange(len(members.row))
        was_live = before.kind == LIVE
        from_row = was_live & (before.cause != UNMADE)
        # The place of the member that put the row before each.
        previous = np.where(from_row, place_of[before.cause], _NO_PLACE)
        own = place_of[causes]
        new_rows = rows.gather(number[causes])
        for name, by_row in self.by_field.items():
            keeps = by_row[members.row]
            if not keeps[own].any():
                continue
            origin = _origins(np.where(keeps, previous, _NO_PLACE))[own]
            source = np.where(
                keeps[origin],
                np.where(was_live[origin], before.row[origin], _NO_PLACE),
                number[members.row[origin]],
            )
            values = rows.values(name, source)
            fields = new_rows.schema
            new_rows = new_rows.set_column(fields.get_field_index(name), fields.field(name), values)
        return rows.add(new_rows)


def _origins(previous: np.ndarray) -> np.ndarray:
    """For each place the first one that is reached by `previous` (int64), which is negative at the first one."""
    origins = np.where(previous < 0, np.arange(len(previous)), previous)
    while True:
        further = origins[origins]
        if (further == origins).all():
            return origins
        origins = further
