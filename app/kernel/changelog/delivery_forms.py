"""Delivery formats of the feed: an update as one event, as an upsert, or in the format of another system.

All formats are derived from the same changes, and positions are those of the changes in every format.


    two_event      the changes as stored: +A, -R, and for an update -C directly followed by +C
    single_event   an update is one event `U` with the row and, in `before`, its old row; it has the offset of the +C
    retract        only +A and -R: an update is the -R of the old row and the +A of the new one
    upsert         only +A and -R: an update is the +A of the new row, which replaces the row of the same key
    debezium       the envelope of Debezium: `op` c, u or d, `before`, `after`, `source`, `ts_ms`
    delta          the columns of Delta Lake's change data feed beside those of the row

The functions work on whole columns and keep the order of the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.format.dataset import DEFAULT_VOCABULARY, Vocabulary, json_member_names
from app.kernel.format.rows.changelog import DELTA_TYPES, SYMBOLS, UPDATE_SYMBOL, Op

_Codes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.intp]
_Mask = npt.NDArray[np.bool_]


class ChangeForm(str, Enum):
    """The delivery format of changes."""

    TWO_EVENT = "two_event"
    SINGLE_EVENT = "single_event"
    RETRACT = "retract"
    UPSERT = "upsert"
    DEBEZIUM = "debezium"
    DELTA = "delta"

    @property
    def joins_pairs(self) -> bool:
        """Whether one event needs both halves of a correction."""
        return self in (ChangeForm.SINGLE_EVENT, ChangeForm.DEBEZIUM)


@dataclass(frozen=True, kw_only=True, slots=True)
class Events:
    """Changes in a delivery format.

    table: one row per event, with the members of its JSON object as columns; rows of the dataset are structs. An `op`
        of uint8 is a code (0-3); `symbols_of` has its text.
    resume_at: int64, not null, one per event: the position at which a reader resumes that has read everything up to
        and including the event; it never splits a pair. So after a lone first half of a pair it is the position of that
        half: the pair is then delivered again as a whole, not its second half alone.
    """

    table: pa.Table
    resume_at: pa.Int64Array


def symbols_of(form: ChangeForm) -> Sequence[str]:
    """The text of each op code in JSON."""
    return (*SYMBOLS[:3], UPDATE_SYMBOL) if form is ChangeForm.SINGLE_EVENT else SYMBOLS


def in_form(changes: pa.Table, form: ChangeForm, dataset: str) -> Events:
    """The changes as events; `dataset` is the name in a Debezium `source`.

    `changes` has the columns offset int64, op uint8, version int64, system_time timestamp(ms, UTC), event_time, row, a
    struct that is never null, and corrects_offset int64: the change that a -R or -C retracts, null where unknown and
    for +A and +C. An update that is one event has the corrects_offset of its -C. A -C and the +C behind it are an
    update; either may be there alone. The corrected row of a lone +C is unknown, and null in formats that have it; a
    lone -C is a retraction.
    """
    ops: _Codes = changes.column("op").to_numpy()
    offsets = changes.column("offset").to_numpy()
    opens = _opens(ops, offsets, changes.column("version").to_numpy())
    if form in _TWO_EVENTS:
        table = _TWO_EVENTS[form](changes, ops)
        return Events(table=table, resume_at=pa.array(offsets + ~opens, pa.int64()))
    row_places = np.flatnonzero(~opens)
    last = changes.take(pa.array(row_places)) if len(row_places) < len(ops) else changes
    replaces = np.append(False, opens)[row_places]
    if form is ChangeForm.UPSERT:
        table = _with_op(last, ops[row_places], _AS_APPEND_OR_RETRACT)
    elif form is ChangeForm.SINGLE_EVENT:
        table = _single_event(changes, last, row_places, replaces)
    else:
        table = _debezium(changes, last, row_places, replaces, dataset)
    return Events(table=table, resume_at=pa.array(offsets[row_places] + 1, pa.int64()))


def _opens(ops: _Codes, offsets: npt.NDArray[np.int64], versions: npt.NDArray[np.int64]) -> _Mask:
    """Whether each change is a -C that its +C of the same commit directly follows."""
    opens = np.zeros(len(ops), dtype=np.bool_)
    opens[:-1] = (ops[:-1] == Op.CORRECT_FROM) & (ops[1:] == Op.CORRECT_TO)
    opens[:-1] &= (np.diff(offsets) == 1) & (np.diff(versions) == 0)
    return opens


def _two_event(changes: pa.Table, _: _Codes) -> pa.Table:
    return changes


def _retract(changes: pa.Table, ops: _Codes) -> pa.Table:
    return _with_op(changes, ops, _AS_APPEND_OR_RETRACT)


def _delta(changes: pa.Table, ops: _Codes) -> pa.Table:
    return pa.table(
        {
            "row": changes.column("row"),
            "_change_type": _DELTA_TYPES.take(pa.array(ops)),
            "_commit_version": changes.column("version"),
            "_commit_timestamp": changes.column("system_time"),
        }
    )


_AS_APPEND_OR_RETRACT: Final = np.array([Op.APPEND, Op.RETRACT, Op.RETRACT, Op.APPEND], dtype=np.uint8)
_DELTA_TYPES: Final = pa.array(DELTA_TYPES)
_DEBEZIUM_OPS: Final = pa.array(["c", "d", "d", "u"])
_TWO_EVENTS: Final = {
    ChangeForm.TWO_EVENT: _two_event,
    ChangeForm.RETRACT: _retract,
    ChangeForm.DELTA: _delta,
}


def _with_op(changes: pa.Table, ops: _Codes, meaning: _Codes) -> pa.Table:
    at = changes.schema.get_field_index("op")
    return changes.set_column(at, changes.schema.field(at), pa.array(meaning[ops], pa.uint8()))


def _rows(changes: pa.Table, at: _Places, absent: _Mask) -> pa.StructArray:
    return one_array(changes.column("row")).take(pa.array(at, pa.int64(), mask=absent))


def _single_event(changes: pa.Table, last: pa.Table, row_places: _Places, replaces: _Mask) -> pa.Table:
    at = last.schema.get_field_index("corrects_offset")
    corrects = changes.column("corrects_offset").take(pa.array(row_places - replaces))
    table = last.set_column(at, last.schema.field(at), corrects)
    return table.append_column("before", _rows(changes, row_places - 1, ~replaces))


def _debezium(
    changes: pa.Table, last: pa.Table, row_places: _Places, replaces: _Mask, dataset: str
) -> pa.Table:
    ops = last.column("op").to_numpy()
    removes = (ops == Op.RETRACT) | (ops == Op.CORRECT_FROM)
    source = pa.StructArray.from_arrays(
        [
            pa.repeat(pa.scalar(dataset), len(row_places)),
            one_array(last.column("version")),
            one_array(last.column("offset")),
        ],
        names=["dataset", "version", "offset"],
    )
    return pa.table(
        {
            "op": _DEBEZIUM_OPS.take(pa.array(ops)),
            "before": _rows(changes, row_places - replaces, ~(replaces | removes)),
            "after": _rows(changes, row_places, removes),
            "source": source,
            "ts_ms": last.column("system_time").cast(pa.int64()),
        }
    )


def flat(events: pa.Table, form: ChangeForm, vocabulary: Vocabulary = DEFAULT_VOCABULARY) -> pa.Table:
    """The columnar form of events: the fields of the dataset's row beside those of the format.

    two_event, retract, upsert   offset, op (code), system_time, event_time, version, corrects_offset, then the row
    single_event                 the same, then `before`, a struct of the row; op 3 is the update
    delta                        the row, then _change_type, _commit_version, _commit_timestamp
    debezium                     the envelope unchanged: before, after and source are structs

    The vocabulary has the names of system columns. An added column with the name of a dataset's field is called
    `_hw_<name>` instead, so no field is ever hidden.
    """
    if form is ChangeForm.DEBEZIUM:
        return events
    row_type = events.schema.field("row").type
    field_names = {field.name for field in row_type}
    names = [name for name in (*_LEADING, "row", *_TRAILING) if name in events.column_names]
    columns: list[pa.ChunkedArray | pa.Array] = []
    fields: list[pa.Field] = []
    for name in names:
        if name == "row":
            columns += one_array(events.column("row")).flatten()
            fields += list(row_type)
        else:
            columns.append(events.column(name))
            label = vocabulary.of(name)
            field_name = f"_hw_{name}" if label in field_names else label
            fields.append(events.schema.field(name).with_name(field_name))
    return pa.table(columns, schema=pa.schema(fields))


def json_names(form: ChangeForm, vocabulary: Vocabulary) -> dict[str, str]:
    """The names of system columns as members of JSON objects, by column; those of other systems' formats stay."""
    return {} if form in (ChangeForm.DEBEZIUM, ChangeForm.DELTA) else json_member_names(vocabulary)


_LEADING: Final = ("offset", "op", "system_time", "event_time", "version", "corrects_offset")
_TRAILING: Final = ("before", "_change_type", "_commit_version", "_commit_timestamp")


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    values = column.combine_chunks()
    return pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
