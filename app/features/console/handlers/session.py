"""Sign-in and sign-out. A session begins with an API key, or with a link that was made with one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import get, post
from litestar.params import QueryParameter

from app.access.tenants.values import API_KEY, Principal
from app.features.console.handlers.credentials import (
    CONSOLE_SESSIONS,
    ConsoleSession,
    refuse_other_sites,
    refuse_unknown_form,
    session_cookie,
)
from app.features.console.handlers.forms import read_form
from app.features.console.handlers.responses import html, see_other
from app.features.console.rendering import render
from app.features.console.service import Sessions
from app.features.console.values import NewSession
from app.http.auth import PUBLIC, needs
from app.http.credential_cache import Credentials
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.protocols import SCHEME
from app.http.request import ApiRequest
from app.http.response import ApiResponse

_NO_KEY: Final = "this is not a valid API key, or it has expired or was revoked"
_USED: Final = "this link was used already, or is older than ten minutes: sign in with an API key"
Next: TypeAlias = Annotated[str, QueryParameter(name="next", description="The page to go to.")]
Token: TypeAlias = Annotated[str, QueryParameter(description="The token of a link that signs in once.")]


class SignInLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that signs in once."""

    url: str
    """The address. The first visit uses it up."""
    expires_at: datetime
    """When it ends without a visit."""


@post(
    "/sign-in-links",
    operation_id="create_sign_in_link",
    summary="Make a link that signs in to the console",
    tags=["console"],
    opt=needs(None),
)
async def create_sign_in_link(
    principal: Provided[Principal],
    sessions: Provided[Sessions],
    threads: Provided[Threads],
    public_url: Provided[str],
) -> SignInLink:
    """Returns a link that signs in to the console once, as the key of the request. It lasts ten minutes."""
    link = await threads.run(sessions.link, principal)
    return SignInLink(url=f"{public_url}/console/sign-in?link={link.secret}", expires_at=link.ends_at)


@get("/console/sign-in", opt={PUBLIC: True})
async def get_sign_in(
    request: ApiRequest,
    sessions: Provided[Sessions],
    threads: Provided[Threads],
    target: Next = "",
    link: Token = "",
) -> ApiResponse[str]:
    """The page of the sign-in. With the token of a link, the sign-in itself."""
    if not link:
        return html(_form(target, ""))
    session = await threads.run(sessions.follow, link)
    if session is None:
        return html(_form(target, _USED), status=401)
    return _signed_in(request, session, target)


@post("/console/session", opt={PUBLIC: True}, status_code=200)
async def begin_session(
    request: ApiRequest,
    credentials: Provided[Credentials],
    sessions: Provided[Sessions],
    threads: Provided[Threads],
) -> ApiResponse[str]:
    """Begins a session with the API key in the field `api_key`, and leads to the page in the field `next`."""
    refuse_other_sites(request)
    form = await read_form(request)
    key, target = form.text("api_key"), form.text("next")
    address = "" if request.client is None else request.client.host
    principal = await credentials.principal(key, address) if API_KEY.fullmatch(key) else None
    if principal is None:
        return html(_form(target, _NO_KEY), status=401)
    return _signed_in(request, await threads.run(sessions.begin, principal), target)


@post("/console/session/end", opt=needs(None) | {SCHEME: CONSOLE_SESSIONS}, status_code=200)
async def end_session(
    request: ApiRequest, sessions: Provided[Sessions], threads: Provided[Threads]
) -> ApiResponse[str]:
    """Ends the session of the request."""
    refuse_other_sites(request)
    session: Any = request.auth
    assert isinstance(session, ConsoleSession)
    refuse_unknown_form(session, (await read_form(request)).text("token"))
    await threads.run(sessions.end, request.user, session.secret)
    return see_other("/console/sign-in", cookies=(session_cookie(request, None),))


def _signed_in(request: ApiRequest, session: NewSession, target: str) -> ApiResponse[str]:
    return see_other(_own_page(target), cookies=(session_cookie(request, session),))


def _own_page(target: str) -> str:
    """A page of the console; the first one for any other address."""
    inside = target.startswith("/console/") and "\\" not in target and target.isprintable()
    return target if inside else "/console"


def _form(target: str, fault: str) -> str:
    return render("sign_in.html", {"target": _own_page(target), "fault": fault, "visit": None, "calls": ()})
