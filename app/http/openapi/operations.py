"""Operations of the OpenAPI document, each made from the signature of its handler and what that declares beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, Final, TypeVar, get_args

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import HeaderParameter, ParameterKwarg, PathParameter, QueryParameter
from litestar.typing import FieldDefinition
from litestar.utils.signature import ParsedSignature

from app.http.auth import PUBLIC, scopes_of
from app.http.body_stream import JSON
from app.http.dependencies import Provider
from app.http.openapi.event_schemas import events_schema
from app.http.openapi.openapi_components import INT64_MAX, Components
from app.http.openapi.operation_docs import BINARY, TEXT, Answer, Documentation, EventTypes, documentation_of
from app.http.parameters.query_options import options_type
from app.http.response import ApiResponse

_IN: Final = {PathParameter: "path", QueryParameter: "query", HeaderParameter: "header"}
_CONSTRAINTS: Final = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "pattern": "pattern",
}
PROBLEM_NAMES: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    412: "PreconditionFailed",
    413: "BodyTooLarge",
    415: "UnsupportedMediaType",
    416: "RangeNotSatisfiable",
    422: "UnprocessableContent",
    428: "PreconditionRequired",
    429: "TooManyRequests",
    500: "InternalError",
    501: "NotImplemented",
    503: "Unavailable",
    507: "StorageFull",
}
"""The components that describe the problems of a status."""


def operation_of(
    handler: HTTPRouteHandler, components: Components, providers: Mapping[str, Provider]
) -> dict[str, Any]:
    """The operation of a handler; its schemas are added to the components. `providers`: of its parameters, by name."""
    documentation = documentation_of(handler)
    operation: dict[str, Any] = {
        "operationId": handler.operation_id,
        "summary": handler.summary,
        "description": _description(handler),
        "tags": list(handler.tags or ()),
    }
    parameters = _parameters(handler, components, providers)
    if parameters:
        operation["parameters"] = parameters
    if body := _body(handler, documentation):
        content, required = body
        operation["requestBody"] = {"required": required, "content": _content(content, components)}
    answers = _answers(handler, documentation)
    problems = _problems(handler, documentation, parameters, has_body="requestBody" in operation)
    operation["responses"] = {
        **{str(status): _shared_answer(answer, components) for status, answer in answers.items()},
        **{
            str(status): {"$ref": f"#/components/responses/{PROBLEM_NAMES[status]}"}
            for status in sorted(problems - set(answers))
        },
    }
    if handler.opt.get(PUBLIC):
        operation["security"] = []
    elif scopes := scopes_of(handler):
        operation["security"] = [{"api_key": [scope.value]} for scope in scopes]
    return operation


def _description(handler: HTTPRouteHandler) -> str:
    text = handler.description or cleandoc(handler.fn.__doc__ or "")
    scopes = () if handler.opt.get(PUBLIC) else scopes_of(handler)
    if not scopes:
        return text
    return f"{text}\n\nNeeds the scope {' or '.join(f'`{scope.value}`' for scope in scopes)}."


def _parameters(
    handler: HTTPRouteHandler, components: Components, providers: Mapping[str, Provider]
) -> list[dict[str, Any]]:
    """What the handler and its providers read from the path, the query and the headers."""
    parameters = [
        _parameter(name, field, components)
        for name, field in _fields(handler.parsed_fn_signature.parameters, providers)
        if type(field.kwarg_definition) in _IN
    ]
    # Two providers may read the same one.
    parameters = list({(each["in"], each["name"]): each for each in parameters}.values())
    # Generated functions take what is in the path by position, in its order.
    (path,) = handler.paths
    parameters.sort(key=lambda each: path.find(f"{{{each['name']}:") if each["in"] == "path" else len(path))
    options = options_type(handler)
    return parameters if options is None else [*parameters, *_options(options, components)]


def _fields(
    parameters: Mapping[str, FieldDefinition], providers: Mapping[str, Provider]
) -> Iterator[tuple[str, FieldDefinition]]:
    """The parameters of a signature, with those of its providers in their place."""
    for name, field in parameters.items():
        if not field.is_di_field:
            yield name, field
        elif name in providers:
            yield from _fields(ParsedSignature.from_fn(providers[name], {}).parameters, providers)


def _parameter(name: str, field: FieldDefinition, components: Components) -> dict[str, Any]:
    definition = field.kwarg_definition
    assert isinstance(definition, ParameterKwarg)
    schema = _never_null(components.schema_of(field.annotation))
    limits = {
        key: limit
        for constraint, key in _CONSTRAINTS.items()
        if (limit := getattr(definition, constraint)) is not None and limit != INT64_MAX
    }
    required = not field.has_default
    if not required and "$ref" not in schema and field.default not in (None, "", "*"):
        schema["default"] = field.default.value if isinstance(field.default, Enum) else field.default
    return {
        "name": definition.name or name,
        "in": _IN[type(definition)],
        "required": required,
        "schema": {**schema, **limits},
        **({"description": definition.description} if definition.description else {}),
    }


def _options(type_: type[msgspec.Struct], components: Components) -> Iterator[dict[str, Any]]:
    """The fields of a struct of query options."""
    # Of a set of its own: the struct is never a component, only what its fields refer to.
    alone = Components()
    alone.schema_of(type_)
    struct = alone.schemas[type_.__name__]
    for field in msgspec.structs.fields(type_):
        components.schema_of(field.type)
        schema = _never_null(struct["properties"][field.encode_name])
        description = schema.pop("description", None)
        yield {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
            "schema": schema,
            **({"description": description} if description else {}),
        }


def _never_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An optional parameter is absent, never null."""
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(choices) == 1:
        return {**rest, **choices[0]}
    return {**rest, "anyOf": choices} if choices else rest


