"""The routes of all features."""

from __future__ import annotations

from typing import Final

from app.core.catalog.handlers import (
    change_dataset,
    create_dataset,
    delete_dataset,
    get_dataset,
    get_dataset_schema,
    list_dataset_schemas,
    list_datasets,
)
from app.core.changes.handlers.changes import read_changes
from app.core.changes.handlers.corrections import read_corrections
from app.core.changes.handlers.events import follow_changes
from app.core.consumers.handlers import (
    delete_consumer,
    get_consumer,
    lease_consumer,
    list_consumers,
    put_consumer,
    release_consumer,
)
from app.core.jobs.handlers.jobs import cancel_job, follow_job, get_job, list_jobs
from app.core.timeline.handlers import read_timeline
from app.features.administration.handlers.audit import read_audit
from app.features.administration.handlers.identity import get_identity
from app.features.administration.handlers.keys import KEY_HANDLERS
from app.features.administration.handlers.tenants import (
    change_tenant,
    create_tenant,
    delete_tenant,
    get_tenant,
    list_tenants,
)
from app.features.administration.handlers.usage import USAGE_HANDLERS
from app.features.exports.handlers.exports import (
    change_export,
    create_export,
    delete_export,
    get_export,
    get_export_run,
    list_export_runs,
    list_exports,
    start_export_run,
)
from app.features.exports.handlers.files import check_export_file, download_export_file
from app.features.maintenance.handlers.clusterings import create_clustering
from app.features.maintenance.handlers.compactions import create_compaction
from app.features.metastore.handlers import get_metastore_report
from app.features.overview.handlers.overview import list_files, read_statistics
from app.features.overview.handlers.partitions import list_partitions
from app.features.partitions.handlers import end_partitions, read_partition_events
from app.features.quarantine.handlers import create_redrive, discard_quarantine, read_quarantine
from app.features.reads.handlers.lookups import get_row, lookup_rows
from app.features.reads.handlers.reads import create_read
from app.features.reads.handlers.results import check_result_file, download_result_file, get_result
from app.features.reads.handlers.rows import read_rows
from app.features.reads.handlers.scans import check_scan_file, create_scan, download_scan_file, read_scan_rows
from app.features.retention.handlers import create_clean
from app.features.sources.handlers import (
    change_source,
    create_source,
    delete_source,
    get_source,
    list_sources,
    start_source_round,
)
from app.features.transactions.handlers import create_transaction, get_transaction
from app.features.verifications.handlers import create_verification
from app.features.versions.handlers.comparisons import create_comparison
from app.features.versions.handlers.named_versions import SAVEPOINT_HANDLERS, TAG_HANDLERS
from app.features.versions.handlers.restores import create_restore, create_rollback
from app.features.views.handlers import (
    change_view,
    create_view,
    delete_view,
    find_origins,
    get_view,
    list_views,
    refresh_view,
)
from app.features.webhooks.handlers.deliveries import (
    get_webhook_delivery,
    list_webhook_deliveries,
    redeliver_dead_webhook_deliveries,
    redeliver_webhook_delivery,
)
from app.features.webhooks.handlers.webhooks import (
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    list_webhooks,
    rotate_webhook_secret,
    try_webhook,
)
from app.features.writes.handlers.explanations import explain_keys, explain_write
from app.features.writes.handlers.uploads import create_upload, create_upload_link
from app.features.writes.handlers.writes import create_write
from app.http.health import get_liveness, get_readiness

ROUTES: Final = (
    create_dataset,
    list_datasets,
    get_dataset,
    get_dataset_schema,
    list_dataset_schemas,
    change_dataset,
    delete_dataset,
    create_upload,
    create_upload_link,
    create_write,
    explain_keys,
    explain_write,
    create_transaction,
    get_transaction,
    list_jobs,
    get_job,
    follow_job,
    cancel_job,
    read_changes,
    follow_changes,
    read_corrections,
    list_consumers,
    put_consumer,
    get_consumer,
    delete_consumer,
    lease_consumer,
    release_consumer,
    read_rows,
    get_row,
    lookup_rows,
    create_read,
    get_result,
    download_result_file,
    check_result_file,
    create_scan,
    download_scan_file,
    check_scan_file,
    read_scan_rows,
    end_partitions,
    read_partition_events,
    get_metastore_report,
    read_timeline,
    list_files,
    list_partitions,
    read_statistics,
    read_quarantine,
    create_redrive,
    discard_quarantine,
    create_webhook,
    list_webhooks,
    get_webhook,
    change_webhook,
    delete_webhook,
    rotate_webhook_secret,
    try_webhook,
    list_webhook_deliveries,
    get_webhook_delivery,
    redeliver_webhook_delivery,
    redeliver_dead_webhook_deliveries,
    create_clean,
    create_compaction,
    create_clustering,
    create_source,
    list_sources,
    get_source,
    change_source,
    delete_source,
    start_source_round,
    create_view,
    list_views,
    get_view,
    change_view,
    delete_view,
    refresh_view,
    find_origins,
    create_verification,
    *SAVEPOINT_HANDLERS,
    *TAG_HANDLERS,
    create_restore,
    create_rollback,
    create_comparison,
    create_export,
    list_exports,
    get_export,
    change_export,
    delete_export,
    start_export_run,
    list_export_runs,
    get_export_run,
    download_export_file,
    check_export_file,
    get_identity,
    *KEY_HANDLERS,
    *USAGE_HANDLERS,
    create_tenant,
    list_tenants,
    get_tenant,
    change_tenant,
    delete_tenant,
    read_audit,
    get_liveness,
    get_readiness,
)
