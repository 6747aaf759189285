"""What a handler says about itself for the OpenAPI document, beside its path and its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

DOCUMENTATION: Final = "documentation"

BINARY: Final = object()
TEXT: Final = object()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A successful response. `content` maps media types to a type, BINARY or TEXT; JSON comes first."""

    description: str
    content: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


class Documentation(msgspec.Struct, frozen=True, kw_only=True):
    """The request body by media type, the responses by status, and the statuses of its problems."""

    answers: Mapping[int, Answer]
    body: Mapping[str, Any] = {}
    body_required: bool = True
    request_headers: Mapping[str, str] = {}
    problems: Sequence[int] = ()


def documented(
    answers: Mapping[int, Answer],
    *,
    body: Mapping[str, Any] | None = None,
    body_required: bool = True,
    request_headers: Mapping[str, str] | None = None,
    problems: Sequence[int] = (),
) -> dict[str, Any]:
    """The handler option that holds the documentation."""
    documentation = Documentation(
        answers=answers,
        body=body or {},
        body_required=body_required,
        request_headers=request_headers or {},
        problems=problems,
    )
    return {DOCUMENTATION: documentation}
