"""Errors in the form of Delta Sharing: a code and a message. Their facts are those of problem documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from litestar import Request, Response

from app.http.body_stream import JSON
from app.http.response import encode_body

_CODES: Final = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    410: "RESOURCE_DOES_NOT_EXIST",
}
# Statuses that the protocol does not have, for errors of the request.
_AS_INVALID: Final = frozenset({405, 409, 415, 422})


def protocol_error(
    request: Request[Any, Any, Any],  # noqa: ARG001
    members: Mapping[str, Any],
    headers: Mapping[str, str],
) -> Response[bytes]:
    """See `ErrorForm`."""
    status = int(members["status"])
    if status in _AS_INVALID:
        status = 400
    problem = str(members["type"]).rsplit("/", 1)[-1]
    code = _CODES.get(status) or problem.replace("-", "_").upper()
    document = {"errorCode": code, "message": str(members["detail"])}
    return Response(encode_body(document), status_code=status, media_type=JSON, headers=dict(headers))
