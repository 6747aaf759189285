"""The OpenAPI document, derived from the handlers. It is served, committed, and the source of generated clients."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import orjson
from litestar import get
from litestar.handlers import HTTPRouteHandler

from app.core.changes.schemas import ChangeOp, DebeziumChange, DebeziumOp, DeltaChange
from app.http.auth import PUBLIC
from app.http.body_stream import JSON
from app.http.dependencies import Provided, Provider
from app.http.encoding import Problem
from app.http.limits.threads import Threads
from app.http.openapi.openapi_components import Components
from app.http.openapi.operations import PROBLEM_NAMES, operation_of
from app.http.openapi.shared_components import add_examples, share_parameters
from app.http.problems import PROBLEM_JSON
from app.http.response import ApiResponse

API_VERSION: Final = "1.0.0"
_DESCRIPTION: Final = """\
A multi-tenant lakehouse: register a dataset, write rows, and read either the table (now or back in time) or
the feed of its changes, in order, without gaps, resumable.

Errors are RFC 9457 problem documents. Their `type` is the URI reference `/problems/<code>`: stable, the same
in every deployment, what programs should compare. Further members carry the facts.

Each operation needs one of the scopes `read`, `write`, `manage` and `operate`: `security` names it. A key may
be limited to the datasets that match its grants; others do not exist for it.

A parameter or member that an operation does not have is refused, never ignored."""
_INFO: Final = {
    "title": "Headwater",
    "version": API_VERSION,
    "summary": "A multi-tenant lakehouse behind one REST API.",
    "description": _DESCRIPTION,
    "contact": {"name": "Headwater"},
    "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
}
_TYPE_OF_PARAMETER: Final = re.compile(r":\w+}")
_TAGS: Final = {
    "datasets": "Tables with a schema and a feed of changes.",
    "writes": "Writes of rows to a dataset.",
    "transactions": "Writes to several datasets, all or nothing.",
    "jobs": "State and result of writes and tasks.",
    "changes": "The feed: every change of a dataset, in commit order.",
    "consumers": "Durable positions in the feed.",
    "sources": "Data that arrive by themselves: files, other datasets, HTTP APIs, databases.",
    "views": "Datasets derived from others by SQL.",
    "savepoints": "Names of versions that can be restored, with the feed since then.",
    "tags": "Names of versions for readers.",
    "restores": "Restores and rollbacks of a dataset to an earlier version.",
    "comparisons": "Differences between two versions.",
    "verifications": "Checks that a table equals the fold of its feed.",
    "rows": "The rows of a table, page by page.",
    "reads": "Read jobs: all rows of a table, or the rows that changed in a range of versions.",
    "timeline": "Every attempt to change a dataset: what, when, and requested by which API key.",
    "overview": "Files and statistics of a table.",
    "console": "Pages for people, and links that sign in to them.",
    "lineage": "Where rows come from and go to.",
    "partitions": "Partitions of a table, and which of them are done.",
    "quarantine": "Bad records of writes: list, redrive and discard.",
    "cleans": "Removal of versions that the history no longer keeps, and of their files.",
    "compactions": "Folding of logs and small files into base files.",
    "clusterings": "Ordering of rows in files, so that filters read fewer files.",
    "analyses": "Counts of the distinct values of columns.",
    "exports": "Changes, or changed rows, written to files.",
    "webhooks": "Feeds pushed to URLs, signed.",
    "shares": "Datasets for readers outside of the tenant, by Delta Sharing.",
    "tenants": "Tenants of the installation, for operators.",
    "keys": "API keys: make, list and revoke.",
    "audit": "Who requested what, when, and with what result.",
    "usage": "What tenants use, and their quotas.",
    "health": "Liveness, readiness and the health of the whole service, for operators.",
    "metrics": "What a process and the service count, for Prometheus.",
}
_CHANGES: Final = ("Change", "DebeziumChange", "DeltaChange")
_TITLES: Final = {
    400: "The request is not valid",
    401: "A valid API key or token is required",
    403: "The API key lacks the scope",
    404: "There is no such thing",
    406: "No accepted media type is available",
    409: "It conflicts with what is there",
    410: "It is not kept any more",
    412: "The resource is at another version or revision",
    413: "The body is too large; the limit is in the answer",
    415: "The media type is not read here",
    416: "The file has no such part",
    422: "The content does not fit",
    428: "If-Match is required",
    429: "A quota or a rate of the tenant is exhausted; Retry-After says when to try again",
    500: "The service failed",
    501: "The deployment does not offer this",
    503: "The service is not available right now",
    507: "The storage is full",
}


def schema_json(routes: Sequence[HTTPRouteHandler], providers: Mapping[str, Provider]) -> bytes:
    """The document of these handlers as JSON. `providers`: what they get from a request, by name.

    It needs no database and no settings.
    """
    return orjson.dumps(_document(routes, providers), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def schema_handler(routes: Sequence[HTTPRouteHandler], providers: Mapping[str, Provider]) -> HTTPRouteHandler:
    """The handler that serves the document of these handlers."""
    schema = cache(partial(schema_json, routes, providers))

    @get(["/schema", "/schema/openapi.json"], opt={PUBLIC: True})
    async def get_schema(threads: Provided[Threads]) -> ApiResponse[bytes]:
        """The OpenAPI document."""
        return ApiResponse(await threads.run(schema), media_type=JSON)

    return get_schema


def _document(routes: Sequence[HTTPRouteHandler], providers: Mapping[str, Provider]) -> dict[str, Any]:
    components = Components()
    components.schema_of(Problem)
    # The facts of an error are additional members of the document.
    components.schemas["Problem"]["additionalProperties"] = True
    paths: dict[str, dict[str, Any]] = {}
    for handler in routes:
        (path,) = handler.paths
        (method,) = handler.http_methods
        operations = paths.setdefault(_TYPE_OF_PARAMETER.sub("}", path), {})
        operations[method.lower()] = operation_of(handler, components, providers)
    _name_changes(components)
    parameters = share_parameters([each for path in paths.values() for each in path.values()])
    problems = {PROBLEM_NAMES[status]: _problem(text) for status, text in _TITLES.items()}
    responses = dict(sorted({**problems, **components.responses}.items()))
    examples = add_examples([*paths.values(), {"": {"responses": responses}}], components.schemas)
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/", "description": "The service that serves this document."}],
        "security": [{"api_key": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(components.schemas.items())),
            "parameters": parameters,
            "responses": responses,
            "examples": examples,
            "securitySchemes": {
                "api_key": {"type": "http", "scheme": "bearer", "bearerFormat": "hw_… or JWT"}
            },
        },
    }


def _name_changes(components: Components) -> None:
    """Names the delivery formats of a change. The request selects one and no member distinguishes them, so generated
    code tries each.
    """
    for form in (DebeziumChange, DeltaChange):
        components.schema_of(form)
    components.name_symbols([ChangeOp, DebeziumOp])
    references = [{"$ref": f"#/components/schemas/{name}"} for name in _CHANGES]
    components.schemas["AnyChange"] = {"description": "A change in the requested form.", "anyOf": references}
    components.schemas["ChangesPage"]["properties"]["changes"]["items"] = {
        "$ref": "#/components/schemas/AnyChange"
    }


def _problem(text: str) -> dict[str, Any]:
    return {
        "description": text,
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
