"""The pages that lists have at the top of every page, and who may open them."""

from __future__ import annotations

from typing import Final, NamedTuple

from app.access.tenants.values import KeyScope, Principal


class NavigationPage(NamedTuple):
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


NAVIGATION: Final = (
    NavigationPage("/console/datasets", "Datasets"),
    NavigationPage("/console/jobs", "Jobs"),
    NavigationPage("/console/lineage", "Lineage"),
    NavigationPage("/console/sources", "Sources"),
    NavigationPage("/console/views", "Views"),
    NavigationPage("/console/webhooks", "Webhooks"),
    NavigationPage("/console/exports", "Exports"),
    NavigationPage("/console/shares", "Shares"),
    NavigationPage("/console/keys", "Keys", (KeyScope.MANAGE,), whole_tenant=True),
    NavigationPage("/console/usage", "Usage", whole_tenant=True),
    NavigationPage("/console/audit", "Audit", (KeyScope.MANAGE, KeyScope.OPERATE), whole_tenant=True),
    NavigationPage("/console/tenants", "Tenants", (KeyScope.OPERATE,), whole_tenant=True),
    NavigationPage("/console/service", "Service", (KeyScope.OPERATE,)),
)
_BY_PATH: Final = {page.path: page for page in NAVIGATION}


def pages_of(principal: Principal) -> list[NavigationPage]:
    """The pages that the principal may open."""
    return [page for page in NAVIGATION if page.is_open_to(principal)]


def is_open(path: str, principal: Principal) -> bool:
    """Whether the principal may open a page of the navigation."""
    return _BY_PATH[path].is_open_to(principal)
