"""What names columns of a dataset, and what a change of its schema breaks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Final

import msgspec

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.errors import SchemaInUse
from app.kernel.codecs.faults import shown
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import Fault, InvalidFilter
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess

_SHOWN_MAX: Final = 100


class ReaderKind(str, Enum):
    """What names columns of a dataset in its definition. API keys and recipients of shares do so in their grants."""

    VIEW = "view"
    SOURCE = "source"
    EXPORT = "export"
    WEBHOOK = "webhook"
    KEY = "key"
    RECIPIENT = "recipient"


_ACTIONS: Final = {
    ReaderKind.VIEW: "register another view in its place, or pause it with cascade=pause",
    ReaderKind.SOURCE: "register another source in its place, or pause it with cascade=pause",
    ReaderKind.EXPORT: "register another export in its place, or pause it with cascade=pause",
    ReaderKind.WEBHOOK: "change its columns and its condition, or pause it with cascade=pause",
    ReaderKind.RECIPIENT: "change its grants; from the change on it reads nothing here",
    ReaderKind.KEY: "make a key with other grants, and revoke this one; from the change on it reads nothing here",
}
_EXPOSED_ACTIONS: Final = {
    ReaderKind.RECIPIENT: "change its grants first, so that they name the column by its present name",
    ReaderKind.KEY: "first make a key whose grants name the column by its present name, and revoke this one",
}
_EXPOSED_ACTION: Final = "first register another one, which names the column by its present name"


class ColumnBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the dataset that no longer serves something that names it."""

    column: Annotated[str, msgspec.Meta(examples=["note"])]
    """The column, by its name before the change."""
    detail: Annotated[str, msgspec.Meta(examples=['"note" is dropped'])]
    """What the change does to it."""


