"""The classes that a msgspec type is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import inspect


def struct_types(type_: Any) -> list[type[Any]]:
    """The structs and enumerations that values of the type consist of, each once: the outer before the inner."""
    return list(_classes(inspect.type_info(type_), set()))


def _classes(type_: inspect.Type, classes: set[type[Any]]) -> Iterator[type[Any]]:
    if isinstance(type_, inspect.StructType | inspect.EnumType):
        if type_.cls in classes:
            return
        classes.add(type_.cls)
        yield type_.cls
    for part in _parts(type_):
        yield from _classes(part, classes)


def _parts(type_: inspect.Type) -> Sequence[inspect.Type]:
    """The types that a type names."""
    match type_:
        case inspect.StructType(fields=fields):
            return [field.type for field in fields]
        case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
            return types
        case inspect.DictType(key_type=key, value_type=value):
            return [key, value]
        case inspect.Metadata(type=inner) | inspect.CollectionType(item_type=inner):
            return [inner]
        case _:
            return []
