"""Components that operations of the OpenAPI document share: parameters and examples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from app.http.openapi.examples import example_of

_REFERENCE: Final = "#/components/schemas/"


def share_parameters(operations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Makes a component of each parameter that several operations have, and has them refer to it."""
    counts = Counter(_text(each) for operation in operations for each in operation.get("parameters", ()))
    components: dict[str, bytes] = {}
    for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count > 1:
            # Of two that have one name but differ, the one that more operations have. The suffix keeps the name apart
            # from that of a schema: generators of Go have one name space for both.
            components.setdefault(f"{_camel(orjson.loads(text)['name'])}Parameter", text)
    names = {text: name for name, text in components.items()}
    for operation in operations:
        if "parameters" in operation:
            operation["parameters"] = [
                {"$ref": f"#/components/parameters/{names[text]}"} if (text := _text(each)) in names else each
                for each in operation["parameters"]
            ]
    return {name: orjson.loads(text) for name, text in sorted(components.items())}


def add_examples(paths: Sequence[Mapping[str, Any]], schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Gives each schema an example, and each operation those of its bodies; returns the latter by name."""
    examples = {name: example_of(name, schemas) for name in schemas}
    body_names: set[str] = set()
    for path in paths:
        for operation in path.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (media for body in bodies for media in body.get("content", {}).values()):
                name = content["schema"].get("$ref", "").removeprefix(_REFERENCE)
                if name:
                    body_names.add(name)
                    content["examples"] = {name: {"$ref": f"#/components/examples/{name}"}}
    for name, schema in schemas.items():
        if "enum" not in schema:
            schema["examples"] = [examples[name]]
    return {name: {"value": examples[name]} for name in sorted(body_names)}


def _text(parameter: Mapping[str, Any]) -> bytes:
    return orjson.dumps(parameter, option=orjson.OPT_SORT_KEYS)


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[-_]", name))
