"""Responses of the console: HTML with a strict policy, redirects, and problems as pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

import msgspec
from litestar import MediaType, Request, Response
from litestar.datastructures import Cookie

from app.features.console.rendering import render
from app.features.console.visit import NoticeKind
from app.http.response import ApiResponse

_UNAUTHORIZED: Final = 401
_NOTICE_SECONDS: Final = 30
# A browser stores 4,096 bytes of a cookie, and a character can be 12 of its encoded form.
_NOTICE_CHARACTERS_MAX: Final = 300
_NOTICE: Final = "headwater_console_notice"
_KINDS: Final[tuple[NoticeKind, ...]] = ("good", "warning", "bad")
# Without inline script or style: everything comes from this origin.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    # Not `no-referrer`: with it, browsers send forms without their origin.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-store",
    "Vary": "Cookie",
}
"""The headers of pages, in place of those of the API."""


def html(text: str, *, status: int = 200, cookies: tuple[Cookie, ...] = ()) -> ApiResponse[str]:
    """A page."""
    return ApiResponse(
        text, status_code=status, media_type=MediaType.HTML, headers=PAGE_HEADERS, cookies=list(cookies)
    )


def see_other(target: str, *, cookies: tuple[Cookie, ...] = ()) -> ApiResponse[str]:
    """303: the browser loads another page."""
    return ApiResponse(
        "",
        status_code=303,
        media_type=MediaType.TEXT,
        headers={**PAGE_HEADERS, "Location": target},
        cookies=list(cookies),
    )


def notice_cookie(notice: str, kind: NoticeKind = "good", *, secure: bool) -> Cookie:
    """The cookie of a notice, or of the beginning of a long one, which the next page shows; an empty one removes it.

    `secure`: it is for HTTPS only.
    """
    return Cookie(
        key=_NOTICE,
        value=f"{kind}.{quote(notice[:_NOTICE_CHARACTERS_MAX])}" if notice else "",
        path="/console",
        max_age=_NOTICE_SECONDS if notice else 0,
        httponly=True,
        secure=secure,
        samesite="lax",
    )


def notice_of(cookies: Mapping[str, str]) -> tuple[str, NoticeKind]:
    """The notice that a browser has sent, and its kind."""
    name, _, text = cookies.get(_NOTICE, "").partition(".")
    kind = next((each for each in _KINDS if each == name), None)
    return ("", "good") if kind is None else (unquote(text), kind)


def sign_in_path(target: str) -> str:
    """The page of the sign-in, which leads to the target."""
    return "/console/sign-in" + ("" if target in ("", "/console") else f"?{urlencode({'next': target})}")


def console_error(
    request: Request[Any, Any, Any], members: Mapping[str, Any], headers: Mapping[str, str]
) -> Response[bytes]:
    """A problem below `/console` as a page; without a session, the way to the sign-in. See `ErrorForm`.

    A script that requests a part of a page gets the problem document.
    """
    accept = request.headers.get("accept", "")
    if "json" in accept and "text/html" not in accept:
        document = msgspec.json.encode(members, enc_hook=str)
        return Response(
            document,
            status_code=members["status"],
            media_type="application/problem+json",
            headers=dict(headers),
        )
    if members["status"] == _UNAUTHORIZED:
        query = request.scope["query_string"].decode("latin-1")
        target = request.scope["path"] + (f"?{query}" if query else "")
        location = sign_in_path(target if request.method == "GET" else "")
        return Response(
            b"",
            status_code=303,
            media_type=MediaType.TEXT,
            headers={**PAGE_HEADERS, "Location": location},
        )
    body = render("problem.html", {"members": members, "visit": None, "calls": ()})
    return Response(
        body.encode(),
        status_code=members["status"],
        media_type=MediaType.HTML,
        headers={**headers, **PAGE_HEADERS},
    )
