"""The page of the sign-in, and what begins a session in a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode

from app.access.oidc.code_flow import CodeFlow, SignInFailed
from app.access.oidc.verifier import TokenVerifier
from app.access.tenants.values import ActorKind, ActorSecret, Principal
from app.features.console.handlers.credentials import cookie_name, session_cookie
from app.features.console.handlers.responses import see_other
from app.features.console.rendering import render
from app.features.console.service import Sessions
from app.features.console.values import NewSession, has_form_of_secret
from app.http.audited import SignIn, note_sign_in
from app.http.credential_cache import Credentials
from app.http.limits.threads import Threads
from app.http.protocols import client_address
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.infra.sharing.fair_slots import FairSlots

_AT_A_TIME: Final = 2
_OF_ADDRESS_MAX: Final = 10
_WAITING_MAX: Final = 200
_WAIT_SECONDS_MAX: Final = 10.0
_BUSY: Final = "too many people are signing in at this moment: try again"


@dataclass(frozen=True, kw_only=True, slots=True)
class SignIns:
    """The issuers at which people sign in to the console.

    `tokens`: verifies what they issue; None if there are no issuers. `flows`: by the id of the issuer in addresses.
    """

    tokens: TokenVerifier | None = None
    flows: Mapping[str, CodeFlow] = field(default_factory=dict)
    _turns: FairSlots = field(default_factory=lambda: FairSlots(_AT_A_TIME))

    @classmethod
    def of(cls, tokens: TokenVerifier | None) -> SignIns:
        """Those of the issuers of tokens that have a client."""
        clients = [each for each in (tokens.issuers if tokens else ()) if each.client_id is not None]
        return cls(tokens=tokens, flows={_id_of(each.issuer): CodeFlow(each) for each in clients})

    def flow(self, issuer: str) -> CodeFlow | None:
        """The flow of an issuer by its claim `iss`; None if it has no client."""
        return self.flows.get(_id_of(issuer))

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """A turn to send a request to an issuer, which may take seconds. Raises SignInFailed if too many wait."""
        if self._turns.demand(address) >= _OF_ADDRESS_MAX or self._turns.total_demand() >= _WAITING_MAX:
            raise SignInFailed(_BUSY)
        async with self._turns.slot(address, _WAIT_SECONDS_MAX) as has_turn:
            if not has_turn:
                raise SignInFailed(_BUSY)
            yield

    def page(self, target: str, fault: str = "", link: str = "") -> str:
        """The page, which leads to the target. `fault`: what was wrong. `link`: the token of a link to follow."""
        own = own_page(target)
        query = "" if own == "/console" else f"?{urlencode({'next': own})}"
        issuers = [
            (f"/console/oidc/{key}/begin{query}", flow.issuer.title) for key, flow in self.flows.items()
        ]
        context = {
            "target": own,
            "fault": fault,
            "link": link,
            "issuers": issuers,
            "visit": None,
            "calls": (),
        }
        return render("sign_in.html", context)


def own_page(target: str) -> str:
    """A page of the console; the first one for any other address."""
    inside = target.startswith("/console/") and "\\" not in target
    return target if inside and target.isascii() and target.isprintable() else "/console"


def sign_in(
    request: ApiRequest, principal: Principal, session: NewSession, target: str, public_url: str
) -> ApiResponse[str]:
    """Sets the cookie of a session of the principal, and leads to the target."""
    note_sign_in(request, SignIn(principal=principal))
    return see_other(own_page(target), cookies=(session_cookie(request, session, public_url),))


async def end_previous(
    request: ApiRequest, sessions: Sessions, credentials: Credentials, threads: Threads, public_url: str
) -> None:
    """Ends the session that the browser had: its cookie is replaced, so nothing could end it later."""
    secret = request.cookies.get(cookie_name(request, public_url), "")
    if not has_form_of_secret(secret):
        return
    principal = await credentials.principal(
        ActorSecret(ActorKind.SESSION, secret), client_address(request.scope)
    )
    if principal is not None:
        await threads.run(sessions.end, principal, secret)


def _id_of(issuer: str) -> str:
    return sha256(issuer.encode()).hexdigest()[:12]
