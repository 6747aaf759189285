"""Which version is meant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, TypeAlias

import msgspec

_INT64_MAX: Final = 2**63 - 1

VersionNumber: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_INT64_MAX)]
Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class RestorePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The version to go back to: exactly one of its number, a name and a time."""

    version: VersionNumber | None = None
    """The number of the version."""
    savepoint: Annotated[str, msgspec.Meta(examples=["before-import"])] | None = None
    """The name of a savepoint."""
    tag: str | None = None
    """The name of a tag or savepoint."""
    as_of: Time | None = None
    """A time: the last version committed by then."""
