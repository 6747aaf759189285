"""Files that pages link to: streamed from the API with the credential of the session, a few parts at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from litestar import get
from litestar.params import PathParameter
from litestar.response import Stream

from app.features.console.handlers.credentials import CONSOLE_SESSIONS, ConsoleSession
from app.features.console.handlers.responses import PAGE_HEADERS, html
from app.features.console.inner_requests import InnerRequests, ResponseTooLarge, ResponseTooSlow
from app.features.console.rendering import render
from app.features.console.visit import TOO_LARGE, TOO_SLOW, path_of, problem_of
from app.http.auth import needs
from app.http.parameters.query_parameters import ANY_PARAMETERS
from app.http.protocols import SCHEME
from app.http.request import ApiRequest
from app.http.response import ApiResponse

_OK_MAX: Final = 399
# Four times the largest size that an export may have its files split at.
_FILE_BYTES_MAX: Final = 64 * 1024**3
_TOO_LARGE: Final[Mapping[str, Any]] = {
    "title": "too large for a browser",
    "status": TOO_LARGE,
    "detail": f"a browser gets files of at most {_FILE_BYTES_MAX // 1024**3} GiB: use the command line",
}
# The type is one of them: as that of a response, the framework would add a second charset to it.
_SENT: Final = (
    *("content-type", "content-length", "content-disposition", "content-range", "accept-ranges", "etag"),
    *("location", "preference-applied"),
)
_CONDITIONS: Final = ("range", "if-range", "prefer")
ExportReference: TypeAlias = Annotated[str, PathParameter(description="The id of an export.")]
RunReference: TypeAlias = Annotated[int, PathParameter(description="The number of a run.")]
RunFileName: TypeAlias = Annotated[str, PathParameter(description="The name of a file.")]


@get(
    "/console/exports/{export:str}/runs/{number:int}/files/{name:str}",
    opt=needs(None) | {SCHEME: CONSOLE_SESSIONS, ANY_PARAMETERS: True},
)
async def get_export_file(
    request: ApiRequest, export: ExportReference, number: RunReference, name: RunFileName
) -> Stream | ApiResponse[str]:
    """A file of a run of an export, or a link to it, as the API returns it to the key of the session."""
    session: Any = request.auth
    assert isinstance(session, ConsoleSession)
    inner = InnerRequests(request.scope, request.receive, session.credential)
    headers = {each: request.headers[each] for each in _CONDITIONS if each in request.headers}
    path = path_of("exports", export, "runs", str(number), "files", name)
    try:
        stream = await inner.stream("GET", path, headers=headers, bytes_max=_FILE_BYTES_MAX)
        if stream.status > _OK_MAX:
            return _problem(problem_of(await stream.whole()))
    except (ResponseTooLarge, ResponseTooSlow) as error:
        return _problem(_TOO_LARGE if isinstance(error, ResponseTooLarge) else TOO_SLOW)
    sent = {each: stream.headers[each] for each in _SENT if each in stream.headers}
    return Stream(stream.body, status_code=stream.status, headers={**PAGE_HEADERS, **sent})


def _problem(members: Mapping[str, Any]) -> ApiResponse[str]:
    text = render("problem.html", {"members": members, "visit": None, "calls": ()})
    return html(text, status=members["status"])
