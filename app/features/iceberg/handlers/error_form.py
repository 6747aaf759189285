"""Errors in the form of the Iceberg protocol, and in that of OAuth where tokens are given.

The facts are those of problem documents. Clients choose the exception that they raise by status and `type`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from litestar import Request, Response

from app.features.iceberg.values import NAMESPACE, PATH
from app.http.auth import SAFE_METHODS
from app.http.body_stream import JSON
from app.http.response import encode_body

TOKENS_PATH: Final = f"{PATH}/oauth/tokens"
READ_ONLY: Final = (
    "This catalogue is read only. Write with `POST /datasets/{dataset}/writes`, and make, change and delete "
    "datasets with `/datasets`"
)
_TYPES: Final = {
    400: "BadRequestException",
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    406: "UnsupportedOperationException",
    410: "NoSuchSnapshotException",
    429: "TooManyRequestsException",
    500: "InternalServerError",
    503: "ServiceUnavailableException",
}
_OAUTH_ERRORS: Final = {
    "/problems/unauthorized": "invalid_client",
    "/problems/token-refused": "invalid_client",
    "/problems/unsupported-grant-type": "unsupported_grant_type",
}
_MISSING: Final = (
    (re.compile(rf"{PATH}/config"), "NoSuchWarehouseException"),
    # Spark requests tables such as `orders.files` in the namespace of the table, and goes on if there is no table.
    (re.compile(rf"{PATH}/[^/]+/namespaces/[^/]+/tables/.+", re.DOTALL), "NoSuchTableException"),
    (re.compile(rf"{PATH}/[^/]+/namespaces/{NAMESPACE}/views/.+"), "NoSuchViewException"),
    (re.compile(rf"{PATH}/[^/]+/namespaces(/.+)?"), "NoSuchNamespaceException"),
)
"""The types of errors for what does not exist, by the path."""


def error_form(
    request: Request[Any, Any, Any], members: Mapping[str, Any], headers: Mapping[str, str]
) -> Response[bytes]:
    """The response of the protocol for a problem document."""
    path = request.scope["path"]
    if path == TOKENS_PATH:
        return _oauth_error(members, headers)
    status, message = int(members["status"]), str(members["detail"])
    if status in (404, 405) and request.method not in SAFE_METHODS and not _is_handled(request):
        status, message = 406, READ_ONLY
    document = {"error": {"message": message, "type": _type(status, path), "code": status}}
    return Response(encode_body(document), status_code=status, media_type=JSON, headers=dict(headers))


def _is_handled(request: Request[Any, Any, Any]) -> bool:
    """Whether a handler was called. Of what writes, no path and method has one."""
    return request.scope.get("route_handler") is not None


def _type(status: int, path: str) -> str:
    if status == 404:
        return next((type_ for pattern, type_ in _MISSING if pattern.fullmatch(path)), "NotFoundException")
    return _TYPES.get(status) or f"{HTTPStatus(status).phrase.replace(' ', '')}Exception"


def _oauth_error(members: Mapping[str, Any], headers: Mapping[str, str]) -> Response[bytes]:
    status = int(members["status"])
    fallback = "temporarily_unavailable" if status >= 500 or status == 429 else "invalid_request"
    document = {
        "error": _OAUTH_ERRORS.get(members["type"], fallback),
        "error_description": str(members["detail"]),
    }
    return Response(encode_body(document), status_code=status, media_type=JSON, headers=dict(headers))
