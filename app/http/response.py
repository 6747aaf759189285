"""Typed responses: a handler returns a value, and a response around it only where it sets headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec
from litestar import Response

from app.http.parameters.headers import etag

_T = TypeVar("_T")


def encode_json(value: Any) -> bytes:
    """The JSON text of a value; what JSON has no form for (in the facts of an error) as its text."""
    return msgspec.json.encode(value, enc_hook=str)


def encode_body(value: Any) -> bytes:
    """The JSON text of a value as a body: with a newline at its end, for terminals."""
    return encode_json(value) + b"\n"


class ApiResponse(Response[_T]):
    """A response with a value. A plain return value is wrapped in one."""

    header_descriptions: ClassVar[Mapping[str, str]] = {}
    """The headers that every response of this class has, as the OpenAPI document describes them."""

    def render(self, content: Any, media_type: str, enc_hook: Any = None) -> bytes:
        """The body: structs by the one encoder, text and bytes as they are."""
        if isinstance(content, msgspec.Struct):
            return encode_body(content)
        return super().render(content, media_type, enc_hook)


class Tagged(ApiResponse[_T]):
    """A resource with its revision (or version) as the ETag."""

    header_descriptions: ClassVar[Mapping[str, str]] = {"ETag": "The revision of the resource, quoted."}

    def __init__(self, content: _T, *, revision: int) -> None:
        super().__init__(content, headers={"ETag": etag(revision)})


class Created(ApiResponse[_T]):
    """201 with a new resource, its path and its ETag."""

    header_descriptions: ClassVar[Mapping[str, str]] = {
        "Location": "The path of the new resource.",
        "ETag": "The revision of the resource, quoted.",
    }

    def __init__(self, content: _T, *, path: str, revision: int) -> None:
        super().__init__(content, status_code=201, headers={"Location": path, "ETag": etag(revision)})


class Secret(ApiResponse[_T]):
    """201 with a new resource and a secret that no other response has. Nothing on the way may keep it."""

    header_descriptions: ClassVar[Mapping[str, str]] = {
        "Location": "The path of the new resource.",
        "Cache-Control": "`no-store`.",
    }

    def __init__(self, content: _T, *, path: str) -> None:
        super().__init__(content, status_code=201, headers={"Location": path, "Cache-Control": "no-store"})
