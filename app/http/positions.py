"""Starting positions in a feed, as requests write them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from app.changes.positions import StartingPosition
from app.http.openapi.openapi_components import COMPONENT, INT64_MAX

_DIGITS_MAX = 19

Position: TypeAlias = Annotated[
    Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
    | Annotated[str, msgspec.Meta(pattern=rf"^(earliest|now|[0-9]{{1,{_DIGITS_MAX}}})$")],
    msgspec.Meta(extra_json_schema={COMPONENT: "Position", "examples": [120]}),
]
"""An offset, as a number or as digits; `earliest` for the first change that is kept, `now` for the head."""


def position_of(since: int | str) -> int | StartingPosition:
    """The position that a request names. An offset beyond 64 bits is beyond every head, and refused as such."""
    if isinstance(since, int):
        return since
    return min(int(since), INT64_MAX) if since.isdecimal() else StartingPosition(since)
