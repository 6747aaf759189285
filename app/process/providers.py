"""The providers of all features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.catalog import providers as catalog
from app.core.consumers import providers as consumers
from app.core.idempotency import providers as idempotency
from app.core.jobs import providers as jobs
from app.http import dependencies as http
from app.http.dependencies import Provider, merged

PROVIDERS: Final[Mapping[str, Provider]] = merged(
    http.PROVIDERS,
    catalog.PROVIDERS,
    jobs.PROVIDERS,
    consumers.PROVIDERS,
    idempotency.PROVIDERS,
)
"""What is read from a request, by the name of the parameter that it is provided as."""
