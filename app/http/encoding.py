"""The JSON forms of what the API answers with."""

from __future__ import annotations

from typing import Any

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457. `type` is `/problems/<code>`; further members carry the facts."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | msgspec.UnsetType = msgspec.UNSET


PROBLEM = msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/Problem"})


def encode(response: Any) -> bytes:
    """The JSON text of a view; what JSON has no form for (in the facts of an error) as its text."""
    return msgspec.json.encode(response, enc_hook=str)
