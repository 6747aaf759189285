"""Values of the Iceberg catalogue: its names, and what a table is rendered from."""

from __future__ import annotations

from typing import Final

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
    "GET /v1/{prefix}/namespaces/{namespace}/views",
)
"""What clients may request. They refuse other operations themselves."""
