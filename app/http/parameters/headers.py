"""Request headers that steer a request: Idempotency-Key, Prefer, If-Match, If-None-Match, Accept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec
from litestar.datastructures import Headers
from litestar.datastructures.headers import Accept

from app.access.errors import PreconditionFailed, PreconditionRequired
from app.http.errors import NotAcceptable
from app.kernel.format.errors import FieldError, InvalidRequest

WAIT_SECONDS_MAX: Final = 60
IDEMPOTENCY_KEY_CHARACTERS_MAX: Final = 255
_KEY: Final = re.compile(rf"[\x20-\x7e]{{1,{IDEMPOTENCY_KEY_CHARACTERS_MAX}}}")
_WAIT: Final = re.compile(r'\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?', re.IGNORECASE)
# Clients send the same few headers again and again.
_ACCEPTS_MAX: Final = 256
_CACHED_CHARACTERS_MAX: Final = 512
_ETAG: Final = re.compile(r'"(\d{1,18})"')


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """How many seconds the client prefers to wait for a job; None without the preference."""

    wait_seconds: int | None

    def applied(self) -> dict[str, str]:
        """The header with the preference that was applied."""
        return {} if self.wait_seconds is None else {"Preference-Applied": f"wait={self.wait_seconds}"}


def parse_idempotency_key(text: str) -> str:
    """The key that a header holds. Raises InvalidRequest."""
    # The draft writes the key as a quoted string, most clients write it bare; both name the same key.
    key = text.strip()
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not _KEY.fullmatch(key):
        detail = f"expected 1–{IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters"
        raise InvalidRequest(
            "the Idempotency-Key is not valid", [FieldError(pointer="/Idempotency-Key", detail=detail)]
        )
    return key


def parse_preference(text: str) -> Preference:
    """The preferences of a Prefer header. One that is not understood is ignored, as RFC 7240 requires."""
    for part in text.split(","):
        if wait := _WAIT.fullmatch(part):
            return Preference(wait_seconds=min(int(wait[1]), WAIT_SECONDS_MAX))
    return Preference(wait_seconds=None)


def prefers_redirect(text: str) -> bool:
    """Whether a Prefer header has the preference `redirect`."""
    return any(part.strip().lower() == "redirect" for part in text.split(","))


def etag(revision: int) -> str:
    """The entity tag of a resource's revision. That of a dataset is its version."""
    return f'"{revision}"'


def parse_if_match(text: str) -> int | None:
    """The revision that an If-Match header names; None for `*`. Raises PreconditionFailed.

    The repository of the resource compares it, in the transaction of the change.
    """
    text = text.strip()
    if text == "*":
        return None
    if tag := _ETAG.fullmatch(text):
        return int(tag[1])
    raise PreconditionFailed(f"If-Match: {text} is not the ETag of any version", expected='"<version>"')


def require_revision(revision: int | None) -> int:
    """The revision that a change was made for. Raises PreconditionRequired where there is none."""
    if revision is None:
        raise PreconditionRequired('send If-Match with the ETag that this change was made for, such as "7"')
    return revision


@lru_cache(maxsize=_ACCEPTS_MAX)
def _best_match(accept: str, available: tuple[str, ...]) -> str | None:
    try:
        return Accept(accept).best_match(list(available))
    except OverflowError:
        # A weight that is infinite.
        return None


def negotiate(headers: Headers, available: Sequence[str]) -> str:
    """The media type to answer in, the first where the client does not mind. Raises NotAcceptable."""
    accept = ",".join(headers.getall("accept", ["*/*"])) or "*/*"
    match = _best_match if len(accept) <= _CACHED_CHARACTERS_MAX else _best_match.__wrapped__
    media_type = match(accept, tuple(available))
    if media_type is None:
        raise NotAcceptable(
            f"Accept: {accept} names none of {', '.join(available)}", available=list(available)
        )
    return media_type


def prefers_html(headers: Headers) -> bool:
    """Whether the client shows pages, as browsers do. Any other one gets JSON, also where it states nothing."""
    accept = ",".join(headers.getall("accept", ["*/*"]))[:_CACHED_CHARACTERS_MAX]
    return _best_match(accept, ("application/json", "text/html")) == "text/html"
