"""The positions of the kinds: what a user may move a source to, and what Postgres can store."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from app.features.sources.errors import InvalidSource
from app.features.sources.ports import Position
from app.features.sources.values import refused_source
from app.infra.kafka.errors import SourceFailed
from app.kernel.format.errors import FieldError
from app.kernel.format.member_errors import field_error

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Partition = Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,9})$")]
_Text = Annotated[str, msgspec.Meta(max_length=100_000)]
_Cursor = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Changes(msgspec.Struct, forbid_unknown_fields=True):
    offset: _Count


class _Pages(msgspec.Struct, forbid_unknown_fields=True):
    cursor: _Cursor | _Text | None = None
    read: _Count = 0
    mark: _Cursor | _Text | None = None
    pages: _Count = 0


class _Rows(msgspec.Struct, forbid_unknown_fields=True):
    watermark: _Text | msgspec.UnsetType = msgspec.UNSET
    digest: _Text | msgspec.UnsetType = msgspec.UNSET


_SHAPES: Final[dict[str, Any]] = {
    "dataset": _Changes,
    "http": _Pages,
    "sql": _Rows,
    "kafka": dict[_Partition, _Count],
}


def check_position(kind: str, position: Position) -> None:
    """Raises InvalidSource for a position that is not one of this kind. An empty one is the beginning."""
    if not position:
        return
    if kind == "files":
        raise refused_source(
            "/position",
            "expected {}, from which everything is read again: the position of files counts those that were read, and "
            "does not say which",
        )
    try:
        msgspec.convert(position, _SHAPES[kind])
    except msgspec.ValidationError as error:
        raise _refused(field_error(str(error), _SHAPES[kind], at="/position", value=position)) from None


def check_start(kind: str, position: Position) -> None:
    """Raises InvalidSource for a position that a source of this kind cannot start from."""
    if position and kind == "files":
        # Its position counts files; which ones these are is known once they were read.
        raise refused_source("/position", "files are read from config.start on: leave the position out")
    check_position(kind, position)


def check_storable(position: Position) -> None:
    """Raises SourceFailed for a position with the character U+0000, which JSON in Postgres cannot have."""
    name = next((name for name, value in position.items() if _has_nul(name) or _has_nul(value)), None)
    if name is not None:
        raise SourceFailed(
            f"the source returned a position whose {name!r} has the character U+0000, which cannot be stored"
        )


def _has_nul(value: object) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_has_nul(each) for pair in value.items() for each in pair)
        case list():
            return any(_has_nul(each) for each in value)
        case _:
            return False


def _refused(error: FieldError) -> InvalidSource:
    return InvalidSource(f"{error.pointer.removeprefix('/')}: {error.detail}", [error])
