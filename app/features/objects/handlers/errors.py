"""Errors as S3's protocol has them. Their facts are those of problem documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from litestar import Request, Response

from app.features.objects.errors import ObjectRequestUnsupported, TableKeyRefused
from app.features.objects.schemas import XML, error_document
from app.http.problems import REQUEST_ID

REQUEST_ID_FIELD: Final = "x-amz-request-id"
# By the code of the problem: what the protocol calls it, and its status there.
_CODES: Final[Mapping[str, tuple[str, int]]] = {
    ObjectRequestUnsupported.code: ("NotImplemented", 501),
    "not-found": ("NoSuchKey", 404),
    "precondition-failed": ("PreconditionFailed", 412),
    "range-not-satisfiable": ("InvalidRange", 416),
    "invalid-request": ("InvalidArgument", 400),
    "method-not-allowed": ("MethodNotAllowed", 405),
    "unauthorized": ("AccessDenied", 403),
    "rate-limited": ("SlowDown", 503),
    "quota-exceeded": ("SlowDown", 503),
    "rendering-under-way": ("SlowDown", 503),
    "unavailable": ("ServiceUnavailable", 503),
    "storage-unavailable": ("ServiceUnavailable", 503),
}
_OTHERS: Final = {403: "AccessDenied", 404: "NoSuchKey", 503: "ServiceUnavailable"}


def s3_error(
    request: Request[Any, Any, Any], members: Mapping[str, Any], headers: Mapping[str, str]
) -> Response[bytes]:
    """See `ErrorForm`."""
    problem = str(members["type"]).rsplit("/", 1)[-1]
    status = int(members["status"])
    code, status = _CODES.get(problem, (_OTHERS.get(status, "InternalError"), status))
    if problem == TableKeyRefused.code:
        code = str(members["refusal"])
    request_id = str(request.scope["state"].get(REQUEST_ID, ""))
    path = request.scope["raw_path"].decode("latin-1")
    fields = {name: value for name, value in headers.items() if name != "WWW-Authenticate"}
    return Response(
        error_document(code, str(members["detail"]), path, request_id),
        status_code=status,
        media_type=XML,
        headers={**fields, REQUEST_ID_FIELD: request_id},
    )
