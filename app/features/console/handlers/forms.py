"""The body of a form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import parse_qs

from app.features.console.page import ConsoleForm
from app.http.body_stream import media_type_of, read_body, require_media_type
from app.http.limits.threads import Threads
from app.http.request import ApiRequest
from app.kernel.format.errors import MalformedBody

FORM: Final = "application/x-www-form-urlencoded"
FORM_WITH_FILES: Final = "multipart/form-data"
_BYTES_MAX: Final = 1024 * 1024
_SMALL_BYTES_MAX: Final = 16 * 1024
# Beside a text of 1 MiB there are the other fields, and the heads of the parts.
_PARTS_BYTES_MAX: Final = _BYTES_MAX + 64 * 1024
_FIELDS_MAX: Final = 1_000
# A browser writes a boundary of letters and digits, and quotes in names of fields as %22.
_HEAD_CHARACTERS_MAX: Final = 1_024
_BOUNDARY: Final = re.compile(
    r';[ \t]*boundary="?([A-Za-z0-9\'()+_,./:=?-]{1,70})"?[ \t]*(?:;|$)', re.IGNORECASE
)
_NAME: Final = re.compile(
    r'^content-disposition:[ \t]*form-data;[ \t]*name="([^"\r\n]{1,200})"', re.IGNORECASE | re.MULTILINE
)


async def read_small_form(request: ApiRequest) -> ConsoleForm:
    """The fields of a form without files, of 16 KiB at most. Anyone may send one.

    Raises UnsupportedMediaType, BodyTooLarge, MalformedBody.
    """
    require_media_type(request, [FORM])
    return _form(_fields, await read_body(request, _SMALL_BYTES_MAX))


async def read_form(request: ApiRequest, threads: Threads) -> ConsoleForm:
    """The fields of a form, of 1 MiB at most. A file is a field with its text.

    Raises UnsupportedMediaType, BodyTooLarge, MalformedBody.
    """
    require_media_type(request, [FORM, FORM_WITH_FILES])
    in_parts = media_type_of(request) == FORM_WITH_FILES
    body = await read_body(request, _PARTS_BYTES_MAX if in_parts else _BYTES_MAX)
    parse = partial(_fields_of_parts, request.headers["content-type"]) if in_parts else _fields
    # A large form takes a tenth of a second, for which other requests would wait.
    return await threads.run(_form, parse, body) if len(body) > _SMALL_BYTES_MAX else _form(parse, body)


def _form(parse: Callable[[bytes], Mapping[str, list[str]]], body: bytes) -> ConsoleForm:
    try:
        return ConsoleForm(parse(body))
    except ValueError:
        raise MalformedBody(
            "the form is not valid: expected encoded fields in UTF-8, 1,000 at most"
        ) from None


def _fields(body: bytes) -> Mapping[str, list[str]]:
    return parse_qs(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)


def _fields_of_parts(content_type: str, body: bytes) -> Mapping[str, list[str]]:
    """The fields of `multipart/form-data`, in time that is linear in the body. Raises ValueError."""
    boundary = _BOUNDARY.search(content_type[:_HEAD_CHARACTERS_MAX])
    if boundary is None:
        raise ValueError("no boundary")
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode(), _FIELDS_MAX + 2)
    # Before the first boundary there is nothing, after the last one there are two hyphens.
    if len(parts) > _FIELDS_MAX + 2 or not parts[-1].startswith(b"--"):
        raise ValueError("parts without an end")
    fields: dict[str, list[str]] = {}
    for part in parts[1:-1]:
        head, separator, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = _NAME.search(head[:_HEAD_CHARACTERS_MAX].decode(errors="replace"))
        if not separator or len(head) > _HEAD_CHARACTERS_MAX or name is None:
            raise ValueError("a part without a name")
        fields.setdefault(name[1], []).append(content.decode())
    return fields
