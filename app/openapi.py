"""The OpenAPI document, made from the handlers: what is served, committed, and generated from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import orjson
from litestar import Litestar, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from app.changelog.forms import ChangeForm
from app.changes.handlers.changes import ChangeOp, DebeziumChange, DebeziumOp, DeltaChange, Feed
from app.format.operation import Operation
from app.http.auth import PUBLIC
from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of
from app.http.encoding import Problem
from app.http.openapi.openapi_components import component_of, components_of
from app.http.openapi.operation_docs import BINARY, DOCUMENTATION, TEXT, Answer, Documentation
from app.http.problems import PROBLEM_JSON
from app.reads.service.rows import QueryType
from app.routes import ROUTES

API_VERSION: Final = "1.0.0"
_DESCRIPTION: Final = """\
A multi-tenant lakehouse: register a dataset, write rows, and read either the table (now or back in time) or
the feed of its changes, in order, without gaps, resumable.

Errors are RFC 9457 problem documents. Their `type` is the URI reference `/problems/<code>`: stable, the same
in every deployment, what programs should compare. Further members carry the facts.

A parameter or member that an operation does not have is refused, never ignored."""
_TAGS: Final = {
    "datasets": "What is stored.",
    "writes": "Rows in.",
    "transactions": "Rows into several datasets at once.",
    "jobs": "What became of a write or a task.",
    "changes": "The feed of changes.",
    "consumers": "Durable positions in the feed.",
    "views": "Datasets derived from others by SQL.",
    "savepoints": "Versions to go back to.",
    "tags": "Versions by name.",
    "restores": "Back in time.",
    "comparisons": "What is different between two versions.",
    "verify": "Whether a table is what its feed says.",
    "rows": "The table.",
    "reads": "As many rows as there are, with a job: the table, or what changed in it.",
    "timeline": "What happened when, and who asked for it.",
    "overview": "What a table is made of, and all of it in numbers.",
    "partitions": "How a table is split, and which parts of it are done.",
    "quarantine": "Bad records, kept aside.",
    "cleans": "Forgetting what the history need not keep.",
    "compactions": "Bringing what lies beside the base files into them.",
    "clusterings": "Putting rows in an order in which filters read few of them.",
    "exports": "Changes, or changed rows, written to files.",
    "webhooks": "Feeds pushed to URLs, signed.",
    "health": "For whoever runs the service.",
}
_CHANGES: Final = ("Change", "DebeziumChange", "DeltaChange")
_TITLES: Final = {
    400: "The request is not valid",
    401: "A valid API key is required",
    403: "The API key lacks the scope",
    404: "There is no such thing",
    406: "No accepted media type is available",
    409: "It conflicts with what is there",
    410: "It is not kept any more",
    412: "The resource is at another version",
    413: "The body is too large; the limit is in the answer",
    415: "The media type is not read here",
    416: "The file has no such part",
    422: "The content does not fit",
    428: "If-Match is required",
    500: "The service failed",
    503: "The service is not available right now",
    507: "The storage is full",
}


@cache
def schema_json() -> bytes:
    """The document as JSON, ready to be written to a file. Needs no database and no settings."""
    return orjson.dumps(_document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@get(["/schema", "/schema/openapi.json"], opt={PUBLIC: True})
async def get_schema(request: ApiRequest) -> Response[Any]:
    """The OpenAPI document."""
    return Response(await services_of(request).threads.run(schema_json), media_type=JSON)


def _document() -> dict[str, Any]:
    documentations = {str(handler.operation_id): _documentation(handler) for handler in ROUTES}
    components = components_of(
        [
            *(Problem, Operation, Feed, ChangeForm, DebeziumChange, DeltaChange, QueryType),
            *_types(documentations.values()),
        ],
        [ChangeOp, DebeziumOp],
    )
    # The facts of an error are further members of the document.
    components["Problem"]["additionalProperties"] = True
    # No member tells the forms apart: the reader chose one. Generated code tries them in this order.
    references = [{"$ref": f"#/components/schemas/{name}"} for name in _CHANGES]
    components["ChangesPage"]["properties"]["changes"]["items"] = {"anyOf": references}
    document = _drafted()
    operations = {
        operation["operationId"]: operation
        for path in document["paths"].values()
        for operation in path.values()
    }
    for handler in ROUTES:
        operation_id = str(handler.operation_id)
        _complete(
            operations[operation_id], documentations[operation_id], public=bool(handler.opt.get(PUBLIC))
        )
    document["components"] = {
        "schemas": dict(sorted(components.items())),
        "securitySchemes": {"api_key": {"type": "http", "scheme": "bearer", "bearerFormat": "hw_…"}},
    }
    document["security"] = [{"api_key": []}]
    document["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items()]
    document["paths"] = dict(sorted(document["paths"].items()))
    return document


def _drafted() -> dict[str, Any]:
    """What the framework knows by itself: paths, operations and their parameters."""
    config = OpenAPIConfig(
        title="Headwater",
        version=API_VERSION,
        description=_DESCRIPTION,
        use_handler_docstrings=True,
        render_plugins=[JsonRenderPlugin()],
    )
    drafting = Litestar(route_handlers=list(ROUTES), openapi_config=config, logging_config=None)
    drafted: dict[str, Any] = orjson.loads(orjson.dumps(drafting.openapi_schema.to_schema()))
    drafted.pop("servers", None)
    for path in drafted["paths"].values():
        for operation in path.values():
            operation["parameters"] = [_parameter(each) for each in operation.get("parameters", [])]
    return drafted


def _parameter(drafted: Mapping[str, Any]) -> dict[str, Any]:
    schema = _without_null(drafted["schema"])
    parameter = {
        "name": drafted["name"],
        "in": drafted["in"],
        "required": drafted.get("required", False),
        "schema": {key: value for key, value in schema.items() if key not in {"title", "description"}},
    }
    if parameter["schema"].get("type") == "integer":
        parameter["schema"]["format"] = "int64"
    description = drafted.get("description") or schema.get("description")
    return {**parameter, "description": description} if description else parameter


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An optional parameter is absent, never null."""
    choices = [
        each
        for union in ("oneOf", "anyOf", "allOf")
        for each in schema.get(union, [])
        if each.get("type") != "null"
    ]
    rest = {key: value for key, value in schema.items() if key not in {"oneOf", "anyOf", "allOf"}}
    if len(choices) == 1:
        rest = {**rest, **choices[0]}
    if "$ref" in rest:
        # The enumerations among the components are ours, by the names of their classes.
        return {"$ref": f"#/components/schemas/{rest['$ref'].rsplit('/', 1)[-1].rsplit('_', 1)[-1]}"}
    if rest.get("default") is None:
        rest.pop("default", None)
    return rest


