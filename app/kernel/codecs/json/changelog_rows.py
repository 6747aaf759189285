"""Changes as JSON records: in the forms of the feed, and in Debezium's envelope.

{"op": "+A", "row": {…}}                           +A, -R, -C or +C, or their codes 0–3. The other members of a change
                                                   of the feed (offset, version …) are allowed
{"op": "U", "row": {…}, "before": {…} | null}      an update in one event
{"op": "u", "before": {…} | null, "after": {…}}    c and r put a row, d deletes one, u corrects one.
                                                   Other members are ignored
{"op": "m", "message": {…}}                        a message for other readers, which is ignored
{"schema": …, "payload": an envelope}              the envelope
{"row": {…}, "_change_type": "insert"}             a row of Delta Lake's change data feed
null, also as the payload                          a tombstone, which is ignored

A dataset's vocabulary names the members of the first two but for `row` and `before`. Records with the standard names
are read, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Raw

from app.kernel.codecs.compiled import FAST_PATH_FAULTS, CompiledSchema, compile_schema, quotation_marks
from app.kernel.codecs.faults import Faults, below, shown
from app.kernel.codecs.json.row_reader import RowReader, lacks, read_row
from app.kernel.codecs.json.unavailable_values import (
    UNAVAILABLE,
    UNAVAILABLE_MEMBER,
    is_unavailable,
    may_be_unavailable,
    unavailable_member,
)
from app.kernel.codecs.value_parser import JsonNumber, Members, describe, distinct_members
from app.kernel.format.dataset import DEFAULT_VOCABULARY, Vocabulary, json_member_names
from app.kernel.format.rows.change_schema import ChangeSchema
from app.kernel.format.rows.changelog import DELTA_TYPES, SYMBOLS, UPDATE_SYMBOL, Op
from app.kernel.format.rows.kept_fields import KEPT_FIELD, kept_text
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import Undecodable

PUT_THERE: Final = (Op.APPEND, Op.CORRECT_TO)
_OPS: Final[dict[str | int, Op]] = {
    **{symbol: Op(code) for code, symbol in enumerate(SYMBOLS)},
    **{int(op): op for op in Op},
    UPDATE_SYMBOL: Op.CORRECT_TO,
}
_CODES: Final = [str(int(op)) for op in Op]
_DELTA_OPS: Final = {text: Op(code) for code, text in enumerate(DELTA_TYPES)}
_FEED_MEMBERS: Final = (
    "op",
    "row",
    "before",
    "offset",
    "version",
    "system_time",
    "event_time",
    "corrects_offset",
)
_DELTA_MEMBERS: Final = ("_change_type", "row", "_commit_version", "_commit_timestamp")
_IGNORED: Final = ("source", "transaction", "ts_ms", "ts_us", "ts_ns", "message")
_CORRECTION: Final = (Op.CORRECT_FROM, Op.CORRECT_TO)
# The member that must be null beside the row of an envelope.
_UNWANTED: Final = {"c": "before", "r": "before", "d": "after", "u": None}
_ABSENT: Final = (b"", b"null")
TRUNCATED: Final = (
    "all rows of the source were deleted (op t): delete those of the dataset, and go on after this change"
)


class _FeedChange(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    op: str | int
    row: Raw
    before: Raw = Raw()
    offset: Raw = Raw()
    version: Raw = Raw()
    system_time: Raw = Raw()
    event_time: Raw = Raw()
    corrects_offset: Raw = Raw()


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    op: str
    before: Raw = Raw()
    after: Raw = Raw()
    source: Raw = Raw()
    transaction: Raw = Raw()
    ts_ms: Raw = Raw()
    ts_us: Raw = Raw()
    ts_ns: Raw = Raw()
    message: Raw = Raw()


class _Wrapped(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    payload: _Envelope | None
    schema: Raw = Raw()


class _DeltaChange(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    change_type: str = msgspec.field(name="_change_type")
    row: Raw
    commit_version: Raw = msgspec.field(name="_commit_version", default=Raw())
    commit_timestamp: Raw = msgspec.field(name="_commit_timestamp", default=Raw())


_Decoder: TypeAlias = msgspec.json.Decoder[_FeedChange | None]
_FEED: Final[_Decoder] = msgspec.json.Decoder(_FeedChange | None)
_DEBEZIUM: Final = msgspec.json.Decoder(_Envelope | None)
_WRAPPED: Final = msgspec.json.Decoder(_Wrapped | None)
_DELTA: Final = msgspec.json.Decoder(_DeltaChange | None)


class _Change(NamedTuple):
    """A change of one row. `kept`: its value of `_hw_kept`."""

    op: Op
    row: dict[str, Any]
    kept: str | None = None


class ChangeReader:
    """Reads records that each have one change, or two for a correction.

    The table has `_hw_op` in front, and `_hw_kept` at the end if a row keeps fields.
    """

    def __init__(self, schema: ChangeSchema) -> None:
        rows = schema.rows()
        self._keepable = {field.name: field.id for field in rows.fields if field.name in schema.keepable}
        self._place = schema.place
        self._arrow = schema.to_arrow()
        self._required = schema.required
        self._renamed = _standard_names(schema.vocabulary)
        self._feeds = (_decoder_of(self._renamed), _FEED) if self._renamed else (_FEED,)
        self._rows = RowReader(rows)
        self._put_there = compile_schema(rows.with_required(sorted(schema.required)))

    @property
    def compiled_schema(self) -> CompiledSchema:
        return self._rows.compiled_schema

    def decode_batch(self, texts: Sequence[bytes], ignored_fields: set[str]) -> pa.Table | None:
        changes = _unwrapped(texts, self._feeds)
        if changes is None:
            return None
        rows = self._rows.decode_batch(changes.rows, ignored_fields)
        return None if rows is None else self._complete(changes.ops, rows)

    def _complete(self, ops: Sequence[Op], rows: pa.Table) -> pa.Table | None:
        """The rows with their ops; None if one lacks a value that its op needs."""
        codes = np.array(ops, dtype=np.uint8)
        put_there = np.isin(codes, PUT_THERE)
        if any(lacks(rows.column(name), put_there) for name in self._required):
            return None
        return pa.Table.from_arrays([pa.array(codes), *rows.columns], schema=self._arrow)

    def read(self, value: Any, faults: Faults) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, Members):
            faults.add("", f"expected a change, an object with its op, got {describe(value)}")
            return []
        members = distinct_members(value, "", faults)
        if self._is_renamed(members):
            return self._read_renamed(members, faults)
        if "payload" not in members or "op" in members:
            return self._read_change(members, faults)
        for name in members.keys() - {"schema", "payload"}:
            faults.add(below("", name), f'only "schema" is allowed beside "payload", not {shown(name)}')
        inner = Faults()
        changes = self.read(members["payload"], inner)
        faults.take("/payload", inner)
        return changes

    def _is_renamed(self, members: Mapping[str, Any]) -> bool:
        """Whether the members of a change have the names of the dataset's vocabulary, and not the standard ones."""
        if all(self._renamed.get(name) != "op" for name in members):
            return False
        if members.keys() <= {*self._renamed, "row", "before"}:
            return True
        of_debezium = isinstance(op := members.get("op"), str) and op in {*_UNWANTED, "m", "t"}
        return not (of_debezium or members.keys() <= set(_FEED_MEMBERS))

    def _read_renamed(self, members: dict[str, Any], faults: Faults) -> list[Any]:
        """A change whose members have the names of the dataset's vocabulary."""
        for name in members:
            if name not in self._renamed and name not in ("row", "before"):
                faults.add(below("", name), f'a change has no member {shown(name)}: fields belong in "row"')
        standard = {self._renamed.get(name, name): value for name, value in members.items() if name != "op"}
        standard = {name: value for name, value in standard.items() if name in _FEED_MEMBERS}
        op_name = next(name for name, meaning in self._renamed.items() if meaning == "op")
        op = _op_of(members[op_name])
        if op is None:
            faults.add(below("", op_name), f"expected +A, -R, -C or +C, got {describe(members[op_name])}")
            return []
        return self._read_feed(op, standard, faults)

    def _read_change(self, members: dict[str, Any], faults: Faults) -> list[Any]:
        if "_change_type" in members and "op" not in members:
            return self._read_delta(members, faults)
        value = members.get("op")
        op = _op_of(value)
        if op is not None:
            return self._read_feed(op, members, faults)
        if isinstance(value, str) and value in _UNWANTED:
            return self._read_debezium(value, members, faults)
        if value == "m":
            return []
        if value == "t":
            faults.add("/op", TRUNCATED)
            return []
        got = describe(value) if "op" in members else "none"
        faults.add("/op", f"expected +A, -R, -C or +C, or Debezium's c, r, u or d, got {got}")
        return []

    def _read_feed(self, op: Op, members: dict[str, Any], faults: Faults) -> list[Any]:
        for name in members:
            if name not in _FEED_MEMBERS:
                faults.add(below("", name), f'a change has no member {shown(name)}: fields belong in "row"')
        changes = []
        if members.get("before") is not None:
            if op is not Op.CORRECT_TO:
                faults.add("/before", 'expected null unless the op is "U"')
            changes.append(self._read_row(Op.CORRECT_FROM, "before", members, faults))
        return [*changes, self._read_row(op, "row", members, faults)]

    def _read_delta(self, members: dict[str, Any], faults: Faults) -> list[Any]:
        for name in members:
            if name not in _DELTA_MEMBERS:
                faults.add(below("", name), f'a change has no member {shown(name)}: fields belong in "row"')
        text = members["_change_type"]
        if not isinstance(text, str) or text not in _DELTA_OPS:
            faults.add("/_change_type", f"expected {', '.join(DELTA_TYPES)}, got {describe(text)}")
            return []
        return [self._read_row(_DELTA_OPS[text], "row", members, faults)]

    def _available(
        self, op: str, members: dict[str, Any], faults: Faults
    ) -> tuple[dict[str, Any], list[int]]:
        """The members of an envelope without values that Debezium has not read; those of `after` are those of `before`.

        Also the ids of the fields of which an update has neither: the row keeps the stored value. Then it is no
        correction of `before`, which is not the whole row. An update that cannot keep the value is a fault. A null in
        `before` is no value either: Debezium writes it for fields that the replica identity lacks, and leaves no null
        out of an update.
        """
        kept: list[int] = []
        before, after = members.get("before"), members.get("after")
        if isinstance(before, Members):
            before = Members(
                member
                for member in before
                if not self._is_unavailable(*member) and self._unavailable_member(*member) is None
            )
        if isinstance(after, Members):
            old = dict(before) if isinstance(before, Members) else {}
            stays = not old or all(dict(after).get(name) == old.get(name) for name in self._place)
            row = Members()
            for name, value in after:
                part = self._unavailable_member(name, value)
                if part is not None:
                    faults.add(below("/after", name) + part, UNAVAILABLE_MEMBER)
                elif not self._is_unavailable(name, value):
                    row.append((name, value))
                elif old.get(name) is not None:
                    row.append((name, old[name]))
                elif op == "u" and stays and name in self._keepable:
                    kept.append(self._keepable[name])
                elif op == "u":
                    faults.add(below("/after", name), UNAVAILABLE)
            after = row
        return members | {"before": None if kept else before, "after": after}, kept

    def _is_unavailable(self, name: str, value: Any) -> bool:
        types = self.compiled_schema.types
        return name in types and is_unavailable(value, types[name])

    def _unavailable_member(self, name: str, value: Any) -> str | None:
        types = self.compiled_schema.types
        return unavailable_member(value, types[name]) if name in types else None

    def _read_debezium(self, op: str, members: dict[str, Any], faults: Faults) -> list[Any]:
        count = faults.count
        members, kept = self._available(op, members, faults)
        if faults.count > count:
            return []
        null_name = _UNWANTED[op]
        if null_name is not None and members.get(null_name) is not None:
            faults.add(f"/{null_name}", f'expected null in an envelope of op "{op}"')
        if op == "d":
            return [self._read_row(Op.RETRACT, "before", members, faults)]
        if op != "u":
            return [self._read_row(Op.APPEND, "after", members, faults)]
        changes = []
        if members.get("before") is not None:
            changes.append(self._read_row(Op.CORRECT_FROM, "before", members, faults))
        change = self._read_row(Op.CORRECT_TO, "after", members, faults)
        return [*changes, change._replace(kept=kept_text(kept))]

    def _read_row(self, op: Op, name: str, members: dict[str, Any], faults: Faults) -> _Change:
        inner = Faults()
        compiled_schema = self._put_there if op in PUT_THERE else self._rows.compiled_schema
        row = read_row(members.get(name), compiled_schema, inner)
        faults.take(f"/{name}", inner)
        return _Change(op, row)

    def table(self, contents: Sequence[_Change]) -> pa.Table:
        rows = self._rows.table([change.row for change in contents])
        ops = pa.array([change.op for change in contents], pa.uint8())
        table = pa.Table.from_arrays([ops, *rows.columns], schema=self._arrow)
        kept = pa.array([change.kept for change in contents], KEPT_FIELD.type)
        return table if kept.null_count == len(kept) else table.append_column(KEPT_FIELD, kept)


