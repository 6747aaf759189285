"""The JSON of a problem document."""

from __future__ import annotations

from typing import Annotated

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457. Further members carry the facts."""

    type: Annotated[str, msgspec.Meta(examples=["/problems/not-found"])]
    """`/problems/<code>`: stable, the same in every deployment, what programs should compare."""
    title: str
    """What went wrong, the same for every problem of the type."""
    status: Annotated[int, msgspec.Meta(examples=[404])]
    """The HTTP status."""
    detail: str
    """What went wrong in this case, and what to do."""
    instance: str | msgspec.UnsetType = msgspec.UNSET
    """The path of the request."""


PROBLEM = msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/Problem"})
