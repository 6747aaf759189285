"""The options of a job's request, as the timeline shows them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from app.core.jobs.kinds.declared import JobRequest
from app.core.jobs.kinds.write import WriteRequest

# The timeline has separate members for these.
_SHOWN_APART: Final = ("writer_id", "batch_id", "metadata")


def parameters_of(request: JobRequest) -> dict[str, Any]:
    """The options of a request as JSON values, by name: those that differ from their defaults."""
    if not isinstance(request, WriteRequest):
        return _specified(request)
    options = {name: value for name, value in _specified(request.options).items() if name not in _SHOWN_APART}
    if request.round is not None:
        return {**options, **_specified(request.round)}
    if request.inputs:
        return {**options, "inputs": msgspec.to_builtins(request.inputs)}
    return options if request.restores is None else {**options, **_specified(request.restores)}


def _specified(value: msgspec.Struct) -> dict[str, Any]:
    """The members that differ from their defaults; those without one are always included."""
    members = {
        field.name: getattr(value, field.name)
        for field in msgspec.structs.fields(value)
        if getattr(value, field.name) != field.default
    }
    json_members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(members))
    return json_members
