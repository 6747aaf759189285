"""The service that the documentation's examples run against."""

from __future__ import annotations

from tests.support.fixtures import redis, service

__all__ = ["redis", "service"]
