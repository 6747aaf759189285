"""Provides handlers with the condition of a PUT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from litestar.params import HeaderParameter

from app.access.errors import PreconditionFailed
from app.core.consumers.values import ExpectedRevision
from app.http.dependencies import IfMatch, Provider
from app.http.parameters.headers import parse_if_match


async def put_condition(
    if_match: IfMatch = "*",
    if_none_match: Annotated[
        str | None,
        HeaderParameter(
            name="If-None-Match", description="`*`: the resource must not exist yet; 412 if it does."
        ),
    ] = None,
) -> ExpectedRevision:
    """The revision that the resource must have, or that it must not exist. Raises PreconditionFailed."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise PreconditionFailed(f"If-None-Match: {if_none_match} is not supported here", expected="*")
    return ExpectedRevision(absent=if_none_match is not None, revision=parse_if_match(if_match))


PROVIDERS: Final[Mapping[str, Provider]] = {"put_condition": put_condition}
