"""A tenant with rows in every table of its data."""

from __future__ import annotations

from sqlalchemy import text

from app.core.catalog.values import Upload
from app.infra.identifiers import new_id
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores


def populate(stores: Stores) -> str:
    tenant_id = stores.tenants.add_tenant(f"victim-{new_id()}")
    stores.tenants.make_key(tenant_id, {"read"})
    dataset = stores.catalog.create(tenant_id, new_id(), definition())
    stores.catalog.add_upload(
        tenant_id,
        Upload(
            id=new_id(),
            dataset_id=dataset.id,
            path="uploads/1",
            size_bytes=1,
            checksum="c",
            created_at=dataset.created_at,
        ),
    )
    stores.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    stores.timeline.publish_one(
        tenant_id, commit_of(stores.jobs.claim(tenant_id, dataset.id, "w", RULES), [message()])
    )
    waiting = stores.jobs.accept(tenant_id, new_job(dataset.id)).job
    source = stores.catalog.create(tenant_id, new_id(), definition("source"))
    values = {"dataset": dataset.id, "source": source.id, "job": waiting.id, "new": new_id()}
    with stores.database.tenant(tenant_id) as connection:
        for statement in _MORE:
            connection.execute(text(statement), values)
    return tenant_id


_MORE = (
    "INSERT INTO token_subjects (id, issuer, subject) VALUES (:new, 'https://issuer.example', 'ada')",
    "INSERT INTO transactions (id, request_hash) VALUES (:new, 'hash')",
    "INSERT INTO writer_batches (dataset_id, writer_id, batch_id, job_id) VALUES (:dataset, 'w', 1, :job)",
    "INSERT INTO quarantine_files (dataset_id, path, job_id, row_count, size_bytes, checksum) "
    "VALUES (:dataset, 'quarantine/1', :job, 1, 1, 'c')",
    "INSERT INTO quarantine_redrives (dataset_id, path, record, job_id) VALUES (:dataset, 'quarantine/1', 0, :job)",
    "INSERT INTO consumers (dataset_id, name, kind, position) VALUES (:dataset, 'reader', 'reader', 0)",
    "INSERT INTO webhooks (id, dataset_id, definition, secret, state) "
    "VALUES (:new, :dataset, '{\"url\": \"https://example.org\"}', 's', 'active')",
    "INSERT INTO webhook_deliveries (id, webhook_id, since, next_since, telling, state) "
    "VALUES (:new, :new, 0, 1, '{}', 'pending')",
    "INSERT INTO alert_feeds (next_event) VALUES (1)",
    "INSERT INTO alert_events (number, dataset_id, event) VALUES (0, :dataset, '{}')",
    "INSERT INTO alert_followers (webhook_id, position) VALUES (:new, 0)",
    "INSERT INTO exports (id, dataset_id, definition, state) VALUES (:new, :dataset, '{}', 'active')",
    "INSERT INTO export_runs (export_id, number, since, until, job_id) VALUES (:new, 1, 0, 1, :job)",
    "INSERT INTO export_files (dataset_id, path, export_id, number, name, size_bytes, row_count, checksum) "
    "VALUES (:dataset, 'exports/1', :new, 1, 'part', 1, 1, 'c')",
    "INSERT INTO views (dataset_id, definition) VALUES (:dataset, '{}')",
    "INSERT INTO view_inputs (view_id, dataset_id, relation) VALUES (:dataset, :source, 'orders')",
    "INSERT INTO sources (id, name, dataset_id, dataset_name, definition, secrets, state, position) "
    "VALUES (:new, 'in', :dataset, 'orders', '{}', '{}', 'active', '{}')",
    "INSERT INTO source_items (source_id, name, fingerprint, checksum, size_bytes, round) "
    "VALUES (:new, 'f', '1-1', 'c', 1, 1)",
    "INSERT INTO shares (id, name, folded_name, deleted_rows) VALUES (:new, 'Sales', 'sales', 'rendered')",
    "INSERT INTO shared_datasets (share_id, dataset_id, name, folded_name) VALUES (:new, :dataset, 'Orders', 'orders')",
    "INSERT INTO recipients (id, share_id, name) VALUES (:new, :new, 'acme')",
    "INSERT INTO console_sessions (digest, key_id, ends_at) "
    "SELECT sha256(uuid_send(gen_random_uuid())), id, clock_timestamp() FROM api_keys",
    "INSERT INTO console_links (digest, key_id, ends_at) "
    "SELECT sha256(uuid_send(gen_random_uuid())), id, clock_timestamp() FROM api_keys",
    "INSERT INTO share_tokens (recipient_id, digest) VALUES (:new, sha256(uuid_send(gen_random_uuid())))",
    "INSERT INTO dataset_labels (dataset_id, key, value) VALUES (:dataset, 'team', 'ops')",
    "INSERT INTO named_versions (dataset_id, name, kind, version) VALUES (:dataset, 'n', 'tag', 1)",
    "INSERT INTO read_leases (dataset_id, reader, version, lease_until) VALUES (:dataset, 'r', 1, now())",
    "INSERT INTO timeline_archives (dataset_id, path, first_instant, last_instant, row_count, size_bytes, checksum) "
    "VALUES (:dataset, 'timeline/1', 'a', 'b', 1, 1, 'c')",
    "INSERT INTO replaced_changelog_files (dataset_id, path, size_bytes) VALUES (:dataset, 'changes/1', 1)",
    "INSERT INTO read_files (dataset_id, path, job_id, number, name, row_count, size_bytes, checksum) "
    "VALUES (:dataset, 'reads/1', :job, 1, 'part', 1, 1, 'c')",
    "INSERT INTO service_results (dataset_id, service, version, result) VALUES (:dataset, 'analysis', 1, '{}')",
    "INSERT INTO rendered_files "
    "(dataset_id, key, view, content, size_bytes, row_count, statistics, path, data_path, origin_version, schema_id) "
    "VALUES (:dataset, 'key', 'view', 'content', 1, 1, '{}', 'rendered/1', 'data/1', 1, 1)",
    "INSERT INTO table_keeping (dataset_id, memory) VALUES (:dataset, '{}')",
    "INSERT INTO partition_feeds (dataset_id) VALUES (:dataset)",
    "INSERT INTO key_usage_days (day, key_id) VALUES (current_date, :new)",
    "INSERT INTO dataset_hours (dataset_id, hour, writes) VALUES (:dataset, now(), 1) ON CONFLICT DO NOTHING",
    "INSERT INTO dataset_samples (dataset_id, version, rows, deleted_rows, files, logs, size_bytes) "
    "VALUES (:dataset, 1, 1, 0, 1, 0, 1)",
    "INSERT INTO storage_samples (stored_bytes) VALUES (1)",
    "INSERT INTO audit (id, operation, method, route, resources, members, outcome, status) "
    "VALUES (:new, 'read_rows', 'GET', '/', '{}', '{}', 'allowed', 200)",
    "INSERT INTO idempotency_keys (scope, key, request_hash, status, headers, body, expires_at) "
    "VALUES ('/datasets', 'k', 'hash', 201, '{}', '', now())",
    "INSERT INTO partition_marks (dataset_id, path, changed_version, changed_at) VALUES (:dataset, 'day=1', 1, now())",
    "INSERT INTO partition_events (dataset_id, number, kind, partition, version) "
    "VALUES (:dataset, 0, 'reopened', 'day=1', 1)",
)
