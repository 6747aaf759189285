"""Errors as RFC 9457 problem documents. Only the tables `PROBLEMS` know the HTTP status of an error.

`type` is the URI reference `/problems/<code>`: stable, the same in every deployment, what scripts compare. Routes that
speak another protocol have its form of errors instead (`ErrorForm`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from app.access.errors import (
    Forbidden,
    IdempotencyInFlight,
    NotFound,
    PreconditionFailed,
    PreconditionRequired,
    Unauthorized,
)
from app.access.tenants.errors import (
    AdministrationUnavailable,
    QuotaExceeded,
    RateLimited,
    TenantDeleted,
    TenantExists,
    TenantProtected,
    TenantSuspended,
    TooManyKeys,
    WrongConfirmation,
)
from app.access.tenants.values import Principal
from app.http.errors import (
    HeadersTooLarge,
    MalformedRequest,
    MethodNotAllowed,
    NotAcceptable,
    RangeNotSatisfiable,
    RequestTimeout,
    UrlTooLong,
)
from app.http.waiting.request_credential import CredentialEnded
from app.infra.errors import NotStorable, StorageFull, StorageUnavailable, Unavailable
from app.infra.files.errors import CorruptFile, DestinationFailed, without_path, without_place
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.infra.outages import fault_of_disk
from app.kernel.format.errors import (
    BodyTooLarge,
    CommitConflict,
    DataExists,
    DerivationFailed,
    Fault,
    FieldError,
    GrantNotApplicable,
    HeadwaterError,
    InvalidDataset,
    InvalidFilter,
    InvalidRequest,
    InvalidView,
    MalformedBody,
    MaskedColumn,
    NotVerifiable,
    RestrictedGrant,
    RowTooLarge,
    SchemaChangeRefused,
    SchemaMismatch,
    TooManyRows,
    UnsupportedMediaType,
)

PROBLEM_JSON: Final = "application/problem+json"
REQUEST_ID: Final = "headwater_request_id"
PROBLEM_CODE: Final = "headwater_problem"
"""The state of a request has the code of its problem under this name."""

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    HeadwaterError: 500,
    InvalidRequest: 400,
    InvalidDataset: 422,
    SchemaChangeRefused: 422,
    InvalidFilter: 400,
    InvalidView: 422,
    SchemaMismatch: 422,
    MalformedBody: 400,
    UnsupportedMediaType: 415,
    BodyTooLarge: 413,
    RowTooLarge: 422,
    TooManyRows: 422,
    CommitConflict: 409,
    DataExists: 409,
    DerivationFailed: 422,
    NotVerifiable: 422,
    RestrictedGrant: 403,
    MaskedColumn: 403,
    GrantNotApplicable: 403,
    StorageFull: 507,
    NotStorable: 422,
    Unavailable: 503,
    StorageUnavailable: 503,
    CorruptFile: 500,
    DestinationFailed: 422,
    SourceUnavailable: 502,
    SourceFailed: 422,
    NotFound: 404,
    PreconditionFailed: 412,
    PreconditionRequired: 428,
    IdempotencyInFlight: 409,
    Unauthorized: 401,
    Forbidden: 403,
    QuotaExceeded: 429,
    RateLimited: 429,
    TenantExists: 409,
    TenantProtected: 409,
    WrongConfirmation: 412,
    TenantDeleted: 409,
    TenantSuspended: 403,
    TooManyKeys: 409,
    AdministrationUnavailable: 501,
    MethodNotAllowed: 405,
    NotAcceptable: 406,
    RangeNotSatisfiable: 416,
    MalformedRequest: 400,
    RequestTimeout: 408,
    UrlTooLong: 414,
    HeadersTooLarge: 431,
}
"""The statuses of the errors of this room, and of those below it. Rooms above state their own in modules `problems`."""
_RETRY_AFTER_SECONDS: Final = {
    "unavailable": 5,
    "storage-unavailable": 5,
    "idempotency-in-flight": 1,
    "job-not-finished": 1,
    "storage-full": 60,
}

_TEXT_CHARACTERS_MAX: Final = 2_000
_ERRORS_MAX: Final = 100

# Not Found, Request Timeout, Too Early, Too Many Requests.
_PASSING: Final = frozenset({404, 408, 425, 429})
# It is of the request: it needs what the service or the deployment does not offer.
_NOT_IMPLEMENTED: Final = 501

_log = logging.getLogger(__name__)


class JobFailed(Exception):
    """The job of a request failed or was cancelled; the response is its problem document, with the job as a member."""

    def __init__(self, members: dict[str, Any], headers: Mapping[str, str]) -> None:
        super().__init__(members["detail"])
        self.members = members
        self.headers = headers


def assembled(
    tables: Iterable[Mapping[type[HeadwaterError], int]], errors: Iterable[type[HeadwaterError]]
) -> dict[str, int]:
    """The status of each code, from the tables of the rooms. `errors`: the classes that must have one.

    Raises ValueError for a code that is stated twice, and for an error without a status.
    """
    statuses: dict[str, int] = {}
    for error, status in chain.from_iterable(table.items() for table in tables):
        if error.code in statuses:
            raise ValueError(f"the code {error.code} is stated twice; one of the two is {_path(error)}")
        statuses[error.code] = status
    if missing := sorted(_path(error) for error in errors if error.code not in statuses):
        raise ValueError(f"errors without a status in the `problems` of their room: {', '.join(missing)}")
    return statuses


def error_classes() -> Iterator[type[HeadwaterError]]:
    """The classes of errors of the service that this process has imported."""
    pending: list[type[HeadwaterError]] = [HeadwaterError]
    while pending:
        kind = pending.pop()
        if kind.__module__.partition(".")[0] in ("app", "workers"):
            yield kind
        pending += kind.__subclasses__()


def _path(error: type[HeadwaterError]) -> str:
    return f"{error.__module__}.{error.__qualname__}"


ErrorForm: TypeAlias = Callable[
    [Request[Any, Any, Any], Mapping[str, Any], Mapping[str, str]], Response[bytes]
]
"""The response of a protocol for a request, the members of its problem document, and the headers of the response."""

_statuses: dict[str, int] = {error.code: status for error, status in PROBLEMS.items()}


def serve_statuses(statuses: Mapping[str, int]) -> None:
    """From now on problem documents have these statuses. A process calls this once, before its first request."""
    _statuses.update(statuses)


_forms: dict[str, ErrorForm] = {}


def serve_error_forms(forms: Mapping[str, ErrorForm]) -> None:
    """From now on errors of paths with these first segments have these forms. Called once, as `serve_statuses` is."""
    _forms.update(forms)


def status_of(code: str) -> int:
    """The status of a code; 500 for one that this release does not know."""
    return _statuses.get(code, 500)


def retry_after(code: str) -> int | None:
    """The seconds after which a request may be sent again; None for a code that does not depend on time."""
    return _RETRY_AFTER_SECONDS.get(code)


def is_final(error: HeadwaterError) -> bool:
    """Whether a repetition of the request may get the same response, from what is stored: no failure of the service,
    and nothing that passes.
    """
    return status_of(error.code) < 500 and not may_pass(type(error))


def may_pass(error: type[HeadwaterError]) -> bool:
    """Whether a request that was refused with this error may succeed later as it is.

    It may after a failure of the service, after a limit on the rate, or once what it needs exists.
    """
    if error.may_pass is not None:
        return error.may_pass
    status = status_of(error.code)
    return status in _PASSING or (status >= 500 and status != _NOT_IMPLEMENTED)


def document(code: str, title: str, detail: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a problem document. Facts never hide the standard ones.

    Texts that repeat the request are shortened. Of more than 100 `errors` the first are listed, and `error_count` is
    their number.
    """
    members = {
        "type": f"/problems/{code}",
        "title": title,
        "status": status_of(code),
        "detail": _shortened(detail),
        **{name: fact for name, fact in facts.items() if name not in _STANDARD},
    }
    if errors := facts.get("errors"):
        members["errors"] = [
            {name: _shortened(value) for name, value in error.items()} for error in errors[:_ERRORS_MAX]
        ]
        if len(errors) > _ERRORS_MAX:
            members["error_count"] = len(errors)
    return members


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _TEXT_CHARACTERS_MAX:
        return f"{value[:_TEXT_CHARACTERS_MAX]}…"
    return value


