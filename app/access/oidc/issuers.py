"""The issuers whose tokens a deployment accepts: JSON that the operator writes."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from app.access.tenants.values import KeyScope

ISSUERS_MAX: Final = 100
ALL_TENANTS: Final = "*"
"""The only member of `tenants` of an issuer that may name any tenant."""
_FILE_BYTES_MAX: Final = 1024 * 1024
_DISCOVERY: Final = "/.well-known/openid-configuration"

Algorithm: TypeAlias = Literal["RS256", "ES256", "EdDSA"]
"""How a token may be signed. All are asymmetric: the service has nothing to sign with."""
_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
# RFC 6749, section 3.3.
_ScopeName: TypeAlias = Annotated[str, msgspec.Meta(max_length=255, pattern=r"^[!#-\[\]-~]+$")]
_OPENID: Final = "openid"


class Issuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issuer, and what its tokens mean here."""

    issuer: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
    """The claim `iss`, exactly; also where its discovery document is, unless `jwks_url` is set."""
    audience: _Name
    """The claim `aud`, or one of its members."""
    jwks_url: str | None = None
    """Where its public keys are."""
    algorithms: Annotated[tuple[Algorithm, ...], msgspec.Meta(min_length=1)] = ("RS256", "ES256", "EdDSA")
    tenant: _Name | None = None
    """The tenant of all its tokens, by id or name."""
    tenant_claim: _Name | None = None
    """The claim with the id or the name of the tenant."""
    tenants: tuple[_Name, ...] = ()
    """What `tenant_claim` may contain, by id or name; `*` alone for every tenant. Required with `tenant_claim`."""
    scope_claim: _Name = "scope"
    """The claim with scopes: a text with spaces between them, or a list."""
    scopes: dict[str, KeyScope] | None = None
    """The scope that each member of the claim gives; None if they have the names of the scopes. Others give none."""
    grants_claim: _Name | None = None
    """The claim with grants: a list of patterns, or of grants as keys have them."""
    operate: bool = False
    """Whether its tokens may give the scope `operate`."""
    leeway_seconds: Annotated[int, msgspec.Meta(ge=0, le=60)] = 30
    """How far the clocks may differ."""
    lifetime_seconds_max: Annotated[int, msgspec.Meta(ge=60, le=604_800)] = 86_400
    """The longest time before a token expires that it is accepted."""
    client_id: _Name | None = None
    """The client as which the console signs people in at the issuer; None if it does not."""
    client_secret: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)] | None = None
    """The secret of that client; None for a public client, which has none."""
    sign_in_scopes: Annotated[tuple[_ScopeName, ...], msgspec.Meta(min_length=1, max_length=50)] | None = None
    """What the console requests at the issuer, `openid` among them; None for that alone."""
    label: Annotated[str, msgspec.Meta(min_length=1, max_length=60)] | None = None
    """What the button of the issuer shows on the page of the sign-in; None for the host of the issuer."""

    def __repr__(self) -> str:
        return f"Issuer({self.issuer!r})"

    def may_name(self, tenant: str) -> bool:
        """Whether `tenant_claim` may contain this."""
        return tenant in self.tenants or self.tenants == (ALL_TENANTS,)

    @property
    def title(self) -> str:
        """What the button of the issuer shows."""
        return self.label or urlsplit(self.issuer).netloc

    @property
    def discovery_url(self) -> str:
        """Where its discovery document is."""
        return self.issuer.rstrip("/") + _DISCOVERY


def issuers_of(setting: str) -> Mapping[str, Issuer]:
    """The issuers of a setting by their claim `iss`. It is a JSON list, or the path of a file with one.

    Raises ValueError for a setting that is not valid.
    """
    if not setting:
        return {}
    try:
        text = setting.encode() if setting.lstrip().startswith("[") else _content(Path(setting))
        issuers = msgspec.json.decode(text, type=list[Issuer])
    except OSError as error:
        raise ValueError(f"names a file that cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise ValueError(f"must be a JSON list of issuers, or the path of a file with one: {error}") from None
    if len(issuers) > ISSUERS_MAX:
        raise ValueError(f"must have at most {ISSUERS_MAX} issuers")
    for each in issuers:
        _check(each)
    by_name = {each.issuer: each for each in issuers}
    if len(by_name) < len(issuers):
        raise ValueError("must have each issuer once")
    return by_name


def check_url(url: str) -> None:
    """Raises ValueError unless keys may be read from it: it is encrypted, or does not leave the machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname and "@" not in parts.netloc:
        return
    if parts.scheme != "http" or not _is_loopback(parts.hostname):
        raise ValueError(f"must have https:// URLs, or http:// ones of this machine, not {url!r}")


def is_encrypted(url: str) -> bool:
    """Whether the URL is one of HTTPS."""
    return urlsplit(url).scheme == "https"


def _content(path: Path) -> bytes:
    with path.expanduser().open("rb") as file:
        content = file.read(_FILE_BYTES_MAX + 1)
    if len(content) > _FILE_BYTES_MAX:
        raise ValueError(f"names a file of more than {_FILE_BYTES_MAX} bytes")
    return content


def _check(issuer: Issuer) -> None:
    name = f"issuer {issuer.issuer!r}"
    for url in (issuer.issuer, issuer.jwks_url):
        if url is not None:
            check_url(url)
    if (issuer.tenant is None) == (issuer.tenant_claim is None):
        raise ValueError(f"{name} must have either `tenant` or `tenant_claim`")
    _check_client(issuer, name)
    if issuer.tenants and issuer.tenant_claim is None:
        raise ValueError(f"{name} has `tenants`, which limits a `tenant_claim`")
    if not issuer.tenants and issuer.tenant_claim is not None:
        raise ValueError(
            f'{name} must have `tenants` beside `tenant_claim`: a list, or ["{ALL_TENANTS}"] for all'
        )
    if ALL_TENANTS in issuer.tenants and len(issuer.tenants) > 1:
        raise ValueError(f'{name} has tenants beside "{ALL_TENANTS}", which stands alone for all')
    if not issuer.operate and issuer.scopes and KeyScope.OPERATE in issuer.scopes.values():
        raise ValueError(f"{name} maps a scope to `operate` without `operate: true`")


def _check_client(issuer: Issuer, name: str) -> None:
    if issuer.client_id is None:
        for member in ("client_secret", "sign_in_scopes", "label"):
            if getattr(issuer, member) is not None:
                raise ValueError(
                    f"{name} has `{member}` without `client_id`, with which the console signs in"
                )
    if issuer.sign_in_scopes is not None and _OPENID not in issuer.sign_in_scopes:
        raise ValueError(f"{name} must have `{_OPENID}` among its `sign_in_scopes`")
    if issuer.label is not None and not issuer.label.isprintable():
        raise ValueError(f"{name} has a `label` with characters that cannot be shown")


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
