"""Rows of JSON columns as this release writes them: the golden rows that the next release reads.

    python -m tests.support.stored_rows > tests/infra/db/data/stored_rows.json

Made again when a release is tagged, by its own code. Together the rows of a column have every member of its type, every
variant of its unions and every value of its enumerations. Each is decoded and encoded by the column.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Final

import msgspec
from msgspec import inspect

from app.access.tenants.quotas import Quotas
from app.core.jobs.kinds.read import ReadResult
from app.features.maintenance.service import merge_changelog, policy_reconciler
from app.features.maintenance.service.analysis import AnalyzedTable
from app.features.metastore.values import MetastoreState
from app.features.retention.service import history_reconciler
from app.features.sources.kinds.changes import ChangesConfig
from app.features.sources.kinds.files import FilesConfig
from app.features.sources.kinds.http_pages import HttpConfig
from app.features.sources.kinds.kafka import KafkaConfig
from app.features.sources.kinds.sql_rows import SqlConfig
from app.infra.db.stored_json import Document, dumped
from app.process.tables import metadata

INNER_TYPES: Final[Mapping[str, Any]] = {
    "jobs.result of a read": ReadResult,
    "service_results.result of an analysis": AnalyzedTable,
    "table_keeping.memory of file groups": policy_reconciler._State,
    "table_keeping.memory of changelog files": merge_changelog._State,
    "table_keeping.memory of the history": history_reconciler._State,
    "table_keeping.memory of the metastore": MetastoreState,
    "tenants.quotas as a whole": Quotas,
    "sources.definition, config of a dataset": ChangesConfig,
    "sources.definition, config of files": FilesConfig,
    "sources.definition, config of pages": HttpConfig,
    "sources.definition, config of a topic": KafkaConfig,
    "sources.definition, config of a query": SqlConfig,
}
"""The types of values that lie in a column of any JSON."""

_TEXTS: Final = (
    "text",
    "2026-11-28",
    "day",
    "AAEC",
    "0123456789abcdef0123456789abcdef",
    "hw.topic",
    "s3://bucket/a",
)


def stored_types() -> dict[str, Any]:
    """The types of all JSON columns, by `table.column`, and of the values in columns of any JSON."""
    columns = {
        f"{table.name}.{column.name}": column.type.type_
        for table in metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, Document)
    }
    return columns | dict(INNER_TYPES)


def rows_of(type_: Any) -> list[Any]:
    """JSON values of a type, as they are written."""
    decoder = msgspec.json.Decoder(type_)
    return [
        json.loads(dumped(decoder.decode(json.dumps(sample))))
        for sample in _samples(inspect.type_info(type_), ())
    ]


def _samples(type_: inspect.Type, outer: tuple[type[Any], ...]) -> Sequence[Any]:
    """JSON values of a type that together have all its forms; none for a type that lies in itself."""
    match type_:
        case inspect.StructType(cls=class_):
            return [] if class_ in outer else list(_structs(type_, (*outer, class_)))
        case inspect.UnionType(types=types):
            return [sample for each in types for sample in _samples(each, outer)]
        case inspect.Metadata(type=inner):
            return _samples(inner, outer)
        case inspect.EnumType(cls=class_):
            return [member.value for member in class_]
        case inspect.LiteralType(values=values):
            return values
        case inspect.TupleType(item_types=types):
            return [list(items) for items in product(*(_samples(each, outer)[:1] for each in types))]
        case inspect.DictType(key_type=key, value_type=value):
            names = _samples(key, outer)
            return [{str(names[0]): sample} for sample in _samples(value, outer)] or [{}]
        case inspect.CollectionType(item_type=item):
            return [[sample] for sample in _samples(item, outer)] or [[]]
        case _:
            return _plain(type_)


def _structs(type_: inspect.StructType, outer: tuple[type[Any], ...]) -> Iterator[dict[str, Any]]:
    """As many objects as the member with the most samples has, each with all members."""
    members = {field.encode_name: _samples(field.type, outer) for field in type_.fields}
    for number in range(max((len(samples) for samples in members.values()), default=1)):
        shown = {name: samples[number % len(samples)] for name, samples in members.items() if samples}
        yield shown if type_.tag is None else {str(type_.tag_field): type_.tag, **shown}


def _plain(type_: inspect.Type) -> Sequence[Any]:
    match type_:
        case inspect.BoolType():
            return [True, False]
        case inspect.IntType(ge=ge, le=le):
            return [min(max(3, ge or 0), 3 if le is None else le)]
        case inspect.FloatType():
            return [1.5]
        case inspect.NoneType():
            return [None]
        case inspect.DateTimeType():
            return ["2026-11-28T12:00:00Z"]
        case inspect.AnyType():
            return [{"any": [1, "text", None]}]
        case inspect.BytesType():
            return ["AAEC"]
        case inspect.StrType():
            return [_text(type_)]
        case _:
            return []


def _text(type_: inspect.StrType) -> str:
    """A text within the limits of the type."""
    limits = msgspec.Meta(min_length=type_.min_length, max_length=type_.max_length, pattern=type_.pattern)
    return next(text for text in _TEXTS if _fits(text, Annotated[str, limits]))


def _fits(text: str, type_: Any) -> bool:
    try:
        msgspec.convert(text, type_)
    except msgspec.ValidationError:
        return False
    return True


def main() -> None:
    """Prints the rows of all types as one JSON object, each row on its line."""
    lines = []
    for name, type_ in sorted(stored_types().items()):
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows_of(type_))
        lines.append(f"{json.dumps(name)}: [\n{rows}\n]")
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
