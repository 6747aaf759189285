"""Positions that Postgres can store."""

from __future__ import annotations

from app.features.sources.ports import Position
from app.infra.kafka.errors import SourceFailed


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
