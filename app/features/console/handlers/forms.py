"""The body of a form."""

from __future__ import annotations

from collections.abc import Mapping
from email.message import Message
from typing import Final
from urllib.parse import parse_qs

from app.features.console.page import ConsoleForm
from app.http.body_stream import media_type_of, read_body, require_media_type
from app.http.request import ApiRequest
from app.kernel.format.errors import MalformedBody

FORM: Final = "application/x-www-form-urlencoded"
FORM_WITH_FILES: Final = "multipart/form-data"
_BYTES_MAX: Final = 1024 * 1024
# Beside a text of 1 MiB there are the other fields, and the heads of the parts.
_PARTS_BYTES_MAX: Final = _BYTES_MAX + 64 * 1024
_FIELDS_MAX: Final = 1_000


async def read_form(request: ApiRequest) -> ConsoleForm:
    """The fields of a form, of 1 MiB at most. A file is a field with its text.

    Raises UnsupportedMediaType, BodyTooLarge, MalformedBody.
    """
    require_media_type(request, [FORM, FORM_WITH_FILES])
    in_parts = media_type_of(request) == FORM_WITH_FILES
    body = await read_body(request, _PARTS_BYTES_MAX if in_parts else _BYTES_MAX)
    try:
        if in_parts:
            return ConsoleForm(_fields_of_parts(request.headers["content-type"], body))
        return ConsoleForm(parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX))
    except ValueError:
        raise MalformedBody(
            "the form is not valid: expected encoded fields in UTF-8, 1,000 at most"
        ) from None


def _fields_of_parts(content_type: str, body: bytes) -> Mapping[str, list[str]]:
    """The fields of `multipart/form-data`. Raises ValueError."""
    boundary = _parameter("Content-Type", content_type, "boundary")
    if not boundary:
        raise ValueError(content_type)
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode(), _FIELDS_MAX + 2)
    # Before the first boundary there is nothing, after the last one there are two hyphens.
    if len(parts) > _FIELDS_MAX + 2 or not parts[-1].startswith(b"--"):
        raise ValueError(boundary)
    fields: dict[str, list[str]] = {}
    for part in parts[1:-1]:
        head, separator, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = _name_of(head.decode())
        if not separator or not name:
            raise ValueError(head)
        fields.setdefault(name, []).append(content.decode())
    return fields


def _name_of(head: str) -> str:
    for line in head.split("\r\n"):
        field, _, value = line.partition(":")
        if field.strip().lower() == "content-disposition":
            return _parameter("Content-Disposition", value.strip(), "name")
    return ""


def _parameter(field: str, value: str, name: str) -> str:
    message = Message()
    message[field] = value
    parameter = message.get_param(name, header=field)
    return parameter if isinstance(parameter, str) else ""
