"""Values of the Iceberg catalogue: its names, and what a table is rendered from."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from app.kernel.format.instant import Action, RowCounts

NAMESPACE: Final = "headwater"
"""The one namespace. It is not `main`, which DuckDB takes for a schema of its own."""
PATH: Final = "/iceberg/v1"
"""Where the catalogue is served."""
ENDPOINTS: Final = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
)
"""What clients may request. They refuse other operations themselves."""


class SnapshotSelection(str, Enum):
    """Which versions a table has as snapshots, beside those with a name."""

    LATEST = "latest"
    ALL = "all"
    REFS = "refs"


class KeptVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version that is kept, and what its commit did."""

    version: int
    action: Action
    committed_at: datetime
    schema_id: int
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    counts: RowCounts