_STANDARD: Final = frozenset({"type", "title", "status", "detail", "instance"})


def fault_document(fault: Fault) -> dict[str, Any]:
    """What made a job fail."""
    return document(fault.code, fault.title, fault.detail, fault.facts)


def encoded_problem(members: dict[str, Any], path: str) -> bytes:
    """A problem document as JSON. `path`: that of the request."""
    return msgspec.json.encode({**members, "instance": path}, enc_hook=str)


def respond(
    request: Request[Any, Any, Any], members: dict[str, Any], headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    """The response for a problem document, in the form of the protocol of the path."""
    code = str(members["type"]).rsplit("/", 1)[-1]
    request.scope["state"][PROBLEM_CODE] = code
    response_headers = dict(headers or {})
    if "retry_after_seconds" in members:
        response_headers["Retry-After"] = str(members["retry_after_seconds"])
    elif seconds := retry_after(code):
        response_headers["Retry-After"] = str(seconds)
    if form := _forms.get(request.scope["path"].split("/", 2)[1]):
        return form(request, members, response_headers)
    return Response(
        encoded_problem(members, request.scope["path"]) + b"\n",
        status_code=members["status"],
        media_type=PROBLEM_JSON,
        headers=response_headers,
    )


def on_headwater_error(request: Request[Any, Any, Any], error: HeadwaterError) -> Response[bytes]:
    """Any error that carries its own facts."""
    user = request.scope.get("user")
    if isinstance(user, Principal) and user.sees_parts:
        public_error = without_path(error)
        if public_error is not error:
            _log.error("request %s: %s", _request_id(request), error.detail)
            error = public_error
    shown = without_place(error)
    members = document(shown.code, shown.title, shown.detail, shown.facts)
    if members["status"] >= 500 and members["status"] != _NOT_IMPLEMENTED:
        # An unavailable dependency fails many requests; the traceback of each would only hide the rest of the log.
        cause = error if members["status"] == 500 else None
        _log.error("request %s: %s: %s", _request_id(request), error.code, error.detail, exc_info=cause)
    return respond(request, members, _headers_of(request, error))


def on_credential_ended(request: Request[Any, Any, Any], end: CredentialEnded) -> Response[bytes]:
    """What a waiting request gets whose credential has ended meanwhile: the same as a new one."""
    return on_headwater_error(request, end.error)


def _headers_of(request: Request[Any, Any, Any], error: HeadwaterError) -> dict[str, str] | None:
    if isinstance(error, RangeNotSatisfiable):
        return {"Content-Range": f"bytes */{error.facts['size_bytes']}"}
    return _challenge(request) if isinstance(error, Unauthorized) else None


def on_job_failed(request: Request[Any, Any, Any], failure: JobFailed) -> Response[bytes]:
    """The problem of a job, under its own status."""
    return respond(request, failure.members, failure.headers)


def on_http_exception(request: Request[Any, Any, Any], exception: HTTPException) -> Response[bytes]:
    """What the framework refuses by itself: unknown routes and methods, parameters of a wrong type."""
    error = _translated(request, exception)
    allow = (exception.headers or {}).get("allow")
    headers = None if allow is None else {"Allow": allow_header(allow.split(", "))}
    return respond(request, document(error.code, error.title, error.detail, error.facts), headers)


def allow_header(methods: Iterable[str]) -> str:
    """The value of Allow for a resource with handlers of these methods. Every GET answers HEAD too."""
    names = set(methods)
    return ", ".join(sorted(names | {"HEAD"} if "GET" in names else names))


def on_unexpected(request: Request[Any, Any, Any], exception: Exception) -> Response[bytes]:
    """A bug, or an unexpected failure: the log has the cause, the client the id of the request.

    Files that are open already report faults of the storage as errors of the system.
    """
    if fault := fault_of_disk(exception):
        return on_headwater_error(request, fault)
    request_id = _request_id(request)
    _log.error("request %s failed", request_id, exc_info=exception)
    detail = "the service failed; the request id finds the cause in its log"
    return respond(
        request, document(HeadwaterError.code, HeadwaterError.title, detail, {"request_id": request_id})
    )


def _translated(request: Request[Any, Any, Any], exception: HTTPException) -> HeadwaterError:
    match exception.status_code:
        case 404:
            return NotFound(f"there is no resource at {request.scope['path']}")
        case 405:
            return MethodNotAllowed(f"{request.method} is not a method of {request.scope['path']}")
    if isinstance(exception, ValidationException) and isinstance(exception.extra, list):
        errors = [
            FieldError(pointer=f"/{_as_sent(request, fault)}", detail=str(fault.get("message", "not valid")))
            for fault in exception.extra
            if isinstance(fault, dict)
        ]
        detail = "; ".join(f"{error.pointer.removeprefix('/')}: {error.detail}" for error in errors)
        return InvalidRequest(detail or exception.detail, errors)
    return InvalidRequest(exception.detail)


def _as_sent(request: Request[Any, Any, Any], fault: Mapping[str, Any]) -> str:
    """The name of a member or parameter in the request, which a handler may have another name for."""
    key = str(fault.get("key", ""))
    parameter = request.route_handler.parsed_fn_signature.parameters.get(key)
    return getattr(parameter and parameter.kwarg_definition, "name", None) or key


def _challenge(request: Request[Any, Any, Any]) -> dict[str, str]:
    # RFC 6750: an error code only where a credential was given.
    has_credentials = "authorization" in request.headers
    return {
        "WWW-Authenticate": 'Bearer realm="headwater"'
        + (', error="invalid_token"' if has_credentials else "")
    }


def _request_id(request: Request[Any, Any, Any]) -> str:
    return str(request.scope.get("state", {}).get(REQUEST_ID, ""))