def _documentation(handler: HTTPRouteHandler) -> Documentation:
    documentation: Documentation = handler.opt[DOCUMENTATION]
    return documentation


def _types(documentations: Iterable[Documentation]) -> list[Any]:
    contents = [
        content
        for documentation in documentations
        for content in (documentation.body, *(answer.content for answer in documentation.answers.values()))
    ]
    found = [type_ for content in contents for type_ in content.values() if type_ not in (BINARY, TEXT)]
    return list(dict.fromkeys(found))


def _complete(operation: dict[str, Any], documentation: Documentation, *, public: bool) -> None:
    operation["parameters"] += [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": text}
        for name, text in documentation.request_headers.items()
    ]
    if not operation["parameters"]:
        del operation["parameters"]
    operation.pop("requestBody", None)
    if documentation.body:
        operation["requestBody"] = {
            "required": documentation.body_required,
            "content": _content(documentation.body),
        }
    problems = {500} if public else {401, 403, 500, 503, *documentation.problems}
    answers = {str(status): _answer(answer) for status, answer in documentation.answers.items()}
    operation["responses"] = {
        **answers,
        **{str(status): _problem(status) for status in sorted(problems) if str(status) not in answers},
    }
    if public:
        operation["security"] = []


def _answer(answer: Answer) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description}
    if answer.headers:
        described["headers"] = {
            name: {"schema": {"type": "string"}, "description": text} for name, text in answer.headers.items()
        }
    if answer.content:
        described["content"] = _content(answer.content)
    return described


def _problem(status: int) -> dict[str, Any]:
    return {"description": _TITLES[status], "content": _content({PROBLEM_JSON: Problem})}


def _content(content: Mapping[str, Any]) -> dict[str, Any]:
    return {media_type: {"schema": _schema(type_)} for media_type, type_ in content.items()}


def _schema(type_: Any) -> dict[str, Any]:
    if type_ is BINARY:
        return {"type": "string", "format": "binary"}
    if type_ is TEXT:
        return {"type": "string"}
    return {"$ref": f"#/components/schemas/{component_of(type_)}"}
