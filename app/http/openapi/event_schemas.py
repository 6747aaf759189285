"""The schema of a stream of server-sent events."""

from __future__ import annotations

from typing import Any

from app.http.body_stream import JSON
from app.http.encoding import Problem
from app.http.openapi.openapi_components import Components
from app.http.openapi.operation_docs import EventTypes


def events_schema(events: EventTypes, components: Components) -> dict[str, Any]:
    """The text of the stream, or one event of it.

    OpenAPI 3.1 does not say which of them a schema describes. Clients without a parser of events have the text; tools
    that parse them take the schema for that of each event.
    """
    # What ends a stream whose credential has ended.
    data = {**events.data, "error": (Problem,)}
    shapes = [components.schema_of(type_) for types in data.values() for type_ in types]
    properties = {
        "event": {"type": "string", "enum": list(data), "description": "What the data is."},
        "data": {
            "type": "string",
            "contentMediaType": JSON,
            "contentSchema": {"anyOf": shapes},
            "description": "A JSON object.",
        },
        "id": {"type": "string", "description": "Where a client that connects again resumes."},
    }
    event = {"type": "object", "required": ["event", "data"], "properties": properties}
    return {"anyOf": [{"type": "string"}, event]}
