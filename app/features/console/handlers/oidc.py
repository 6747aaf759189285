"""Sign-in at an OpenID Connect issuer: its button, and the way back with a code."""

from __future__ import annotations

import base64
import hmac
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import get
from litestar.datastructures import Cookie
from litestar.params import PathParameter

from app.access.errors import NotFound
from app.access.oidc.code_flow import SignInAttempt, SignInFailed
from app.access.oidc.errors import TokenRefused
from app.access.tenants.values import Principal
from app.features.console.handlers.credentials import cookie_name, cookie_path, is_secure
from app.features.console.handlers.responses import html, see_other
from app.features.console.handlers.sign_in_page import (
    SignIns,
    end_previous,
    own_page,
    sign_in,
)
from app.features.console.service import Sessions
from app.http.audited import SignIn, note_sign_in
from app.http.auth import PUBLIC
from app.http.credential_cache import Credentials
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.parameters.query_parameters import ANY_PARAMETERS
from app.http.protocols import client_address, is_head
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.infra.errors import Unavailable
from app.infra.outbound.foreign import foreign_text

_PATH: Final = "/console/oidc"
_SECONDS: Final = 600
_CODE_CHARACTERS_MAX: Final = 4_096
_OTHER: Final = "this sign-in was used already, took too long or was begun in another browser: begin again"
_CANCELLED: Final = "access_denied"
IssuerId: TypeAlias = Annotated[str, PathParameter(description="The id of an issuer.")]


@get(f"{_PATH}/{{issuer:str}}/begin", opt={PUBLIC: True, ANY_PARAMETERS: True})
async def begin_oidc(
    issuer: IssuerId,
    request: ApiRequest,
    sign_ins: Provided[SignIns],
    outbound: Provided[Threads],
    public_url: Provided[str],
) -> ApiResponse[str]:
    """Sends the browser to an issuer, and has it keep what the way back must have."""
    flow = sign_ins.flows.get(issuer)
    if flow is None:
        raise NotFound("the console does not sign in at such an issuer")
    target = own_page(request.query_params.get("next", ""))
    try:
        async with sign_ins.turn(client_address(request.scope)):
            address, attempt = await outbound.run(flow.begin, _redirect_uri(public_url), target)
    except SignInFailed as error:
        return html(sign_ins.page(target, str(error)), status=502)
    return see_other(address, cookies=(_cookie(request, attempt, public_url),))


@get(f"{_PATH}/callback", opt={PUBLIC: True, ANY_PARAMETERS: True})
async def end_oidc(
    request: ApiRequest,
    sign_ins: Provided[SignIns],
    sessions: Provided[Sessions],
    credentials: Provided[Credentials],
    threads: Provided[Threads],
    outbound: Provided[Threads],
    public_url: Provided[str],
) -> ApiResponse[str]:
    """The way back from an issuer: begins a session of the access token that it gives for the code."""
    note_sign_in(request, SignIn())
    attempt = _attempt(request, public_url)
    if is_head(request.scope) or attempt is None:
        return html(sign_ins.page("", _OTHER), status=401)
    # It is used up in any case.
    cookies = (_cookie(request, None, public_url),)
    try:
        principal = await _principal(request, attempt, sign_ins, credentials, outbound, public_url)
        session = await threads.run(sessions.begin, principal)
        await end_previous(request, sessions, credentials, threads, public_url)
    except (SignInFailed, TokenRefused, Unavailable) as error:
        status = 503 if isinstance(error, Unavailable) else 401
        return html(sign_ins.page(attempt.target, _text(error)), status=status, cookies=cookies)
    response = sign_in(request, principal, session, attempt.target, public_url)
    response.cookies = [*response.cookies, *cookies]
    return response


async def _principal(
    request: ApiRequest,
    attempt: SignInAttempt,
    sign_ins: SignIns,
    credentials: Credentials,
    outbound: Threads,
    public_url: str,
) -> Principal:
    """The principal of the access token for the code of the request. Raises SignInFailed, TokenRefused, Unavailable."""
    query, flow = request.query_params, sign_ins.flow(attempt.issuer)
    code = query.get("code", "")
    if flow is None or sign_ins.tokens is None or query.get("iss", attempt.issuer) != attempt.issuer:
        raise SignInFailed(_OTHER)
    if error := query.get("error", ""):
        if error == _CANCELLED:
            raise SignInFailed(f"the sign-in at {flow.issuer.title} was cancelled or refused")
        raise SignInFailed(f"{flow.issuer.title} refuses the sign-in: {foreign_text(error, 100)}")
    if not 0 < len(code) <= _CODE_CHARACTERS_MAX:
        raise SignInFailed(f"{flow.issuer.title} has sent no code: begin again")
    async with sign_ins.turn(client_address(request.scope)):
        tokens = await outbound.run(flow.tokens, code, attempt, _redirect_uri(public_url))
    identity = await sign_ins.tokens.subject(tokens.id_token, attempt.nonce)
    principal = await credentials.principal(tokens.access_token, client_address(request.scope))
    token = None if principal is None else principal.token
    same = token is not None and (token.issuer, token.subject) == identity and token.issuer == attempt.issuer
    if principal is None or not same:
        raise SignInFailed(f"{flow.issuer.title} gives tokens of different people, or none of its own")
    return principal


def _attempt(request: ApiRequest, public_url: str) -> SignInAttempt | None:
    """What the browser has kept of the sign-in that the request ends; None without its state."""
    text = request.cookies.get(_name(request, public_url), "")
    try:
        attempt = msgspec.json.decode(base64.urlsafe_b64decode(text), type=SignInAttempt)
    except (ValueError, msgspec.MsgspecError):
        return None
    state = request.query_params.get("state", "")
    return attempt if hmac.compare_digest(attempt.state.encode(), state.encode()) else None


def _cookie(request: ApiRequest, attempt: SignInAttempt | None, public_url: str) -> Cookie:
    """The cookie of a sign-in that has begun; None removes it. `Lax`: the issuer sends the browser back with it."""
    value = "" if attempt is None else base64.urlsafe_b64encode(msgspec.json.encode(attempt)).decode()
    return Cookie(
        key=_name(request, public_url),
        value=value,
        path=cookie_path(request, public_url, _PATH),
        max_age=0 if attempt is None else _SECONDS,
        httponly=True,
        secure=is_secure(request, public_url),
        samesite="lax",
    )


def _name(request: ApiRequest, public_url: str) -> str:
    return f"{cookie_name(request, public_url)}_oidc"


def _redirect_uri(public_url: str) -> str:
    return f"{public_url}{_PATH}/callback"


def _text(error: Any) -> str:
    return str(getattr(error, "detail", error))
