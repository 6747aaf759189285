"""Each operation of the API has a command, or was decided to be reached by `headwater api` alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from headwater_client.cli.registry import COMMANDS
from tests.clients.test_command_examples import commands_of

ROOT: Final = Path(__file__).parents[2]
METHODS: Final = ("get", "put", "post", "patch", "delete", "head")
BY_COMMAND: Final[dict[str, str]] = {
    "analyze": "create_analysis",
    "audit": "read_audit",
    "clean": "create_clean",
    "cluster": "create_clustering",
    "compact": "create_compaction",
    "consumers create": "put_consumer",
    "consumers delete": "delete_consumer",
    "consumers list": "list_consumers",
    "consumers show": "get_consumer",
    "create": "create_dataset",
    "delete": "delete_dataset",
    "diff": "create_comparison",
    "exports create": "create_export",
    "exports delete": "delete_export",
    "exports download": "download_export_file",
    "exports list": "list_exports list_all_exports",
    "exports pause": "change_export",
    "exports run": "start_export_run get_export_run",
    "exports runs": "list_export_runs",
    "exports show": "get_export",
    "files": "list_files",
    "get": "get_row",
    "jobs cancel": "cancel_job",
    "jobs list": "list_jobs",
    "console": "create_sign_in_link",
    "jobs show": "get_job",
    "keys create": "create_key create_tenant_key",
    "keys list": "list_keys list_tenant_keys",
    "keys revoke": "revoke_key revoke_tenant_key",
    "keys show": "get_key get_tenant_key",
    "listen": "list_webhook_alerts",
    "log": "read_timeline",
    "login": "get_identity",
    "ls": "list_datasets",
    "overview": "read_overview",
    "partitions done": "end_partitions",
    "partitions list": "list_partitions",
    "quarantine discard": "discard_quarantine",
    "quarantine list": "read_quarantine",
    "quarantine redrive": "create_redrive",
    "rename": "change_dataset",
    "restore": "create_restore",
    "rows": "read_rows",
    "schema list": "get_dataset_schema",
    "savepoint": "create_savepoint",
    "savepoints delete": "delete_savepoint",
    "savepoints list": "list_savepoints",
    "shares add-recipient": "create_recipient",
    "shares create": "create_share",
    "shares delete": "delete_share",
    "shares list": "list_shares",
    "shares recipients": "list_recipients",
    "shares remove-recipient": "delete_recipient",
    "shares rotate": "rotate_recipient_token",
    "shares show": "get_share",
    "show": "get_dataset read_statistics",
    "sources create": "create_source",
    "sources delete": "delete_source",
    "sources list": "list_sources",
    "sources pause": "change_source",
    "sources run": "start_source_round",
    "sources show": "get_source",
    "lineage": "read_lineage",
    "status": "get_readiness get_service_health",
    "tags create": "create_tag",
    "tags delete": "delete_tag",
    "tags list": "list_tags",
    "tail": "read_changes",
    "tenants create": "create_tenant",
    "tenants delete": "delete_tenant",
    "tenants list": "list_tenants",
    "tenants quotas": "get_tenant_quotas",
    "tenants show": "get_tenant",
    "tenants suspend": "change_tenant",
    "undo": "create_rollback",
    "usage": "get_usage get_tenant_usage",
    "reap": "create_reap",
    "verify": "create_verification",
    "views create": "create_view",
    "views delete": "delete_view",
    "views list": "list_views",
    "views pause": "change_view",
    "views refresh": "refresh_view",
    "views show": "get_view",
    "webhooks attempts": "list_webhook_attempts",
    "webhooks create": "create_webhook",
    "webhooks delete": "delete_webhook",
    "webhooks deliveries": "list_webhook_deliveries",
    "webhooks list": "list_webhooks",
    "webhooks pause": "change_webhook",
    "webhooks redeliver": "get_webhook_delivery redeliver_webhook_delivery redeliver_dead_webhook_deliveries",
    "webhooks rotate": "rotate_webhook_secret",
    "webhooks show": "get_webhook",
    "webhooks test": "try_webhook",
    "write": "create_write",
}
# Each is for programs, or so rare that `headwater api` does.
BY_API: Final = frozenset(
    {
        "change_recipient",
        "change_share",
        "create_read",
        "create_scan",
        "create_transaction",
        "create_upload",
        "create_upload_link",
        "download_result_file",
        "download_scan_file",
        "explain_keys",
        "explain_write",
        "find_origins",
        "follow_changes",
        "follow_job",
        "get_liveness",
        "get_metastore_report",
        "get_recipient",
        "get_result",
        "get_savepoint",
        "get_tag",
        "get_transaction",
        "lease_consumer",
        "list_dataset_schemas",
        "list_stored_datasets",
        "lookup_rows",
        "read_corrections",
        "read_metrics",
        "read_overview_hours",
        "read_partition_events",
        "read_scan_rows",
        "release_consumer",
    }
)


def operations() -> set[str]:
    """The operations of the API but those of HEAD, which have the bodies of others left out."""
    document = json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))
    return {
        operation["operationId"]
        for methods in document["paths"].values()
        for method, operation in methods.items()
        if method in METHODS and method != "head"
    }


def test_every_operation_has_a_command_or_is_left_to_api() -> None:
    named = [operation for text in BY_COMMAND.values() for operation in text.split()]
    assert len(named) == len(set(named))
    assert not BY_API & set(named)
    assert operations() == BY_API | set(named)


def test_commands_of_operations_are_those_of_the_registry() -> None:
    assert BY_COMMAND.keys() <= dict(commands_of(COMMANDS)).keys()