def _body(handler: HTTPRouteHandler, documentation: Documentation) -> tuple[Mapping[str, Any], bool] | None:
    """The request body by media type, and whether it is required."""
    data = handler.parsed_fn_signature.parameters.get("data")
    if data is not None:
        return {JSON: data.annotation}, not data.has_default
    return (documentation.body, True) if documentation.body else None


_REDIRECTIONS: Final = range(300, 400)
_REDIRECT_HEADERS: Final = {"Location": "Where the content is."}


def _answers(handler: HTTPRouteHandler, documentation: Documentation) -> Mapping[int, Answer]:
    """The successful responses by status: what the return type says, or what is declared as a whole."""
    if documentation.answers is not None:
        return documentation.answers
    return_type = handler.parsed_fn_signature.return_type
    response_class: Any = ApiResponse
    value: Any = return_type.annotation
    if return_type.is_subclass_of(Response):
        response_class = return_type.origin or return_type.annotation
        value = return_type.args[0] if return_type.args else _content_type(response_class)
    class_answers: Mapping[int, Answer] | None = getattr(response_class, "answers", None)
    if class_answers is not None:
        return class_answers
    headers = {**_headers_of(response_class), **documentation.headers}
    for field in handler.parsed_fn_signature.parameters.values():
        headers |= _headers_of(field.annotation) if field.is_di_field else {}
    content = documentation.content or ({} if value in (None, type(None)) else {JSON: value})
    status = handler.status_code
    description = documentation.description or _first_sentence(value) or HTTPStatus(status).phrase
    return {
        each: Answer(description=text, content={}, headers=_REDIRECT_HEADERS)
        if each in _REDIRECTIONS
        else Answer(description=text, content=content, headers=headers)
        for each, text in {status: description, **documentation.statuses}.items()
    }


def _headers_of(type_: Any) -> Mapping[str, str]:
    """The headers that a class of responses has, or that a provided value sets on the response."""
    descriptions: Mapping[str, str] = getattr(type_, "header_descriptions", {})
    return descriptions


def _content_type(response_class: Any) -> Any:
    """The type that a class of responses has as its content: `class AcceptedExport(ApiResponse[ExportResponse])`."""
    for base in getattr(response_class, "__orig_bases__", ()):
        arguments = get_args(base)
        if arguments and not isinstance(arguments[0], TypeVar):
            return arguments[0]
    return None


def _first_sentence(type_: Any) -> str:
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return ""
    text = " ".join(cleandoc(type_.__doc__ or "").split())
    return text.split(". ", 1)[0].rstrip(".") + "."


def _problems(
    handler: HTTPRouteHandler,
    documentation: Documentation,
    parameters: list[dict[str, Any]],
    *,
    has_body: bool,
) -> set[int]:
    """The statuses of problems: what follows from the signature, and what is declared."""
    # Every operation refuses query parameters that it does not have.
    statuses = {400, 500, *documentation.problems}
    if not handler.opt.get(PUBLIC):
        statuses |= {401, 403, 429, 503}
    if documentation.answers is not None:
        return statuses
    names = {each["name"] for each in parameters}
    places = {each["in"] for each in parameters}
    if has_body:
        statuses |= {413, 415}
    if "path" in places:
        statuses |= {404}
    if "If-Match" in names:
        statuses |= {412}
    if "required_if_match_revision" in handler.parsed_fn_signature.parameters:
        statuses |= {428}
    if "Idempotency-Key" in names:
        statuses |= {409, 422}
    if "media_type" in handler.parsed_fn_signature.parameters:
        statuses |= {406}
    return statuses


def _shared_answer(answer: Answer, components: Components) -> dict[str, Any]:
    if answer.component is None:
        return _answer(answer, components)
    components.responses[answer.component] = _answer(answer, components)
    return {"$ref": f"#/components/responses/{answer.component}"}


def _answer(answer: Answer, components: Components) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.description}
    if answer.headers:
        response["headers"] = {
            name: {"schema": {"type": "string"}, "description": text} for name, text in answer.headers.items()
        }
    if answer.content:
        response["content"] = _content(answer.content, components)
    return response


def _content(content: Mapping[str, Any], components: Components) -> dict[str, Any]:
    return {media_type: {"schema": _schema(type_, components)} for media_type, type_ in content.items()}


def _schema(type_: Any, components: Components) -> dict[str, Any]:
    if type_ is BINARY:
        return {"type": "string", "format": "binary"}
    if type_ is TEXT:
        return {"type": "string"}
    if isinstance(type_, EventTypes):
        return events_schema(type_, components)
    return components.schema_of(type_)
