"""All tables of the service. The import of this module adds them to `app.db.columns.metadata`."""

from __future__ import annotations

import app.audit.tables
import app.catalog.tables
import app.consumers.tables
import app.exports.tables
import app.idempotency.tables
import app.jobs.tables
import app.maintenance.tables
import app.partitions.tables
import app.reads.tables
import app.sources.tables
import app.tenants.tables
import app.timeline.tables
import app.views.tables
import app.webhooks.tables  # noqa: F401
from app.db.columns import metadata

__all__ = ["metadata"]
