"""What a table holds, by its definition and the rows that it received: one row after another, over dicts.

The model shares no code with the service. It has what the service has for a user: a registration and writes as JSON.
Values are those of JSON, but for decimals (`Decimal`) and maps (sorted tuples of pairs).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

Json = dict[str, Any]
Row = dict[str, Any]
Key = tuple[Any, ...]
WEEK: Final = 7 * 24 * 3600
KEPT: Final = "__debezium_unavailable_value"
"""The value of a field of which a change keeps the stored value."""
_TAKES_BACK: Final = ("-R", "-C")
_INSERTS: Final = ("insert", "bulk_insert")
_REPLACES: Final = ("overwrite", "snapshot")
_ORDERED: Final = ("event_time", "partial", "aggregate")
_CONDITION: Final = re.compile(r"(\w+) (>=|<|=) (-?\d+|'.*')")

_MEMBER: Final = re.compile(r"(\w+): (\w+(?:\([^)]*\))?)")


@dataclass(frozen=True, kw_only=True)
class Tombstone:
    """The trace of a delete: its ordering value, and the last time at which a row is compared with it, in seconds."""

    value: Any
    until: float


@dataclass(frozen=True, kw_only=True)
class State:
    """A table at one version. `live`: rows by key. `heap`: rows of a dataset without a key. `waiting`: postponed writes
    with the times of their commits, and how long the tombstones of their deletes last.
    """

    live: dict[Key, Row] = field(default_factory=dict)
    tombstones: dict[Key, Tombstone] = field(default_factory=dict)
    heap: list[Row] = field(default_factory=list)
    waiting: list[tuple[Json, float, int]] = field(default_factory=list)

    def copy(self) -> State:
        return State(
            live=dict(self.live),
            tombstones=dict(self.tombstones),
            heap=list(self.heap),
            waiting=list(self.waiting),
        )


class Refused(Exception):
    """The write fails as a whole."""


class Model:
    """One dataset. `state`: the table now. `versions`: the states that were noted, by version."""

    def __init__(self, registration: Mapping[str, Any]) -> None:
        self.types: dict[str, str] = {each["name"]: each["type"] for each in registration["schema"]["fields"]}
        self.key: list[str] = list(registration.get("record_key", ()))
        self.ordering_field: str | None = registration.get("ordering_field")
        default = "commit_time" if self.ordering_field is None else "event_time"
        self.mode: str = registration.get("merge_mode") or default
        self.groups: list[Json] = list(registration.get("sequence_groups", ()))
        self.aggregates: dict[str, str] = dict(registration.get("aggregates", {}))
        self.delete_marker: str | None = registration.get("delete_marker")
        self.partitions: list[str] = list(registration.get("partition_by", ()))
        bucket = registration.get("bucket") or {}
        self.postpones: bool = bucket.get("mode") == "postpone" and not bucket.get("fixed_now")
        self.is_ordered = bool(self.key) and self.ordering_field is not None and self.mode in _ORDERED
        kept = (registration.get("deletes") or {}).get("keep_seconds")
        self.keep_seconds: int = (WEEK if kept is None else kept) if self.is_ordered else 0
        self.state = State()
        self.versions: dict[int, State] = {0: State()}
        self.late = 0

    # What the service receives.

    def write(self, write: Json, at: float = 0.0) -> None:
        """Applies a write whose commit is at this time, in seconds. Raises Refused; then nothing has changed."""
        operation = write["operation"]
        keep = self.keep_seconds if write.get("tombstone", True) else 0
        if self.postpones and operation in ("upsert", "delete", "changelog") and "where" not in write:
            self.state.waiting.append((write, at, keep))
            return
        before = self.state.copy()
        try:
            self._apply(write, at, keep)
        except Refused:
            self.state = before
            raise

    def compact(self) -> None:
        """Makes postponed writes visible."""
        waiting, self.state = self.state.waiting, replace(self.state, waiting=[])
        for write, at, keep in waiting:
            self._apply(write, at, keep)

    def note(self, version: int) -> None:
        """Keeps the state under the number of its version."""
        self.versions[version] = self.state.copy()

    def restore(self, version: int) -> None:
        """Brings back the rows, the tombstones and the postponed writes of a version."""
        self.state = self.versions[version].copy()

    def patch(self, deletes: Mapping[str, int]) -> None:
        """Changes how long the tombstones of later deletes last."""
        self.keep_seconds = deletes["keep_seconds"] if self.is_ordered else 0

    # What it must return.

    def rows(self, state: State | None = None) -> Counter[str]:
        """The rows of the table, each as a text that is equal for equal rows."""
        state = state or self.state
        return Counter(map(self.text, state.live.values() if self.key else state.heap))

    def text(self, row: Mapping[str, Any]) -> str:
        """A text that is equal for equal rows of this dataset; values of JSON or of Python."""
        parsed = self.parsed(row)
        return repr({name: _text(parsed[name]) for name in self.types})

    def parsed(self, row: Mapping[str, Any]) -> Row:
        """All fields of a row, absent ones as nulls."""
        return {name: _parsed(kind, row.get(name)) for name, kind in self.types.items()}

    def key_of(self, row: Mapping[str, Any]) -> Key:
        return tuple(row[name] for name in self.key)

    # The operations.

    def _apply(self, write: Json, at: float, keep: int) -> None:
        operation = write["operation"]
        if operation in _REPLACES or "where" in write or operation == "delete_partition":
            self._replace(write)
        elif not self.key:
            self._append(write)
        elif operation in _INSERTS:
            self._insert(write, at)
        elif operation == "changelog":
            facts = write.get("order", "arrival") == "arrival"
            for op, values in write["rows"]:
                row = self.parsed(self._whole(values))
                if facts:
                    self._fact(op, row)
                elif op == "-C":
                    self._correct(row)
                elif op == "-R":
                    self._delete(row, at, keep)
                else:
                    self._put(row, at)
        else:
            for values in write["rows"]:
                row = self.parsed(values)
                marked = operation == "upsert" and self.delete_marker is not None and row[self.delete_marker]
                if operation == "delete" or marked:
                    self._delete(row, at, keep)
                else:
                    self._put(row, at)

    def _whole(self, row: Row) -> Row:
        """A change with the values that it keeps: those of the live row; nulls without one."""
        if KEPT not in row.values():
            return row
        live = self.state.live.get(self.key_of(row), {})
        return {name: live.get(name) if value == KEPT else value for name, value in row.items()}

    def _append(self, write: Json) -> None:
        """Rows without a key: a retraction removes one that is equal."""
        rows = list(self.state.heap)
        changes = write["rows"]
        if write["operation"] != "changelog":
            changes = [["+A", each] for each in changes]
        for op, values in changes:
            row = self.parsed(values)
            if op not in _TAKES_BACK:
                rows.append(row)
                continue
            text = self.text(row)
            at = next((place for place in reversed(range(len(rows))) if self.text(rows[place]) == text), None)
            if at is not None:
                del rows[at]
            elif write.get("on_error") != "quarantine":
                raise Refused("a row to retract is not there")
        self.state.heap[:] = rows

    def _insert(self, write: Json, at: float) -> None:
        rows = [self.parsed(values) for values in write["rows"]]
        existing = {self.key_of(row) for row in rows} & set(self.state.live)
        forgiving = write.get("drop_duplicates") or write.get("on_error") == "quarantine"
        if existing and not forgiving:
            raise Refused("a key is live")
        for row in rows:
            if self.key_of(row) not in existing:
                self._put(row, at)

    def _replace(self, write: Json) -> None:
        """Removes the rows in the scope of the write, and stores its own as they are."""
        rows = [self.parsed(values) for values in write.get("rows", ())]
        in_scope = self._scope(write, rows)
        if not self.key:
            self.state.heap[:] = [row for row in self.state.heap if not in_scope(row)] + rows
            return
        content: dict[Key, Row] = {}
        for row in rows:
            key = self.key_of(row)
            content[key] = self._merged(content[key], row) if key in content else row
        for key in [key for key, row in self.state.live.items() if in_scope(row)]:
            del self.state.live[key]
        for key, row in content.items():
            self.state.live[key] = row
            self.state.tombstones.pop(key, None)

    def _scope(self, write: Json, rows: Sequence[Row]) -> Callable[[Row], bool]:
        scope = write.get("overwrite") or {}
        where = write.get("where") or scope.get("where")
        if where is not None:
            return condition(where)
        if write["operation"] == "delete_partition":
            named = {part.partition("=")[2] for part in write["partitions"]}
            return lambda row: row[self.partitions[0]] in named
        if scope.get("scope") == "partitions":
            own = {tuple(row[name] for name in self.partitions) for row in rows}
            return lambda row: tuple(row[name] for name in self.partitions) in own
        return lambda row: True

    # One row.

    def _fact(self, op: str, row: Row) -> None:
        """What a feed says of its table: the key has this row, or none, whatever was there."""
        key = self.key_of(row)
        self.state.live.pop(key, None)
        self.state.tombstones.pop(key, None)
        if op not in _TAKES_BACK:
            self.state.live[key] = row

    def _tombstone(self, key: Key, at: float) -> Tombstone | None:
        """The tombstone that a row of this commit is compared with."""
        found = self.state.tombstones.get(key)
        return None if found is None or at > found.until else found

    def _is_newer(self, row: Row, at: float) -> bool:
        """Whether the live row, or the tombstone, of its key has a greater value."""
        key, value = self.key_of(row), self._order(row)
        live, tombstone = self.state.live.get(key), self._tombstone(key, at)
        if live is not None:
            return _is_less(value, self._order(live))
        return tombstone is not None and _is_less(value, tombstone.value)

    def _correct(self, row: Row) -> None:
        """The old row of a correction that is a claim: where rows have an order, its new row alone is compared."""
        if not self.is_ordered:
            self._fact("-C", row)

    def _delete(self, row: Row, at: float, keep: int) -> None:
        key, value = self.key_of(row), self._order(row)
        live = self.state.live.get(key)
        if value is not None:
            if self._is_newer(row, at):
                self.late += 1
                return
        elif live is not None:
            value = self._order(live)
        elif keep:
            return
        self._fact("-R", row)
        if keep and value is not None:
            self.state.tombstones[key] = Tombstone(value=value, until=at + keep)

    def _put(self, row: Row, at: float) -> None:
        key, value = self.key_of(row), self._order(row)
        live, tombstone = self.state.live.get(key), self._tombstone(key, at)
        if tombstone is not None and _is_less(value, tombstone.value):
            self.late += 1
            return
        self.state.tombstones.pop(key, None)
        self.state.live[key] = self._first(row) if live is None else self._merged(live, self._first(row))

    def _order(self, row: Row) -> Any:
        """The ordering value of a row; None where there is none, or where nothing is ordered."""
        if not self.is_ordered:
            return None
        assert self.ordering_field is not None
        value: Any = row
        for name in self.ordering_field.split("."):
            value = None if value is None else value[name]
        return value

    def _first(self, row: Row) -> Row:
        """A row as a table of nothing else holds it."""
        held = dict(row)
        for name, function in self.aggregates.items():
            if function == "count":
                held[name] = int(row[name] is not None)
        for group in self.groups:
            if row[group["ordering_field"]] is None:
                held.update(dict.fromkeys(group["fields"]))
        return held

    def _merged(self, live: Row, row: Row) -> Row:
        """The row of a key after another one has arrived, by the merge mode."""
        newer = not _is_less(self._order(row), self._order(live))
        match self.mode:
            case "event_time":
                return row if newer else live
            case "commit_time":
                return row
            case "first":
                return live
        merged = {}
        for name in self.types:
            old, new = live[name], row[name]
            if name in (*self.key, *self.partitions):
                merged[name] = old
            else:
                function = self.aggregates.get(name, "last_non_null")
                merged[name] = _aggregated(function, old, new, newer=newer)
        for group in self.groups:
            old, new = live[group["ordering_field"]], row[group["ordering_field"]]
            source = row if new is not None and not _is_less(new, old) else live
            for name in (group["ordering_field"], *group["fields"]):
                merged[name] = source[name]
        return merged


def _is_less(value: Any, other: Any) -> bool:
    """Whether an ordering value is less than another; null is less than any."""
    if other is None:
        return False
    return value is None or value < other


def _aggregated(function: str, old: Any, new: Any, *, newer: bool) -> Any:
    match function:
        case "first":
            return old
        case "last":
            return new if newer else old
    if old is None or new is None:
        return new if old is None else old
    match function:
        case "last_non_null":
            return new if newer else old
        case "first_non_null":
            return old
        case "sum" | "count" | "collect":
            return old + new
        case "min":
            return min(old, new)
        case "max":
            return max(old, new)
        case "bool_and":
            return old and new
        case "bool_or":
            return old or new
    raise AssertionError(function)


def condition(text: str) -> Callable[[Row], bool]:
    """The rows for which a condition is true: one comparison of a field with a number or a text."""
    match = _CONDITION.fullmatch(text)
    assert match is not None, text
    name, comparison, value = match.groups()
    bound = value[1:-1] if value.startswith("'") else int(value)

    def is_true(row: Row) -> bool:
        found = row[name]
        if found is None:
            return False
        return bool({">=": found >= bound, "<": found < bound, "=": found == bound}[comparison])

    return is_true


def _parsed(kind: str, value: Any) -> Any:
    """A value of JSON, or of Python, as the model has it."""
    if value is None:
        return None
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").partition(",")[2])
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale))
    if kind.startswith("map"):
        return tuple(sorted(value.items() if isinstance(value, dict) else value))
    if kind.startswith("list"):
        return list(value)
    if kind == "date":
        return str(value)
    if kind.startswith("struct"):
        return {
            name: _parsed(member, value.get(name)) for name, member in _MEMBER.findall(kind[len("struct<") :])
        }
    return float(value) if kind == "double" else value


def _text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _text(member) for name, member in value.items()}
    return str(value) if isinstance(value, Decimal) else value
