"""What the service says about itself without a credential: its name, its operations, and the types of its problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from inspect import cleandoc
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import orjson
from litestar import MediaType, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter
from litestar.response import Redirect

from app.access.errors import NotFound
from app.features.console.compose import public_page
from app.http.auth import PUBLIC
from app.http.dependencies import Provided, Provider
from app.http.limits.threads import Threads
from app.http.parameters.headers import prefers_html
from app.http.problems import error_classes, may_pass, retry_after, status_of
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.kernel.format.errors import HeadwaterError
from app.process.openapi import schema_json

ProblemCode: TypeAlias = Annotated[str, PathParameter(description="The code of a type of problems.")]
_RELEASE: Final = version("headwater")
CONSOLE: Final = "/console"
"""The first page for people."""
_DOCS: Final = """\
Headwater {release}: a multi-tenant lakehouse behind one REST API

/schema    the OpenAPI document
/problems  the types of problems, which errors name

Each operation needs a credential (Authorization: Bearer hw_...), except GET /health/live and GET /health/ready.
"""


class Front(msgspec.Struct, frozen=True, kw_only=True):
    """The service, and where to go on."""

    name: str
    version: str
    links: Mapping[str, str]


_FRONT: Final = Front(
    name="Headwater",
    version=_RELEASE,
    links={"openapi": "/schema", "docs": "/docs", "problems": "/problems", "console": CONSOLE},
)


class ProblemType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A type of problems. `retry`: whether the same request may succeed later. `retry_after_seconds`: when to try."""

    type: str
    title: str
    status: int
    meaning: str
    retry: bool
    retry_after_seconds: int | None = None


class ProblemTypes(msgspec.Struct, frozen=True, kw_only=True):
    """All types of problems, by name."""

    items: list[ProblemType]


def front_handlers(
    routes: Sequence[HTTPRouteHandler], providers: Mapping[str, Provider]
) -> list[HTTPRouteHandler]:
    """The handlers that describe a service with these routes. The OpenAPI document does not list them."""

    @cache
    def docs() -> str:
        return _docs(orjson.loads(schema_json(routes, providers)))

    @get("/", opt={PUBLIC: True})
    async def get_front(request: ApiRequest) -> ApiResponse[Front] | Redirect:
        """What this is, and where its descriptions are. A browser is led to the console."""
        headers = {"Vary": "Accept"}
        if prefers_html(request.headers):
            return Redirect(CONSOLE, status_code=303, headers=headers)
        return ApiResponse(_FRONT, headers=headers)

    @get("/docs", opt={PUBLIC: True})
    async def get_docs(threads: Provided[Threads]) -> ApiResponse[str]:
        """All operations, as a text."""
        return ApiResponse(await threads.run(docs), media_type=MediaType.TEXT)

    @get("/problems", opt={PUBLIC: True})
    async def list_problem_types(request: ApiRequest) -> ApiResponse[ProblemTypes] | ApiResponse[str]:
        """All types of problems; a page for a browser."""
        types = list(_problem_types().values())
        if prefers_html(request.headers):
            return public_page("problem_types.html", types=types)
        return ApiResponse(ProblemTypes(items=types), headers={"Vary": "Accept"})

    @get("/problems/{code:str}", opt={PUBLIC: True})
    async def get_problem_type(
        request: ApiRequest, code: ProblemCode
    ) -> ApiResponse[ProblemType] | ApiResponse[str]:
        """The type of problems that the member `type` of a problem document names; a page for a browser."""
        problem_type = _problem_types().get(code)
        if prefers_html(request.headers):
            status = 404 if problem_type is None else 200
            return public_page("problem_type.html", status=status, code=code, problem_type=problem_type)
        if problem_type is None:
            raise NotFound(f"no problem has the type {code!r}; GET /problems lists all types")
        return ApiResponse(problem_type, headers={"Vary": "Accept"})

    return [get_front, get_docs, list_problem_types, get_problem_type]


@cache
def _problem_types() -> Mapping[str, ProblemType]:
    """The types by code. Classes that share a code extend the one that states it."""
    stated = {error.code: error for error in error_classes() if "code" in vars(error)}
    return {code: _problem_type(stated[code]) for code in sorted(stated)}


def _problem_type(error: type[HeadwaterError]) -> ProblemType:
    paragraph = cleandoc(error.__doc__ or "").split("\n\n")[0]
    return ProblemType(
        type=f"/problems/{error.code}",
        title=error.title,
        status=status_of(error.code),
        meaning=" ".join(paragraph.split()),
        retry=may_pass(error),
        retry_after_seconds=retry_after(error.code),
    )


def _docs(document: Mapping[str, Any]) -> str:
    """The operations of an OpenAPI document by tag, one a line."""
    lines: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            line = f"  {method.upper():7}{path}  {operation.get('summary', '')}"
            lines.setdefault(operation["tags"][0], []).append(line.rstrip())
    parts = [
        "\n".join([f"{tag['name']}: {tag['description']}", *lines[tag["name"]]])
        for tag in document["tags"]
        if tag["name"] in lines
    ]
    return "\n\n".join([_DOCS.format(release=_RELEASE).rstrip(), *parts]) + "\n"
