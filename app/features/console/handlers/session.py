"""Sign-in and sign-out. A session begins with an API key, or with a link that was made with one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import get, post
from litestar.params import QueryParameter

from app.access.tenants.values import API_KEY, Principal, key_digest
from app.features.console.handlers.credentials import (
    CONSOLE_SESSIONS,
    ConsoleSession,
    cookie_name,
    is_secure,
    refuse_other_sites,
    refuse_unknown_form,
    session_cookie,
)
from app.features.console.handlers.forms import read_small_form
from app.features.console.handlers.responses import html, notice_cookie, see_other
from app.features.console.handlers.sign_in_page import SignIns, end_previous, sign_in
from app.features.console.service import Sessions
from app.http.audited import SignIn, note_sign_in
from app.http.auth import PUBLIC, needs
from app.http.credential_cache import Credentials
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.protocols import SCHEME, client_address, is_head
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.infra.errors import DatabaseFull

_NO_KEY: Final = "this is not a valid API key, or it has expired or was revoked"
_USED: Final = "this link was used already, or is older than ten minutes: sign in with an API key"
_NOT_STORED: Final = (
    "The disk of the database is full: nothing can be changed until space is freed. "
    "This session ends after 15 minutes."
)
Next: TypeAlias = Annotated[str, QueryParameter(name="next", description="The page to go to.")]
Token: TypeAlias = Annotated[str, QueryParameter(description="The token of a link that signs in once.")]


class SignInLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that signs in once."""

    url: str
    """The address. The sign-in uses it up."""
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
    try:
        link = await threads.run(sessions.link, principal)
    except DatabaseFull as error:
        raise DatabaseFull(
            f"{error.detail}. A link has to be stored: sign in with the API key at {public_url}/console/sign-in"
        ) from error
    return SignInLink(url=f"{public_url}/console/sign-in?link={link.secret}", expires_at=link.ends_at)


@get("/console/sign-in", opt={PUBLIC: True})
async def get_sign_in(
    request: ApiRequest,
    sessions: Provided[Sessions],
    sign_ins: Provided[SignIns],
    credentials: Provided[Credentials],
    threads: Provided[Threads],
    public_url: Provided[str],
    target: Next = "",
    link: Token = "",
) -> ApiResponse[str]:
    """The page of the sign-in. With the token of a link that the reader has opened, the sign-in itself.

    A request that may be of a program, such as one that checks links in mails, uses no link up: it gets the page with
    the button that does. So does a request that a page of another site has caused.
    """
    if not link:
        return html(sign_ins.page(target))
    # Nor does one of a reader who is signed in: a link of a stranger would replace that session unseen.
    is_signed_in = cookie_name(request, public_url) in request.cookies
    if is_head(request.scope) or not _is_opened_by_reader(request) or is_signed_in:
        return html(sign_ins.page(target, link=link))
    return await _follow_link(request, sessions, sign_ins, credentials, threads, public_url, link, target)


@post("/console/session", opt={PUBLIC: True}, status_code=200)
async def begin_session(
    request: ApiRequest,
    credentials: Provided[Credentials],
    sessions: Provided[Sessions],
    sign_ins: Provided[SignIns],
    threads: Provided[Threads],
    public_url: Provided[str],
) -> ApiResponse[str]:
    """Begins a session with the API key in the field `api_key`, or with the token of a link in the field `link`, and
    leads to the page in the field `next`.
    """
    refuse_other_sites(request, public_url)
    form = await read_small_form(request)
    key, link, target = form.text("api_key"), form.text("link"), form.text("next")
    if link:
        return await _follow_link(request, sessions, sign_ins, credentials, threads, public_url, link, target)
    note_sign_in(request, SignIn(digest=key_digest(key)))
    principal = (
        await credentials.principal(key, client_address(request.scope)) if API_KEY.fullmatch(key) else None
    )
    if principal is None:
        return html(sign_ins.page(target, _NO_KEY), status=401)
    session, is_stored = await threads.run(sessions.begin_with_key, principal, key)
    try:
        await end_previous(request, sessions, credentials, threads, public_url)
    except DatabaseFull:
        # The session before ends by itself.
        if is_stored:
            raise
    response = sign_in(request, principal, session, target, public_url)
    if not is_stored:
        cookie = notice_cookie(_NOT_STORED, "warning", secure=is_secure(request, public_url))
        response.cookies = [*response.cookies, cookie]
    return response


@post("/console/session/end", opt=needs(None) | {SCHEME: CONSOLE_SESSIONS}, status_code=200)
async def end_session(
    request: ApiRequest, sessions: Provided[Sessions], threads: Provided[Threads], public_url: Provided[str]
) -> ApiResponse[str]:
    """Ends the session of the request."""
    refuse_other_sites(request, public_url)
    session: Any = request.auth
    assert isinstance(session, ConsoleSession)
    refuse_unknown_form(session, (await read_small_form(request)).text("token"))
    await threads.run(sessions.end, request.user, session.secret)
    return see_other("/console/sign-in", cookies=(session_cookie(request, None, public_url),))


async def _follow_link(
    request: ApiRequest,
    sessions: Sessions,
    sign_ins: SignIns,
    credentials: Credentials,
    threads: Threads,
    public_url: str,
    link: str,
    target: str,
) -> ApiResponse[str]:
    """The response to the token of a link, which this uses up. Raises RateLimited, Unavailable."""
    note_sign_in(request, SignIn())
    async with credentials.lookup(client_address(request.scope)):
        principal = await threads.run(sessions.follow, link)
    if principal is None:
        return html(sign_ins.page(target, _USED), status=401)
    session = await threads.run(sessions.begin, principal)
    await end_previous(request, sessions, credentials, threads, public_url)
    return sign_in(request, principal, session, target, public_url)


def _is_opened_by_reader(request: ApiRequest) -> bool:
    """Whether a browser states that its reader has opened the address, and no page or program of another has."""
    fields = request.headers
    opened = fields.get("sec-fetch-site") == "none" and fields.get("sec-fetch-mode") == "navigate"
    return opened and "sec-purpose" not in fields and "purpose" not in fields
