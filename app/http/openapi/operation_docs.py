"""What the OpenAPI document has of an operation beyond the signature of its handler.

A typed handler declares only this: further problem statuses, headers, media types and statuses. Its body, parameters
and response type are those of its signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar.handlers import BaseRouteHandler

DOCUMENTATION: Final = "documentation"

BINARY: Final = object()
TEXT: Final = object()


class EventTypes(msgspec.Struct, frozen=True):
    """Server-sent events as the content of a response: the types of their data, which is JSON, by the event's name."""

    data: Mapping[str, Sequence[type[msgspec.Struct]]]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A successful response. `content` maps media types to a type, EventTypes, BINARY or TEXT; JSON comes first."""

    description: str
    content: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    component: str | None = None
    """The name under which operations share it."""


class Documentation(msgspec.Struct, frozen=True, kw_only=True):
    """What is declared of an operation.

    `answers` and `body` state it as a whole, for handlers whose signature does not.
    """

    answers: Mapping[int, Answer] | None = None
    body: Mapping[str, Any] = {}
    problems: Sequence[int] = ()
    """The statuses of problems beyond those that follow from the signature."""
    description: str | None = None
    """Of the response; by default the first sentence of its type's docstring."""
    headers: Mapping[str, str] = {}
    """The headers of the response with their descriptions."""
    content: Mapping[str, Any] = {}
    """The response by media type, where it is not JSON alone; `media_type` chooses among them by Accept."""
    statuses: Mapping[int, str] = {}
    """Further statuses with the same body, and their descriptions."""


_UNDECLARED: Final = Documentation()


def documented(answers: Mapping[int, Answer] | None = None, **details: Any) -> dict[str, Any]:
    """The handler option that holds the documentation; see `Documentation`."""
    return {DOCUMENTATION: Documentation(answers=answers, **details)}


def documentation_of(handler: BaseRouteHandler) -> Documentation:
    """What a handler declares."""
    documentation: Documentation = handler.opt.get(DOCUMENTATION, _UNDECLARED)
    return documentation
