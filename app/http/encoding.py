"""The JSON forms of what the API answers with."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457. Further members carry the facts."""

    type: str
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


def encode(response: Any) -> bytes:
    """The JSON text of a view; what JSON has no form for (in the facts of an error) as its text."""
    return msgspec.json.encode(response, enc_hook=str)
