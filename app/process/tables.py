"""All tables of the service. The import of this module adds them to `app.infra.db.columns.metadata`."""

from __future__ import annotations

import app.access.audit.tables
import app.access.tenants.tables
import app.core.catalog.tables
import app.core.consumers.tables
import app.core.idempotency.tables
import app.core.jobs.tables
import app.core.timeline.tables
import app.features.exports.tables
import app.features.maintenance.tables
import app.features.partitions.tables
import app.features.reads.tables
import app.features.sources.tables
import app.features.views.tables
import app.features.webhooks.tables  # noqa: F401
from app.infra.db.columns import metadata

__all__ = ["metadata"]
