"""The pages that lists have at the top of every page, and who may open them."""

from __future__ import annotations

from typing import Final, NamedTuple

from app.access.tenants.values import KeyScope, Principal


class Place(NamedTuple):
    """A page of the navigation. A credential needs one of the scopes."""

    path: str
    word: str
    scopes: tuple[KeyScope, ...] = (KeyScope.READ,)
    whole_tenant: bool = False
    """Whether a credential with grants is refused: the page is not about datasets."""

    def is_open_to(self, principal: Principal) -> bool:
        """Whether the principal may open the page."""
        has_scope = not principal.scopes.isdisjoint(self.scopes)
        return has_scope and not (self.whole_tenant and principal.grants is not None)


PLACES: Final = (
    Place("/console/datasets", "Datasets"),
    Place("/console/jobs", "Jobs"),
    Place("/console/lineage", "Lineage"),
    Place("/console/sources", "Sources"),
    Place("/console/views", "Views"),
    Place("/console/webhooks", "Webhooks"),
    Place("/console/exports", "Exports"),
    Place("/console/shares", "Shares"),
    Place("/console/keys", "Keys", (KeyScope.MANAGE,), whole_tenant=True),
    Place("/console/usage", "Usage", whole_tenant=True),
    Place("/console/audit", "Audit", (KeyScope.MANAGE, KeyScope.OPERATE), whole_tenant=True),
    Place("/console/tenants", "Tenants", (KeyScope.OPERATE,), whole_tenant=True),
    Place("/console/service", "Service", (KeyScope.OPERATE,)),
)
_BY_PATH: Final = {place.path: place for place in PLACES}


def places_of(principal: Principal) -> list[Place]:
    """The pages that the principal may open."""
    return [place for place in PLACES if place.is_open_to(principal)]


def is_open(path: str, principal: Principal) -> bool:
    """Whether the principal may open a page of the navigation."""
    return _BY_PATH[path].is_open_to(principal)