def _op_of(value: Any) -> Op | None:
    """The op of a symbol or a code, as `parse_json` returns them; None for any other value."""
    if isinstance(value, JsonNumber):
        return _OPS.get(int(value)) if value in _CODES else None
    return _OPS.get(value) if isinstance(value, str) else None


RecordReader: TypeAlias = RowReader | ChangeReader
"""The meaning of records: each is a row, or has changes of rows."""


@functools.lru_cache(maxsize=256)
def reader_of(schema: Schema) -> RecordReader:
    """The reader of JSON records into tables of the schema."""
    return ChangeReader(schema) if isinstance(schema, ChangeSchema) else RowReader(schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParsedChanges:
    """Changes: their ops, their rows as text, and the number of quotation marks in the records outside the rows."""

    ops: list[Op]
    rows: list[bytes]
    marks: int


_Unwrap: TypeAlias = Callable[[Sequence[bytes]], _ParsedChanges]


def _standard_names(vocabulary: Vocabulary) -> dict[str, str]:
    """By name in the vocabulary, the standard name of a member; nothing for the vocabulary with the standard names."""
    if vocabulary == DEFAULT_VOCABULARY:
        return {}
    member_names = json_member_names(vocabulary)
    return {member_names[name]: name for name in _FEED_MEMBERS if name in member_names}


def _decoder_of(standard: dict[str, str]) -> _Decoder:
    """Reads changes of the feed whose members have other names. `standard`: by name, the standard name."""
    names = {name: alias for alias, name in standard.items()}
    change_type = msgspec.defstruct(
        "_RenamedChange",
        [("op", str | int), ("row", Raw), *((name, Raw, Raw()) for name in _FEED_MEMBERS[2:])],
        rename=lambda name: names.get(name, name),
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.json.Decoder(change_type | None)


def _unwrapped(texts: Sequence[bytes], feeds: Sequence[_Decoder]) -> _ParsedChanges | None:
    """The changes in records that are all of one form; None if the records must be parsed one by one.

    `feeds`: the decoders of changes in the form of the feed.
    """
    of_feed: list[_Unwrap] = [partial(_of_feed, decoder) for decoder in feeds]
    for unwrap in (*of_feed, _of_debezium, _of_wrapped, _of_delta):
        try:
            changes = unwrap(texts)
        except FAST_PATH_FAULTS:
            continue
        # As in rows, a repeated member leaves quotation marks unexplained.
        return changes if changes.marks == quotation_marks(b"\n".join(texts)) else None
    return None


def _of_feed(decoder: _Decoder, texts: Sequence[bytes]) -> _ParsedChanges:
    records = [record for record in map(decoder.decode, texts) if record is not None]
    ops: list[Op] = []
    rows: list[bytes] = []
    marks = 2 * len(records)
    for record in records:
        op, old = _OPS.get(record.op), bytes(record.before)
        if op is None or (old not in _ABSENT and op is not Op.CORRECT_TO):
            raise Undecodable
        if old not in _ABSENT:
            ops.append(Op.CORRECT_FROM)
            rows.append(old)
        ops.append(op)
        rows.append(bytes(record.row))
        marks += 2 * isinstance(record.op, str)
    for name in _FEED_MEMBERS[1:]:
        marks += _marks(_values(records, name))
    return _ParsedChanges(ops=ops, rows=rows, marks=marks)


def _of_delta(texts: Sequence[bytes]) -> _ParsedChanges:
    records = [record for record in map(_DELTA.decode, texts) if record is not None]
    try:
        ops = [_DELTA_OPS[record.change_type] for record in records]
    except KeyError:
        raise Undecodable from None
    marks = 4 * len(records)
    for name in ("row", "commit_version", "commit_timestamp"):
        marks += _marks(_values(records, name))
    return _ParsedChanges(ops=ops, rows=_values(records, "row"), marks=marks)


def _of_debezium(texts: Sequence[bytes]) -> _ParsedChanges:
    return _of_envelopes([record for record in map(_DEBEZIUM.decode, texts) if record is not None])


def _of_wrapped(texts: Sequence[bytes]) -> _ParsedChanges:
    records = [record for record in map(_WRAPPED.decode, texts) if record is not None]
    changes = _of_envelopes([record.payload for record in records if record.payload is not None])
    marks = changes.marks + 2 * len(records) + _marks(_values(records, "schema"))
    return _ParsedChanges(ops=changes.ops, rows=changes.rows, marks=marks)


def _of_envelopes(envelopes: Sequence[_Envelope]) -> _ParsedChanges:
    before, after = _values(envelopes, "before"), _values(envelopes, "after")
    ops: list[Op] = []
    rows: list[bytes] = []
    for envelope, old, new in zip(envelopes, before, after, strict=True):
        match envelope.op:
            case "u" if old not in _ABSENT:
                ops += _CORRECTION
                rows += (old, new)
            case "u":
                ops.append(Op.CORRECT_TO)
                rows.append(new)
            case "c" | "r" if old in _ABSENT:
                ops.append(Op.APPEND)
                rows.append(new)
            case "d" if new in _ABSENT:
                ops.append(Op.RETRACT)
                rows.append(old)
            case "m":
                continue
            case _:
                raise Undecodable
    if may_be_unavailable(b"\n".join(rows)):
        raise Undecodable
    marks = 4 * len(envelopes) + _marks(before) + _marks(after)
    for name in _IGNORED:
        marks += _marks(_values(envelopes, name))
    return _ParsedChanges(ops=ops, rows=rows, marks=marks)


def _values(records: Sequence[Any], name: str) -> list[bytes]:
    """The values of a member as raw JSON, empty where it is absent."""
    return list(map(bytes, map(attrgetter(name), records)))


def _marks(values: Sequence[bytes]) -> int:
    """The number of quotation marks of a member: of its values, and of its name where present."""
    return 2 * (len(values) - values.count(b"")) + quotation_marks(b"\n".join(values))
