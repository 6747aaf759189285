"""Signatures of requests in version 4 of the protocol (AWS4-HMAC-SHA256): in a header, or in the query of a link.

A signature covers the method, the path, the query, some headers, and what the client states of the body. Bodies are
never read: no request with one changes anything.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from app.features.objects.errors import KeyRefusal, TableKeyRefused
from app.features.objects.values import REGION, VendedKey

ALGORITHM: Final = "AWS4-HMAC-SHA256"
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
EMPTY: Final = sha256(b"").hexdigest()
"""What the hash of the body of a read is."""
SKEW: Final = timedelta(minutes=15)
"""How far the clock of a client may be from ours."""
LINK_SECONDS_MAX: Final = 604_800
_SERVICE: Final = "s3"
# Those that are derived once, of the latest.
_KEYS_MAX: Final = 1_024
_HEADER: Final = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=([^,\s]+) *, *SignedHeaders=([^,\s]+) *, *Signature=([0-9a-f]{64})"
)
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}")
_SCOPE: Final = re.compile(r"([^/]+)/([0-9]{8})/([A-Za-z0-9-]{1,64})/s3/aws4_request")
_TIME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_SECONDS: Final = re.compile(r"[0-9]{1,6}")
# The members of a link, and the one that its signature does not cover.
_IN_QUERY: Final = "X-Amz-Signature"
_SAFE: Final = "/-_.~"
_DEFAULT_PORTS: Final = (":80", ":443")


class SignedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it was sent. `path`: without the query, encoded. `headers`: names in lower case."""

    method: str
    path: bytes
    query: str
    headers: Sequence[tuple[str, str]]

    def values(self, name: str) -> list[str]:
        """The values of a header, one for each line."""
        return [value for key, value in self.headers if key == name]


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a request states about its signature. `ends_at`: of a link; None for a header."""

    access_key_id: str
    date: str
    region: str
    signed_at: datetime
    ends_at: datetime | None
    signed_headers: tuple[str, ...]
    signature: str
    body_hash: str
    session_token: str | None

    def check_time(self, now: datetime) -> None:
        """Raises TableKeyRefused for a request that was signed too long ago, or in the future."""
        if self.signed_at - now > SKEW or (self.ends_at is None and now - self.signed_at > SKEW):
            raise TableKeyRefused(
                KeyRefusal.SKEWED,
                f"the request was signed at {self.signed_at:%Y-%m-%dT%H:%M:%SZ}, and it is "
                f"{now:%Y-%m-%dT%H:%M:%SZ}: set the clock of the client",
            )
        if self.ends_at is not None and now > self.ends_at:
            raise TableKeyRefused(KeyRefusal.DENIED, "Request has expired")


def stated_signature(request: SignedRequest) -> Signature:
    """What the request states. Raises TableKeyRefused for a request without a signature, or a malformed one."""
    parameters = _parameters(request.query)
    in_query = [value for name, value in parameters if name == _IN_QUERY]
    in_header = request.values("authorization")
    if len(in_query) + len(in_header) != 1:
        raise _unsigned()
    return _of_link(dict(parameters), in_query[0]) if in_query else _of_header(request, in_header[0])


def check_signature(request: SignedRequest, signature: Signature, secret: str, hosts: Iterable[str]) -> None:
    """Raises TableKeyRefused unless the request was signed with this secret. `hosts`: names that the client may have
    signed in place of the header Host, which a proxy may have changed.
    """
    key = _signing_key(secret, signature.date, signature.region)
    own = request.values("host")
    if signature.ends_at is not None and request.method == "HEAD":
        # Readers request the size of what a link is for. A link for GET gives that, too.
        request = msgspec.structs.replace(request, method="GET")
    is_same = hmac.compare_digest  # in constant time
    for host in _spellings([*own, *hosts]):
        text = _text_to_sign(request, signature, host)
        if is_same(hmac.digest(key, text, "sha256").hex(), signature.signature):
            return
    raise TableKeyRefused(
        KeyRefusal.WRONG_SIGNATURE,
        "the signature is not that of this request with this key: check the secret access key, and that no proxy "
        "changes the path, the query or the signed headers",
    )


class LinkSigner:
    """Signs links for GET with one key, as they are of the same time. A link has the form of AWS: some readers take
    other addresses for local files.
    """

    def __init__(self, key: VendedKey, url: str, now: datetime) -> None:
        """`url`: the root of the service, without a trailing slash. Links end with the key, after 7 days at most."""
        self._root = url
        self._signed_at = now.replace(microsecond=0)
        seconds = int((key.expires_at - self._signed_at).total_seconds())
        seconds = min(max(seconds, 1), LINK_SECONDS_MAX)
        self.ends_at = self._signed_at + timedelta(seconds=seconds)
        signature = Signature(
            access_key_id=key.access_key_id,
            date=f"{now:%Y%m%d}",
            region=REGION,
            signed_at=self._signed_at,
            ends_at=self.ends_at,
            signed_headers=("host",),
            signature="",
            body_hash=UNSIGNED,
            session_token=None,
        )
        scope = f"{key.access_key_id}/{signature.date}/{REGION}/{_SERVICE}/aws4_request"
        members = {
            "X-Amz-Algorithm": ALGORITHM,
            "X-Amz-Credential": scope,
            "X-Amz-Date": f"{self._signed_at:%Y%m%dT%H%M%SZ}",
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": "host",
        }
        query = "&".join(f"{name}={_encoded(value)}" for name, value in members.items())
        # Links differ in their paths only.
        host_line = f"host:{urlsplit(url).netloc}\n"
        self._canonical_rest = _canonical_rest(_canonical_query(query), host_line, signature)
        self._text_start = _text_start(signature)
        self._link_rest = f"?{query}&{_IN_QUERY}="
        self._key = _signing_key(key.secret_access_key, signature.date, REGION)

    def link(self, path: str) -> str:
        """The address of an object. `path`: below the root of the service, decoded, with a slash at its beginning."""
        address = quote(path, safe=_SAFE)
        canonical = f"GET\n{address}{self._canonical_rest}"
        text = f"{self._text_start}{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        return f"{self._root}{address}{self._link_rest}{signature}"


def _of_header(request: SignedRequest, text: str) -> Signature:
    parts = _HEADER.fullmatch(text.strip())
    times = request.values("x-amz-date")
    if parts is None or len(times) != 1:
        raise _unsigned()
    credential, headers, signature = parts.groups()
    names = _names(headers)
    # What the service acts on has to be signed.
    if any(name not in names for name in ("host", "x-amz-date")) or any(
        name.startswith("x-amz-") and name not in names for name, _ in request.headers
    ):
        raise _unsigned()
    hashes, tokens = request.values("x-amz-content-sha256"), request.values("x-amz-security-token")
    return _signature(
        credential,
        times[0],
        names,
        signature,
        body_hash=hashes[0] if hashes else EMPTY,
        session_token=tokens[0] if tokens else None,
    )


def _of_link(parameters: Mapping[str, str], signature: str) -> Signature:
    seconds = parameters.get("X-Amz-Expires", "")
    names = _names(parameters.get("X-Amz-SignedHeaders", ""))
    if (
        parameters.get("X-Amz-Algorithm") != ALGORITHM
        or _SIGNATURE.fullmatch(signature) is None
        or _SECONDS.fullmatch(seconds) is None
        or not 1 <= int(seconds) <= LINK_SECONDS_MAX
        or "host" not in names
    ):
        raise _unsigned()
    link = _signature(
        parameters.get("X-Amz-Credential", ""),
        parameters.get("X-Amz-Date", ""),
        names,
        signature,
        body_hash=UNSIGNED,
        session_token=parameters.get("X-Amz-Security-Token"),
    )
    return msgspec.structs.replace(link, ends_at=link.signed_at + timedelta(seconds=int(seconds)))


def _signature(
    credential: str,
    time: str,
    names: tuple[str, ...],
    signature: str,
    *,
    body_hash: str,
    session_token: str | None,
) -> Signature:
    scope = _SCOPE.fullmatch(credential)
    if scope is None or _TIME.fullmatch(time) is None or scope[2] != time[:8]:
        raise _unsigned()
    try:
        signed_at = datetime.fromisoformat(time)
    except ValueError:
        raise _unsigned() from None
    return Signature(
        access_key_id=scope[1],
        date=scope[2],
        region=scope[3],
        signed_at=signed_at,
        ends_at=None,
        signed_headers=names,
        signature=signature,
        body_hash=body_hash,
        session_token=session_token,
    )


def _text_to_sign(request: SignedRequest, signature: Signature, host: str) -> bytes:
    headers = [
        f"{name}:{host if name == 'host' else _header(request, name)}\n" for name in signature.signed_headers
    ]
    path = quote(unquote_to_bytes(request.path), safe=_SAFE)
    return _text(request.method, path, _canonical_query(request.query), "".join(headers), signature)


def _text(method: str, path: str, query: str, headers: str, signature: Signature) -> bytes:
    """What is signed. The path, the query and the headers have their canonical forms."""
    canonical = f"{method}\n{path}{_canonical_rest(query, headers, signature)}"
    return f"{_text_start(signature)}{sha256(canonical.encode()).hexdigest()}".encode()


def _canonical_rest(query: str, headers: str, signature: Signature) -> str:
    """What follows the path of a canonical request."""
    return f"\n{query}\n{headers}\n{';'.join(signature.signed_headers)}\n{signature.body_hash}"


def _text_start(signature: Signature) -> str:
    """What is before the hash of the canonical request."""
    scope = f"{signature.date}/{signature.region}/{_SERVICE}/aws4_request"
    return f"{ALGORITHM}\n{signature.signed_at:%Y%m%dT%H%M%SZ}\n{scope}\n"


@lru_cache(maxsize=_KEYS_MAX)
def _signing_key(secret: str, date: str, region: str) -> bytes:
    """The same for all requests of a day with a secret."""
    key = f"AWS4{secret}".encode()
    for part in (date, region, _SERVICE, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _canonical_query(query: str) -> str:
    pairs = sorted(
        (_encoded(name), _encoded(value)) for name, value in _parameters(query) if name != _IN_QUERY
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _parameters(query: str) -> list[tuple[str, str]]:
    """The decoded parameters. A plus sign stands for itself, as in the protocol."""
    parts = [part.partition("=") for part in query.split("&") if part]
    return [(_decoded(name), _decoded(value)) for name, _, value in parts]


def _decoded(text: str) -> str:
    # Bytes that are no UTF-8 are kept as they are, and encoded to the same bytes again.
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~", errors="surrogateescape")


def _header(request: SignedRequest, name: str) -> str:
    return ",".join(" ".join(value.split()) for value in request.values(name))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.lower().split(";")) if text else ()


def _spellings(hosts: Iterable[str]) -> Iterable[str]:
    """Hosts with and without the default port, each once."""
    names = dict.fromkeys(hosts)
    for host in list(names):
        for port in _DEFAULT_PORTS:
            if host.endswith(port):
                names[host.removesuffix(port)] = None
    return names


def _unsigned() -> TableKeyRefused:
    return TableKeyRefused(
        KeyRefusal.DENIED,
        f"the request needs one signature of the form {ALGORITHM}, in the header Authorization or in its query, that "
        "covers Host and all headers that begin with x-amz-: get a key with the table",
    )
