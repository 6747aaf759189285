"""Posting webhook messages: to checked addresses only, within fixed times, and to nowhere that an answer points to."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from app.features.webhooks.values import RefusedUrl, Reply
from app.infra.outbound.addresses import AddressRefused, Target
from app.infra.outbound.connector import CONNECT_SECONDS_MAX, Connector

_TOTAL_SECONDS_MAX: Final = 15.0
_ANSWER_BYTES_MAX: Final = 64 * 1024
_ERROR_BYTES_MAX: Final = 1024
# Those that name another URL; 304, for one, does not.
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_USER_AGENT: Final = "Headwater-Webhooks/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpSender(Connector):
    """Sends messages over HTTP to what its connector admits."""

    total_seconds_max: float = _TOTAL_SECONDS_MAX

    def check(self, url: str) -> None:
        """Raises RefusedUrl if nothing may be sent there, as things are now."""
        try:
            self.addresses(self.rules.target(url), CONNECT_SECONDS_MAX)
        except (AddressRefused, OSError) as error:
            raise RefusedUrl(str(error)) from None

    def send(self, url: str, headers: dict[str, str], body: bytes) -> Reply:
        """Posts a body. Checks again where the URL leads. A failure of any sort is a reply without success."""
        start = time.monotonic()
        deadline = start + self.total_seconds_max
        try:
            answer = self._post(self.rules.target(url), headers, body, deadline)
        except AddressRefused as error:
            return Reply(status=None, error=str(error), seconds=time.monotonic() - start)
        except (OSError, http.client.HTTPException, ValueError) as error:
            error_text = f"{type(error).__name__}: {error}"
            return Reply(status=None, error=_printable(error_text.encode()), seconds=time.monotonic() - start)
        return Reply(
            status=answer.status,
            error=_fault(answer),
            seconds=time.monotonic() - start,
            retry_after_seconds=_retry_after(answer.retry_after),
            answer=_printable(answer.content),
        )

    def _post(self, target: Target, headers: dict[str, str], body: bytes, deadline: float) -> _Answer:
        with self.connected(target, deadline) as connection:
            connection.request("POST", target.path, body, {**headers, "User-Agent": _USER_AGENT})
            response = connection.getresponse()
            return _Answer(
                status=response.status,
                retry_after=response.headers.get("retry-after"),
                content=_content(response),
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    status: int
    retry_after: str | None
    content: bytes


def _fault(answer: _Answer) -> str | None:
    """What was wrong, in the receiver's words if it has any."""
    if 200 <= answer.status < 300:
        return None
    if answer.status in _REDIRECTS:
        return "redirects are not followed; give the webhook the URL that this one leads to"
    return _printable(answer.content) or http.client.responses.get(answer.status, "")


def _content(response: http.client.HTTPResponse) -> bytes:
    """What is kept of the answer's body. The status counts, even if the body breaks off."""
    try:
        return response.read(_ANSWER_BYTES_MAX)[:_ERROR_BYTES_MAX]
    except (OSError, http.client.HTTPException, ValueError):
        return b""


def _printable(text: bytes) -> str:
    # Postgres keeps no NUL in a text.
    return text[:_ERROR_BYTES_MAX].decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After, which is a number or a date."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        # Not a date, or one whose time zone takes it out of the calendar.
        return None
