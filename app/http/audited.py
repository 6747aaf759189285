"""Which requests are recorded in the audit, and as what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from app.access.audit.service import Audit
from app.access.audit.values import (
    Access,
    AccessOutcome,
    AccessVia,
    Caller,
    NewEntry,
    RequestedOperation,
    outcome_of,
)
from app.access.tenants.values import KeyScope, Principal
from app.http.auth import PUBLIC, SAFE_METHODS, scope_of
from app.http.limits.threads import Threads
from app.http.problems import PROBLEM_CODE, REQUEST_ID
from app.http.protocols import INNER, client_address
from app.http.request import ACT_BODY, DATASET_NAME

_ACT: Final = "headwater_act"
_SIGN_IN: Final = "headwater_sign_in"
_SIGN_IN_OPERATION: Final = "sign_in"
# Requests that make something, though they need no scope of administration.
_CREATIONS: Final = frozenset({"create_dataset", "create_view", "create_export"})
# Members of bodies whose values are recorded; of all others, only the name is, for they may contain secrets.
_VALUES: Final = frozenset(
    {"name", "scopes", "grants", "expires_at", "state", "quotas", "dataset", "version", "tag", "retention"}
)
_VALUE_BYTES_MAX: Final = 1_000
_MEMBERS_MAX: Final = 50
_TEXT_CHARACTERS_MAX: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class SignIn:
    """An attempt to begin a session. `principal`: who it is; None for one that is refused.

    `digest`: of the API key that was sent.
    """

    principal: Principal | None = None
    digest: bytes | None = None


def note_sign_in(connection: ASGIConnection[Any, Any, Any, Any], attempt: SignIn) -> None:
    """Has the request recorded as this attempt, in place of an earlier one."""
    scope: Any = connection.scope
    scope["state"][_SIGN_IN] = attempt


class AuditedRequests:
    """Records requests: administrative ones with what they do, all others as numbers."""

    def __init__(self, audit: Audit, threads: Threads) -> None:
        self._audit = audit
        self._threads = threads

    async def begin(self, connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        """The last guard of a request: an administrative one that is permitted begins here."""
        scope: Any = connection.scope
        if handler.opt.get(PUBLIC) or not _is_act(scope["method"], handler):
            return
        state = scope["state"]
        principal: Principal = connection.user
        operation, address = _operation(scope, handler), client_address(scope) or None
        resources = {
            name: str(value)[:_TEXT_CHARACTERS_MAX] for name, value in connection.path_params.items()
        }

        def entry(ids: Mapping[str, str]) -> NewEntry:
            return NewEntry(
                caller=_caller(principal),
                operation=operation,
                outcome=AccessOutcome.ALLOWED,
                status=int(getattr(handler, "status_code", 200)),
                resources={**resources, **ids},
                members=_members(state.get(ACT_BODY, b"")) | _trial(scope),
                via=_via(scope),
                address=address,
                request_id=str(state.get(REQUEST_ID, "")),
            )

        state[_ACT] = self._audit.begin(principal.tenant_id, entry)

    async def responding(self, scope: Any, status: int) -> None:
        """Before the response is sent. Raises Unavailable for an act whose entry cannot be stored."""
        act = scope["state"].get(_ACT)
        if act is not None and status < 400 and not act.recorded:
            await self._threads.run(act.record)

    def ended(self, scope: Any, status: int) -> None:
        """After the response, or its failure (status 0)."""
        handler = scope.get("route_handler")
        if not status or handler is None:
            return
        state = scope["state"]
        if _SIGN_IN in state:
            self._audit.count(_sign_in_access(scope, state[_SIGN_IN], status))
        if handler.opt.get(PUBLIC) or handler.operation_id is None:
            return
        principal: Principal | None = scope.get("user")
        outcome = outcome_of(status)
        has_access = outcome is AccessOutcome.ALLOWED
        if has_access and _ACT in state:
            return
        self._audit.count(
            Access(
                caller=Caller() if principal is None else _caller(principal),
                operation=_operation(scope, handler),
                outcome=outcome,
                status=status,
                code=state.get(PROBLEM_CODE),
                via=_via(scope),
                dataset=_dataset(scope, outcome),
                address=None if has_access else client_address(scope) or None,
                digest=_digest(scope) if principal is None else None,
            )
        )


def _is_act(method: str, handler: BaseRouteHandler) -> bool:
    if method in SAFE_METHODS:
        return False
    administers = scope_of(handler) in (KeyScope.MANAGE, KeyScope.OPERATE)
    return administers or getattr(handler, "operation_id", None) in _CREATIONS


def _sign_in_access(scope: Any, attempt: SignIn, status: int) -> Access:
    return Access(
        caller=Caller() if attempt.principal is None else _caller(attempt.principal),
        operation=_requested(scope, _SIGN_IN_OPERATION),
        outcome=outcome_of(status),
        status=status,
        code=scope["state"].get(PROBLEM_CODE),
        via=AccessVia.CONSOLE,
        address=client_address(scope) or None,
        digest=attempt.digest if attempt.principal is None else None,
    )


def _operation(scope: Any, handler: Any) -> RequestedOperation:
    return _requested(scope, str(handler.operation_id))


def _requested(scope: Any, operation: str) -> RequestedOperation:
    path = "/".join(
        f"{{{part[1:-1].partition(':')[0]}}}" if part.startswith("{") else part
        for part in scope["path_template"].split("/")
    )
    return RequestedOperation(id=operation, method=scope["method"], path=path)


def _caller(principal: Principal) -> Caller:
    return Caller(
        tenant_id=principal.tenant_id,
        key_id=principal.actor,
        key_name=principal.key_name[:_TEXT_CHARACTERS_MAX],
    )


def _via(scope: Any) -> AccessVia:
    return AccessVia.CONSOLE if INNER in scope else AccessVia.API


def _dataset(scope: Any, outcome: AccessOutcome) -> str | None:
    """The name of the dataset; of a request without access only if it was found: a path may name anything."""
    name = scope["state"].get(DATASET_NAME)
    if name is None and outcome is AccessOutcome.ALLOWED:
        name = scope.get("path_params", {}).get("dataset")
    return None if name is None else str(name)[:_TEXT_CHARACTERS_MAX]


def _digest(scope: Any) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, key = value.partition(b" ")
            return sha256(key.strip()).digest() if scheme.lower() == b"bearer" else None
    return None


def _members(body: bytes) -> dict[str, Any]:
    """The members of a JSON body: their names, and the values of those that contain no secret."""
    try:
        document = msgspec.json.decode(body or b"{}")
    except msgspec.DecodeError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        name[:_TEXT_CHARACTERS_MAX]: _value(name, value)
        for name, value in list(document.items())[:_MEMBERS_MAX]
    }


def _trial(scope: Any) -> dict[str, Any]:
    """Whether the request was to change nothing, as a member: it is an option of the address."""
    options = parse_qs(scope["query_string"].decode("latin-1"))
    return {"dry_run": True} if "true" in options.get("dry_run", ()) else {}


def _value(name: str, value: Any) -> Any:
    return value if name in _VALUES and len(msgspec.json.encode(value)) <= _VALUE_BYTES_MAX else None
