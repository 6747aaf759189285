"""`/me`: the tenant, the credential, and what it may do."""

from __future__ import annotations

from litestar import get

from app.access.tenants.values import Principal
from app.features.administration.schemas import IdentityResponse, identity_response
from app.features.administration.service import Identities
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads


@get(
    "/me",
    operation_id="get_identity",
    summary="Get the identity of the credential",
    tags=["keys"],
    opt=needs(None),
)
async def get_identity(
    identities: Provided[Identities], principal: Provided[Principal], threads: Provided[Threads]
) -> IdentityResponse:
    """Returns the tenant and the key or token of the request, and what it may do. Any valid credential may ask."""
    return identity_response(principal, *await threads.run(identities.get, principal))
