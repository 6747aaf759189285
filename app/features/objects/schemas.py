"""Requests of S3's protocol, and the documents of its responses."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote
from xml.sax.saxutils import escape

import msgspec

from app.features.objects.errors import ObjectRequestUnsupported
from app.features.objects.values import BUCKET, ObjectPage
from app.kernel.format.errors import InvalidRequest

XML: Final = "application/xml"
KEYS_MAX: Final = 1_000
"""The objects and common prefixes of a page."""
_NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
# What clients add without a meaning for the request, beside the members of a signature.
_IGNORED: Final = frozenset({"x-id", "fetch-owner"})
_LISTING: Final = frozenset(
    {
        "list-type", "prefix", "delimiter", "max-keys", "encoding-type",
        "continuation-token", "start-after", "marker",
    }
)  # fmt: skip

_TEXTS: Final = ("prefix", "delimiter", "start-after", "marker")


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What of a bucket to list. `second`: the second version of the request. `encodes_keys`: how keys are written."""

    second: bool
    prefix: str
    delimiter: str
    keys_max: int
    after: str
    encodes_keys: bool
    token: str | None


def check_parameters(parameters: Mapping[str, str], more_names: Iterable[str] = ()) -> None:
    """Raises ObjectRequestUnsupported for a parameter that makes another request of this one."""
    names = {*more_names, *_IGNORED}
    for name in parameters:
        if name not in names and not name.lower().startswith("x-amz-"):
            raise ObjectRequestUnsupported(
                f"requests with the parameter {name[:100]!r} are not offered: objects can be read and listed"
            )


def list_options(parameters: Mapping[str, str]) -> ListOptions:
    """The options of a listing. Raises InvalidRequest, ObjectRequestUnsupported."""
    check_parameters(parameters, _LISTING)
    for name in _TEXTS:
        if "\0" in parameters.get(name, ""):
            raise InvalidRequest.of_member(name, "expected a text without the character NUL")
    second = parameters.get("list-type") == "2"
    token = parameters.get("continuation-token") if second else None
    start = parameters.get("start-after" if second else "marker", "")
    return ListOptions(
        second=second,
        prefix=parameters.get("prefix", ""),
        delimiter=parameters.get("delimiter", ""),
        keys_max=_keys_max(parameters.get("max-keys")),
        after=start if token is None else _after(token),
        encodes_keys=parameters.get("encoding-type") == "url",
        token=token,
    )


def list_document(options: ListOptions, page: ObjectPage, written_at: datetime) -> bytes:
    """The response to a listing. `written_at`: a time for all objects: their bytes never change."""
    time = f"{written_at:%Y-%m-%dT%H:%M:%S.000Z}"

    def name(text: str) -> str:
        return escape(quote(text, safe="/") if options.encodes_keys else _plain(text))

    next_after = page.next_after
    lines = [
        ("Name", BUCKET),
        ("Prefix", name(options.prefix)),
        ("MaxKeys", str(options.keys_max)),
        ("IsTruncated", "false" if next_after is None else "true"),
    ]
    if options.delimiter:
        lines.append(("Delimiter", name(options.delimiter)))
    if options.encodes_keys:
        lines.append(("EncodingType", "url"))
    if options.second:
        lines.append(("KeyCount", str(len(page.objects) + len(page.common_prefixes))))
        if options.token is not None:
            lines.append(("ContinuationToken", escape(options.token)))
        if next_after is not None:
            lines.append(("NextContinuationToken", _token(next_after)))
    else:
        lines.append(("Marker", name(options.after)))
        if next_after is not None:
            lines.append(("NextMarker", name(next_after)))
    for each in page.objects:
        members = [
            ("Key", name(each.key)),
            ("LastModified", time),
            ("ETag", escape(f'"{each.etag}"')),
            ("Size", str(each.size_bytes)),
            ("StorageClass", "STANDARD"),
        ]
        lines.append(("Contents", _elements(members)))
    lines += [("CommonPrefixes", _elements([("Prefix", name(each))])) for each in page.common_prefixes]
    return f'{_HEAD}<ListBucketResult xmlns="{_NAMESPACE}">{_elements(lines)}</ListBucketResult>'.encode()


def location_document() -> bytes:
    """The response to a question for the region of the bucket: empty for `us-east-1`."""
    return f'{_HEAD}<LocationConstraint xmlns="{_NAMESPACE}"/>'.encode()


def error_document(code: str, message: str, resource: str, request_id: str) -> bytes:
    """The response to a request that is refused or fails."""
    members = [
        ("Code", code),
        ("Message", escape(_plain(message))),
        ("Resource", escape(_plain(resource))),
        ("RequestId", escape(request_id)),
    ]
    return f"{_HEAD}<Error>{_elements(members)}</Error>".encode()


def _elements(members: Sequence[tuple[str, str]]) -> str:
    return "".join(f"<{name}>{text}</{name}>" for name, text in members)


def _plain(text: str) -> str:
    """The text without the characters that XML cannot have."""
    return "".join(each if each.isprintable() else "�" for each in text)


def _keys_max(text: str | None) -> int:
    if text is None:
        return KEYS_MAX
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidRequest.of_member("max-keys", "expected a whole number")
    return min(int(text), KEYS_MAX)


def _token(after: str) -> str:
    return urlsafe_b64encode(after.encode()).decode()


def _after(token: str) -> str:
    try:
        after = urlsafe_b64decode(token.encode("ascii")).decode()
    except (ValueError, UnicodeError):
        raise _no_page() from None
    if "\0" in after:
        raise _no_page()
    return after


def _no_page() -> InvalidRequest:
    return InvalidRequest.of_member("continuation-token", "expected the token of a page")
