"""Errors of requests to any resource: who may use it, whether it exists, and at which revision it is."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class NotFound(HeadwaterError):
    """This tenant has no such resource. A resource of another tenant gets the same error."""

    code = "not-found"
    title = "The resource does not exist"


class PreconditionFailed(HeadwaterError):
    """If-Match does not name the current version or revision, or If-None-Match is `*` and the resource exists."""

    code = "precondition-failed"
    title = "The resource is at another version or revision"


class PreconditionRequired(HeadwaterError):
    """The operation needs If-Match, and the request has no such header."""

    code = "precondition-required"
    title = "If-Match is required"


class IdempotencyInFlight(HeadwaterError):
    """A request with the same Idempotency-Key is still being accepted."""

    code = "idempotency-in-flight"
    title = "A request with this Idempotency-Key is still being accepted"
    may_pass = True


class Unauthorized(HeadwaterError):
    """The request has no credential, or one that is unknown, expired or revoked."""

    code = "unauthorized"
    title = "A valid API key or token is required"


class Forbidden(HeadwaterError):
    """The credential lacks a scope (fact: `required_scope`), a key may not give another as much as was requested, or
    what the credential may do has changed during the request.
    """

    code = "forbidden"
    title = "The credential lacks the required scope"


def scope_missing(scope: str) -> Forbidden:
    """The error for a credential without this scope."""
    return Forbidden(f"this needs a key with the scope {scope!r}", required_scope=scope)