class SchemaStep(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset before a change of its schema and after it. They are equal if nothing is changed."""

    before: DatasetDefinition
    after: DatasetDefinition

    def breaks(self, columns: Collection[str], conditions: Sequence[str] = ()) -> tuple[ColumnBreak, ...]:
        """What the change breaks of the columns, and of those of filters. Types only become wider, so filters fit."""
        return tuple(self._lost(self.names(columns, conditions)))

    def names(self, columns: Iterable[str], conditions: Sequence[str] = ()) -> tuple[str, ...]:
        """The columns, and those of filters, that the dataset has."""
        return tuple(
            sorted({*columns, *_columns_of(conditions, self.before.schema)} & set(self.before.schema.names()))
        )

    def may_expose(self, readers: Iterable[ColumnReader]) -> bool:
        """Whether the access of a reader names a column whose name is given to another one."""
        return any(self._given(each.access) for each in readers)

    def exposing(self, readers: Iterable[ColumnReader], earlier: Sequence[Schema]) -> list[ColumnReader]:
        """The readers, with what the step exposes as a break: the access of a reader hides a column by its name, and
        the name is given to another column while the first one is still there under a new name.

        `earlier`: all schemas of the dataset so far.
        """
        fields = {each.id: each for each in self.after.schema.fields}
        exposing = []
        for reader in readers:
            exposed = [
                ColumnBreak(
                    column=name,
                    detail=f"{shown(name)} would be another column, and the one that it was be shown as "
                    f"{shown(fields[number].name)}",
                )
                for name in sorted(self._given(reader.access))
                for number in sorted(
                    {each.id for schema in earlier for each in schema.fields if each.name == name}
                )
                if number in fields and fields[number].name != name
            ]
            if exposed:
                reader = msgspec.structs.replace(reader, breaks=tuple(exposed), exposes=True)
            exposing.append(reader)
        return exposing

    def _given(self, access: RowAccess) -> set[str]:
        """The names in an access that the step gives to columns."""
        before = {(each.name, each.id) for each in self.before.schema.fields}
        new_names = {each.name for each in self.after.schema.fields if (each.name, each.id) not in before}
        return new_names & {*access.masked, *_columns_of(access.where, self.after.schema)}

    def _lost(self, columns: Iterable[str]) -> Iterator[ColumnBreak]:
        fields = {each.id: each for each in self.after.schema.fields}
        for name in columns:
            old, new = _field(self.before.schema, name), _field(self.after.schema, name)
            if old is None or (new is not None and new.id == old.id):
                continue
            now = fields.get(old.id)
            what = "is dropped" if now is None else f"is renamed to {shown(now.name)}"
            also = "" if new is None else ", and its name is given to another column"
            yield ColumnBreak(column=name, detail=f"{shown(name)} {what}{also}")


class ColumnReader(msgspec.Struct, frozen=True, kw_only=True):
    """Something that names columns of a dataset.

    `dataset`: the name of the dataset by which grants decide about it: of a view its own, of a source the one that it
    writes. `access`: what it shows of that dataset. `every_column`: it also has all others, whichever there are.
    `breaks`: what the change of the schema breaks of it; `exposes`: that would show what it hides.
    """

    kind: ReaderKind
    id: str
    name: str | None
    dataset: str
    columns: tuple[str, ...]
    every_column: bool = False
    access: RowAccess = EVERYTHING
    breaks: tuple[ColumnBreak, ...] = ()
    exposes: bool = False

    def shown_to(self, principal: Principal, scope: KeyScope = KeyScope.READ) -> bool:
        """Whether the principal may see it, or do with it what the scope names. Keys are seen by those that may list
        them.
        """
        if self.kind is ReaderKind.KEY:
            return principal.grants is None and KeyScope.MANAGE in principal.scopes
        if not {KeyScope.READ, scope} <= principal.scopes_on(self.dataset):
            return False
        return self.access.within(principal.access(self.dataset))


def delivery_reader(
    kind: ReaderKind,
    reader_id: str,
    name: str | None,
    step: SchemaStep,
    *,
    columns: Collection[str] | None,
    where: str | None,
    access: RowAccess,
) -> ColumnReader:
    """What delivers rows of the dataset elsewhere. `columns`: None for all. `where`: a filter on rows."""
    names = {*(columns or ()), *access.masked}
    conditions = access.where if where is None else (*access.where, where)
    return ColumnReader(
        kind=kind,
        id=reader_id,
        name=name,
        dataset=step.before.name,
        columns=step.names(names, conditions),
        every_column=columns is None,
        access=access,
        breaks=step.breaks(names, conditions),
    )


class BrokenReader(ColumnBreak, frozen=True, kw_only=True):
    """Something that a change of the schema breaks, and what to do about it."""

    kind: ReaderKind
    """What it is. The grants of a `key` name the column."""
    id: str
    """Its id."""
    name: str | None
    """Its name; null for one without."""
    action: str
    """What to do about it."""


def broken_readers(readers: Iterable[ColumnReader]) -> list[BrokenReader]:
    """What is broken, with an entry for each column."""
    return [
        BrokenReader(
            kind=reader.kind,
            id=reader.id,
            name=reader.name,
            column=each.column,
            detail=each.detail,
            action=_EXPOSED_ACTIONS.get(reader.kind, _EXPOSED_ACTION)
            if reader.exposes
            else _ACTIONS[reader.kind],
        )
        for reader in readers
        for each in reader.breaks
    ]


@dataclass(kw_only=True, slots=True)
class SchemaImpact:
    """Decides whether a principal may make a change that breaks readers of the dataset.

    `cascade`: the change is made, and what it breaks pauses. `broken`: what an admitted change breaks.
    """

    principal: Principal
    cascade: bool = False
    broken: list[BrokenReader] = field(default_factory=list)

    def admit(self, readers: Sequence[ColumnReader]) -> None:
        """Raises SchemaInUse if a reader breaks that is not to be paused, or may not be paused by the principal."""
        visible = [each for each in readers if each.shown_to(self.principal)]
        hidden = len(readers) - len(visible)
        fixed = [
            each for each in visible if each.exposes or not each.shown_to(self.principal, KeyScope.MANAGE)
        ]
        self.broken = broken_readers(visible)
        if not readers or (self.cascade and not hidden and not fixed):
            return
        exposing = [each for each in visible if each.exposes]
        raise schema_in_use(self.broken, hidden, exposing or (fixed if self.cascade else ()))


def refuse_broken(readers: Sequence[ColumnReader]) -> None:
    """Raises SchemaInUse if something breaks."""
    if readers:
        raise schema_in_use(broken_readers(readers))


def paused_by(reader: ColumnReader) -> Fault:
    """Why the service pauses something that a change of the schema breaks."""
    reason = "; ".join(each.detail for each in reader.breaks[:3])
    return Fault.of(
        SchemaInUse(f"a change of the schema paused the {reader.kind.value}, which no longer fits: {reason}")
    )


def schema_in_use(
    readers: Sequence[BrokenReader], hidden: int = 0, fixed: Sequence[ColumnReader] = ()
) -> SchemaInUse:
    """The error of a change that is refused. `hidden`: how many others break. `fixed`: what the key may not pause."""
    names = sorted({f"{each.kind.value} {shown(each.name or each.id)}" for each in readers})
    parts = names[:3] + ([f"{len(names) - 3} more"] if len(names) > 3 else [])
    if hidden:
        parts.append(f"{hidden} that this key may not see")
    reason = "change these first, or send cascade=pause, which pauses them"
    if hidden:
        reason = "a key that sees all of the tenant can make the change"
    elif fixed:
        fixed_names = ", ".join(sorted(shown(each.name or each.id) for each in fixed)[:3])
        exposes = any(each.exposes for each in fixed)
        reason = (
            f"{fixed_names} would show what it hides: change it first, as cascade=pause does not pause it"
            if exposes
            else f"this key may not pause {fixed_names}"
        )
    return SchemaInUse(
        f"nothing was changed: the change breaks {', '.join(parts)}; {reason}",
        breaks=[msgspec.to_builtins(each) for each in readers[:_SHOWN_MAX]],
        break_count=len(readers),
        hidden=hidden,
    )


def _columns_of(conditions: Iterable[str], schema: Schema) -> set[str]:
    """The columns that filters name; those of a filter that does not fit the schema are not known."""
    names: set[str] = set()
    for text in conditions:
        try:
            names |= parse_filter(text, schema).columns()
        except InvalidFilter:
            continue
    return names


def _field(schema: Schema, name: str) -> Field | None:
    return next((each for each in schema.fields if each.name == name), None)
