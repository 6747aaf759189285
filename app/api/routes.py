"""Every resource."""

from __future__ import annotations

from typing import Final

from app.api.change_events import follow_changes
from app.api.changes import read_changes
from app.api.cleans import create_clean
from app.api.clusterings import create_clustering
from app.api.compactions import create_compaction
from app.api.comparisons import create_comparison
from app.api.consumers import (
    delete_consumer,
    get_consumer,
    lease_consumer,
    list_consumers,
    put_consumer,
    release_consumer,
)
from app.api.corrections import read_corrections
from app.api.datasets import (
    change_dataset,
    create_dataset,
    delete_dataset,
    get_dataset,
    get_dataset_schema,
    list_dataset_schemas,
    list_datasets,
)
from app.api.derived_views import change_view, create_view, delete_view, get_view, list_views, refresh_view
from app.api.explain import explain_keys, explain_write
from app.api.export_files import check_export_file, download_export_file
from app.api.exports import (
    change_export,
    create_export,
    delete_export,
    get_export,
    get_export_run,
    list_export_runs,
    list_exports,
    start_export_run,
)
from app.api.health import get_liveness, get_readiness
from app.api.jobs import cancel_job, follow_job, get_job
from app.api.metastore import get_metastore_report
from app.api.named_versions import (
    create_savepoint,
    create_tag,
    delete_savepoint,
    delete_tag,
    get_savepoint,
    get_tag,
    list_savepoints,
    list_tags,
)
from app.api.overview import list_files, read_statistics
from app.api.partition_events import end_partitions, read_partition_events
from app.api.partitions import list_partitions
from app.api.quarantine import discard_quarantine, read_quarantine, redrive_quarantine
from app.api.read_results import check_result_file, download_result_file, get_result
from app.api.reads import create_read
from app.api.restores import create_restore, create_rollback
from app.api.rows import read_rows
from app.api.timeline import read_timeline
from app.api.transactions import create_transaction, get_transaction
from app.api.uploads import create_upload
from app.api.verify import verify_dataset
from app.api.webhook_deliveries import (
    get_webhook_delivery,
    list_webhook_deliveries,
    redeliver_dead_webhook_deliveries,
    redeliver_webhook_delivery,
)
from app.api.webhooks import (
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    list_webhooks,
    rotate_webhook_secret,
    try_webhook,
)
from app.api.writes import create_write

ROUTES: Final = (
    create_dataset,
    list_datasets,
    get_dataset,
    get_dataset_schema,
    list_dataset_schemas,
    change_dataset,
    delete_dataset,
    create_upload,
    create_write,
    explain_keys,
    explain_write,
    create_transaction,
    get_transaction,
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
    create_read,
    get_result,
    download_result_file,
    check_result_file,
    end_partitions,
    read_partition_events,
    get_metastore_report,
    read_timeline,
    list_files,
    list_partitions,
    read_statistics,
    read_quarantine,
    redrive_quarantine,
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
    create_view,
    list_views,
    get_view,
    change_view,
    delete_view,
    refresh_view,
    verify_dataset,
    create_savepoint,
    list_savepoints,
    get_savepoint,
    delete_savepoint,
    create_tag,
    list_tags,
    get_tag,
    delete_tag,
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
    get_liveness,
    get_readiness,
)
