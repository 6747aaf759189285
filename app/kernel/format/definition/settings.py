"""The settings of a dataset whose values are checked alone, and stored as they are sent.

Each is declared once. The field has its type, its default and its documentation, `Setting` the rules of its values and
whether it may change. Registrations, definitions and responses inherit the fields of `TableSettings`; a setting that
may change is also a member of `SettingsUpdate`. Members that depend on others, such as the key and the buckets, are
declared in `new_dataset`, with rules in `dataset_rules`.
"""

from __future__ import annotations

import re
import unicodedata
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
_DESCRIPTION_CHARACTERS_MAX: Final = 4_096
_LABELS_MAX: Final = 64
EXPECTED_SECONDS_MAX: Final = 366 * 86_400
_LABEL_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
LABEL_KEY: Final = rf"(?:[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_LABEL_NAME}"
"""The pattern of the key of a label, as in Kubernetes: a name, after a domain and a slash or alone."""
LABEL_VALUE: Final = rf"(?:{_LABEL_NAME})?"
"""The pattern of the value of a label: a name, or empty."""
_KEY: Final = re.compile(LABEL_KEY)
_VALUE: Final = re.compile(LABEL_VALUE)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")

Fault = tuple[str, str]
"""A JSON pointer, and what was expected there."""


class Change(Enum):
    """How a setting changes."""

    NEVER = "never"
    """It keeps the value of the registration."""
    BY_VERSION = "by_version"
    """The change makes the next version of the dataset."""
    AT_ONCE = "at_once"
    """The change makes no version: the setting is not of the table."""


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


def _description_faults(text: str | None) -> Iterator[Fault]:
    if text is None:
        return
    if not 1 <= len(text) <= _DESCRIPTION_CHARACTERS_MAX:
        yield "", f"expected 1–{_DESCRIPTION_CHARACTERS_MAX} characters, got {len(text)}; null for none"
    if any(unicodedata.category(each) == "Cc" and each not in "\n\t" for each in text):
        yield "", "expected no control characters but line feeds and tabs"


def _expected_faults(seconds: int | None) -> Iterator[Fault]:
    if seconds is not None and not 1 <= seconds <= EXPECTED_SECONDS_MAX:
        yield "", f"expected 1–{EXPECTED_SECONDS_MAX}, got {seconds}; null for none"


def _labels_faults(labels: Mapping[str, str]) -> Iterator[Fault]:
    if len(labels) > _LABELS_MAX:
        yield "", f"expected at most {_LABELS_MAX} labels, got {len(labels)}"
    for key, value in labels.items():
        pointer = "/" + key.replace("~", "~0").replace("/", "~1")
        if not _KEY.fullmatch(key):
            yield (
                pointer,
                "expected a key of 1–63 letters, digits, '_', '-' or '.' that starts and ends with a letter or digit; "
                "a domain and '/' may precede it",
            )
        if not _VALUE.fullmatch(value):
            yield (
                pointer,
                "expected a value of at most 63 letters, digits, '_', '-' or '.' that starts and ends with a letter or "
                "digit, or an empty one",
            )


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


class DatasetSettings(TableSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the table, and the notes about the dataset, which are not of the table."""

    description: Annotated[str | None, Setting(change=Change.AT_ONCE, faults=_description_faults)] = None
    """What the dataset is, for its users: 1–4,096 characters; null for nothing."""
    labels: Annotated[dict[str, str], Setting(change=Change.AT_ONCE, faults=_labels_faults)] = {}
    """Its labels, by which lists select datasets: at most 64, with keys and values of at most 63 characters."""
    expected_every_seconds: Annotated[int | None, Setting(change=Change.AT_ONCE, faults=_expected_faults)] = (
        None
    )
    """The time in which a commit is expected, in seconds: the dataset is late after it. By default a dataset is late
    after three times the median gap between its writes.
    """


NOTES: Final = tuple(
    name for name in DatasetSettings.__struct_fields__ if name not in TableSettings.__struct_fields__
)
"""The names of the settings that are not of the table."""


class SettingsUpdate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings to change; one that is left out keeps its value."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    """The new name. The old one is free at once; what refers to the dataset by its id goes on working."""
    compression: FileCompression | msgspec.UnsetType = msgspec.UNSET
    """How the columns of new files are compressed."""
    description: str | msgspec.UnsetType | None = msgspec.UNSET
    """The new description; null removes it. It makes no version."""
    labels: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """The labels, in place of those that the dataset has. They make no version."""
    expected_every_seconds: int | msgspec.UnsetType | None = msgspec.UNSET
    """The time in which a commit is expected, in seconds; null for the usual time. It makes no version."""


@cache
def declared_settings(type_: type[TableSettings]) -> Mapping[str, Setting]:
    """The settings among the members of a type, by name."""
    hints = get_type_hints(type_, include_extras=True)
    settings = {}
    for name in type_.__struct_fields__:
        for extra in getattr(hints[name], "__metadata__", ()):
            if isinstance(extra, Setting):
                settings[name] = extra
    return settings


def table_settings(values: TableSettings) -> dict[str, Any]:
    """The settings of the table among those of a value, by name."""
    return {name: getattr(values, name) for name in TableSettings.__struct_fields__}


def dataset_notes(values: DatasetSettings) -> dict[str, Any]:
    """The notes among the settings of a value, by name."""
    return {name: getattr(values, name) for name in NOTES}


def setting_faults(type_: type[TableSettings], values: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with the values of settings of a type, by name."""
    settings = declared_settings(type_)
    for name, value in values.items():
        for pointer, reason in settings[name].faults(value):
            yield f"/{name}{pointer}", reason


def requested_changes(type_: type[TableSettings], update: SettingsUpdate, change: Change) -> dict[str, Any]:
    """The new values of those settings of a type that change in this way."""
    values = {
        name: getattr(update, name)
        for name, setting in declared_settings(type_).items()
        if setting.change is change
    }
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}
