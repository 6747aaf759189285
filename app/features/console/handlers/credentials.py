"""The cookie of a session, and what protects forms from other sites."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie

from app.access.errors import Forbidden, Unauthorized
from app.access.tenants.values import ActorKind, ActorSecret, Credential
from app.features.console.sealed_keys import is_sealed
from app.features.console.values import NewSession, form_token, has_form_of_secret

CONSOLE_SESSIONS: Final = "console_sessions"
"""The name of the scheme, which handlers state as their option `SCHEME`."""


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """What handlers of pages get as `request.auth`."""

    secret: str

    def __repr__(self) -> str:
        return "ConsoleSession()"

    @property
    def credential(self) -> ActorSecret:
        """The credential of the requests that pages send."""
        return ActorSecret(ActorKind.SESSION, self.secret)

    @property
    def form_token(self) -> str:
        """The token that its forms carry."""
        return form_token(self.secret)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleSessionScheme:
    """Finds the session of a request by its cookie. `public_url`: the configured address of the service, if any."""

    public_url: str

    async def authenticate(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> tuple[Credential, ConsoleSession]:
        """See `Scheme`. Raises Unauthorized."""
        secret = connection.cookies.get(cookie_name(connection, self.public_url), "")
        if not (has_form_of_secret(secret) or is_sealed(secret)):
            raise Unauthorized("sign in to see the console")
        session = ConsoleSession(secret)
        return session.credential, session


def cookie_name(connection: ASGIConnection[Any, Any, Any, Any], public_url: str) -> str:
    """The name of the cookie. All ports of a host share their cookies, so each service has a name of its own.

    Browsers accept a name with `__Host-` from this host alone, by HTTPS: no other host of its domain can set one, with
    which its reader would work in a session of somebody else.
    """
    host = connection.headers.get("host", "")
    prefix = "__Host-" if is_secure(connection, public_url) else ""
    return f"{prefix}headwater_console_{hashlib.sha256(host.encode()).hexdigest()[:8]}"


def cookie_path(connection: ASGIConnection[Any, Any, Any, Any], public_url: str, path: str) -> str:
    """The path of a cookie: the given one, unless the name begins with `__Host-`, which needs the path `/`."""
    return "/" if is_secure(connection, public_url) else path


def session_cookie(
    connection: ASGIConnection[Any, Any, Any, Any], session: NewSession | None, public_url: str
) -> Cookie:
    """The cookie of a session; None removes it. `Lax`: a link from another site finds the reader signed in.

    `public_url`: the address of the service. It is that of HTTPS behind a proxy whose requests are of HTTP.
    """
    seconds = 0 if session is None else max(int((session.ends_at - datetime.now(UTC)).total_seconds()), 1)
    return Cookie(
        key=cookie_name(connection, public_url),
        value="" if session is None else session.secret,
        path=cookie_path(connection, public_url, "/console"),
        max_age=seconds,
        httponly=True,
        secure=is_secure(connection, public_url),
        samesite="lax",
    )


def is_secure(connection: ASGIConnection[Any, Any, Any, Any], public_url: str) -> bool:
    """Whether browsers reach the console by HTTPS, so that they must send its cookies by HTTPS only."""
    scope: Any = connection.scope
    return scope["scheme"] == "https" or urlsplit(public_url).scheme == "https"


def refuse_other_sites(connection: ASGIConnection[Any, Any, Any, Any], public_url: str) -> None:
    """Raises Forbidden for a form that a page of another site has sent. Browsers name the site of a form.

    `public_url`: the address of the service, which a proxy may have replaced in the header Host.
    """
    site = connection.headers.get("sec-fetch-site")
    origin = connection.headers.get("origin")
    if site is not None:
        foreign = site not in ("same-origin", "none")
    else:
        own = {connection.headers.get("host", ""), urlsplit(public_url).netloc}
        foreign = origin is not None and _host_of(origin) not in own
    if foreign:
        raise Forbidden("a page of another site has sent this form: open the console and try again")


def _host_of(origin: str) -> str:
    """The host and port of an origin; `-` for one that has none, such as `null`."""
    try:
        return urlsplit(origin).netloc or "-"
    except ValueError:
        return "-"


def refuse_unknown_form(session: ConsoleSession, token: str) -> None:
    """Raises Forbidden for a form that is not one of the session."""
    if not hmac.compare_digest(session.form_token.encode(), token.encode()):
        raise Forbidden("this form is of another session: load its page again, and send it from there")
