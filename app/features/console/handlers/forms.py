"""The body of a form."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

from app.features.console.page import ConsoleForm
from app.http.body_stream import read_body, require_media_type
from app.http.request import ApiRequest
from app.kernel.format.errors import MalformedBody

FORM: Final = "application/x-www-form-urlencoded"
_BYTES_MAX: Final = 1024 * 1024
_FIELDS_MAX: Final = 1_000


async def read_form(request: ApiRequest) -> ConsoleForm:
    """The fields of a form, of 1 MiB at most. Raises UnsupportedMediaType, BodyTooLarge, MalformedBody."""
    require_media_type(request, [FORM])
    body = await read_body(request, _BYTES_MAX)
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise MalformedBody(
            "the form is not valid: expected encoded fields in UTF-8, 1,000 at most"
        ) from None
    return ConsoleForm(fields)
