"""Errors of sources."""

from __future__ import annotations

from app.infra.errors import Unavailable
from app.kernel.format.errors import HeadwaterError, InvalidRequest


class SourcesBusy(Unavailable):
    """As many rounds of sources read from elsewhere as a worker may run at a time."""

    awaits = "sources"


class InvalidSource(InvalidRequest):
    """A source whose members do not go together, or that the operator does not admit."""

    code = "invalid-source"
    title = "The source is not valid"


class SourceExists(HeadwaterError):
    """A source of the tenant has the name. Fact: `name`."""

    code = "source-exists"
    title = "There is a source of this name already"


class SourceEmpty(HeadwaterError):
    """The dataset of the source is registered with its first data, and there are none yet."""

    code = "source-empty"
    title = "The source has no data yet"
    may_pass = True
