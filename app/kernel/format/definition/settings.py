"""The settings of a dataset whose values are checked alone, and stored as they are sent.

Each is declared once. The field has its type, its default and its documentation, `Setting` the rules of its values and
whether it may change. Registrations, definitions and responses inherit the fields of `TableSettings`; a setting that
may change is also a member of `SettingsUpdate`. Members that depend on others, such as the key and the buckets, are
declared in `new_dataset`, with rules in `dataset_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final, get_type_hints

import msgspec

from app.kernel.format.file_format import FileCompression
from app.kernel.format.identifiers import is_uuid

DEFAULT_TARGET_BYTES: Final = 256 * 1024 * 1024
_TARGET_BYTES_MIN: Final = 64 * 1024
_TARGET_BYTES_MAX: Final = 16 * 1024 * 1024 * 1024
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")

Fault = tuple[str, str]
"""A JSON pointer, and what was expected there."""


class Change(Enum):
    """How a setting changes."""

    NEVER = "never"
    """It keeps the value of the registration."""
    BY_VERSION = "by_version"
    """The change makes the next version of the dataset."""


def _no_faults(value: object) -> Iterator[Fault]:  # noqa: ARG001
    yield from ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What is declared of a setting beside its type, default and documentation."""

    change: Change
    """Whether and how it may change."""
    faults: Callable[[Any], Iterator[Fault]] = _no_faults
    """What is wrong with a value of its type. Pointers are relative to the setting: empty for the value as a whole."""


def _name_faults(name: str) -> Iterator[Fault]:
    if not _NAME.fullmatch(name):
        yield "", "expected 1–128 letters, digits, '_', '-' or '.', starting with a letter or '_'"
    elif is_uuid(name):
        yield "", "a name may not have the form of a UUID: it could be taken for a dataset's id"


def _target_bytes_faults(size_bytes: int) -> Iterator[Fault]:
    if not _TARGET_BYTES_MIN <= size_bytes <= _TARGET_BYTES_MAX:
        yield "", f"expected {_TARGET_BYTES_MIN}–{_TARGET_BYTES_MAX}, got {size_bytes}"


class TableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the table: they are part of its definition."""

    name: Annotated[str, Setting(change=Change.BY_VERSION, faults=_name_faults)]
    """A unique name among the live datasets of the tenant."""
    target_bytes: Annotated[int, Setting(change=Change.NEVER, faults=_target_bytes_faults)] = (
        DEFAULT_TARGET_BYTES
    )
    """The size at which a data file ends and the next one starts."""
    compression: Annotated[FileCompression, Setting(change=Change.BY_VERSION)] = FileCompression.ZSTD
    """How the columns of new files are compressed: `zstd` for small files, `lz4` for fast reads and writes."""


class SettingsUpdate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings to change; one that is left out keeps its value."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    """The new name. The old one is free at once; what refers to the dataset by its id goes on working."""
    compression: FileCompression | msgspec.UnsetType = msgspec.UNSET
    """How the columns of new files are compressed."""


@cache
def declared_settings(type_: type[TableSettings]) -> Mapping[str, Setting]:
    """The settings among the members of a type, by name."""
    hints = get_type_hints(type_, include_extras=True)
    found = {}
    for name in type_.__struct_fields__:
        for extra in getattr(hints[name], "__metadata__", ()):
            if isinstance(extra, Setting):
                found[name] = extra
    return found


def table_settings(values: TableSettings) -> dict[str, Any]:
    """The settings of the table among those of a value, by name."""
    return {name: getattr(values, name) for name in TableSettings.__struct_fields__}


def setting_faults(type_: type[TableSettings], values: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with the values of settings of a type, by name."""
    declared = declared_settings(type_)
    for name, value in values.items():
        for pointer, reason in declared[name].faults(value):
            yield f"/{name}{pointer}", reason


def requested_changes(type_: type[TableSettings], update: SettingsUpdate, change: Change) -> dict[str, Any]:
    """The new values of those settings of a type that change in this way."""
    values = {
        name: getattr(update, name)
        for name, setting in declared_settings(type_).items()
        if setting.change is change
    }
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}
