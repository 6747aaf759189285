"""Small JSON bodies that ask for a job."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from app.http.body_stream import JSON, announces_body, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, actor_of
from app.http.headers import idempotency_key
from app.http.json_body import decode_json
from app.jobs.service.request_job import RequestIdentity

_BODY_BYTES_MAX: Final = 64 * 1024
_T = TypeVar("_T")


async def read_json(request: ApiRequest, type_: type[_T], *, default: _T | None = None) -> _T:
    """The body; the default, if there is one, where there is no body.

    Raises InvalidRequest, MalformedBody, BodyTooLarge, UnsupportedMediaType.
    """
    if default is not None and not announces_body(request):
        return default
    require_media_type(request, [JSON])
    refuse_encoding(request)
    return decode_json(await read_body(request, _BODY_BYTES_MAX), type_)


def request_identity(request: ApiRequest, kind: str, wanted: Any) -> RequestIdentity:
    """The actor, the text and the Idempotency-Key of a request for a job of a kind. Raises InvalidRequest."""
    return RequestIdentity(
        text=f"{kind} {msgspec.json.encode(wanted).decode()}",
        idempotency_key=idempotency_key(request.headers),
        actor=actor_of(request),
    )
