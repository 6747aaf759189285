"""The sign-in of a person at an issuer: the authorization code flow with PKCE (RFC 6749, RFC 7636, OpenID Connect)."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from app.access.oidc.download import IssuerReply, download, exchange
from app.access.oidc.issuers import Issuer
from app.access.oidc.key_set import discovery_document, endpoint
from app.infra.outbound.foreign import foreign_text

_FRESH_SECONDS: Final = 300.0
_RETRY_SECONDS: Final = 10.0
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_BASIC: Final = "client_secret_basic"
_FAULTS: Final = (OSError, http.client.HTTPException, ValueError, RecursionError)


class SignInFailed(Exception):
    """The sign-in at an issuer failed. The message is for the person, as a sentence."""


class SignInAttempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a browser keeps while its reader is at the issuer. `target`: the page to which the sign-in leads."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    target: str

    def __repr__(self) -> str:
        return f"SignInAttempt({self.issuer!r})"


class IssuedTokens(msgspec.Struct, frozen=True, kw_only=True):
    """What the issuer has given for a code."""

    access_token: str
    id_token: str

    def __repr__(self) -> str:
        return "IssuedTokens()"


class _Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    authorization: str
    token: str
    # Whether the secret of the client is sent as HTTP Basic, and not as a member of the form.
    basic: bool


class CodeFlow:
    """Signs people in at one issuer, which has a `client_id`. Its methods block: a thread calls them."""

    def __init__(
        self,
        issuer: Issuer,
        get: Callable[[str], Any] = download,
        send: Callable[[str, str, bytes, Mapping[str, str]], IssuerReply] = exchange,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`get` returns the JSON of a URL, `send` the reply to a request. `clock`: monotonic seconds."""
        self.issuer = issuer
        self._get = get
        self._send = send
        self._clock = clock
        self._known: tuple[_Endpoints, float] | None = None
        self._failed_at = float("-inf")

    def begin(self, redirect_uri: str, target: str) -> tuple[str, SignInAttempt]:
        """The address at the issuer to which the browser is sent, and what it keeps. Raises SignInFailed."""
        sign_in = SignInAttempt(
            issuer=self.issuer.issuer,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            target=target,
        )
        digest = hashlib.sha256(sign_in.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.issuer.client_id or "",
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.issuer.sign_in_scopes or ("openid",)),
            "state": sign_in.state,
            "nonce": sign_in.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        address = self._endpoints().authorization
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}", sign_in

    def tokens(self, code: str, sign_in: SignInAttempt, redirect_uri: str) -> IssuedTokens:
        """What the issuer gives for a code. Raises SignInFailed."""
        endpoints = self._endpoints()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": sign_in.verifier,
            "client_id": self.issuer.client_id or "",
        }
        headers: dict[str, str] = dict(_FORM)
        if self.issuer.client_secret is not None:
            if endpoints.basic:
                headers["Authorization"] = _basic(form.pop("client_id"), self.issuer.client_secret)
            else:
                form["client_secret"] = self.issuer.client_secret
        try:
            reply = self._send("POST", endpoints.token, urlencode(form).encode(), headers)
            members = json.loads(reply.content)
        except _FAULTS:
            raise self._unreachable() from None
        if reply.status != http.client.OK or not isinstance(members, dict):
            error = members.get("error", reply.status) if isinstance(members, dict) else reply.status
            raise SignInFailed(
                f"{self.issuer.title} refuses the sign-in: {foreign_text(error, 100)}. Try again"
            )
        try:
            return msgspec.convert(members, IssuedTokens)
        except msgspec.ValidationError:
            raise SignInFailed(f"{self.issuer.title} gives no access token and ID token") from None

    def _endpoints(self) -> _Endpoints:
        """Those of the discovery document, which is read again after five minutes. Raises SignInFailed."""
        now = self._clock()
        if self._known is not None and now - self._known[1] < _FRESH_SECONDS:
            return self._known[0]
        if now - self._failed_at < _RETRY_SECONDS:
            raise self._unreachable()
        try:
            document = discovery_document(self.issuer, self._get)
            methods = document.get("token_endpoint_auth_methods_supported", [_BASIC])
            endpoints = _Endpoints(
                authorization=endpoint(self.issuer, document, "authorization_endpoint"),
                token=endpoint(self.issuer, document, "token_endpoint"),
                basic=not isinstance(methods, list) or _BASIC in methods,
            )
        except _FAULTS:
            self._failed_at = self._clock()
            raise self._unreachable() from None
        self._known = (endpoints, now)
        return endpoints

    def _unreachable(self) -> SignInFailed:
        return SignInFailed(f"{self.issuer.title} cannot be reached: try again, or sign in with an API key")


def _basic(client_id: str, secret: str) -> str:
    text = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return f"Basic {base64.b64encode(text.encode()).decode()}"
