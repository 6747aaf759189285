"""The functions, methods and queries of the commit path, and the modules of tests that must notice a change of them."""

from __future__ import annotations

from typing import Final

PLACES: Final = {
    "app.access.tenants.repository.quotas:check_count": "access.tenants.repository.test_quotas",
    "app.core.catalog.repository.head:MOVE_HEAD": "core.timeline.repository.test_timeline_store",
    "app.core.consumers.repository.followers:move_consumer": "core.consumers.repository.test_followers",
    "app.core.consumers.repository.participant:ConsumerParticipant.publishing": (
        "core.timeline.repository.test_consistency"
    ),
    "app.core.jobs.repository.accept:_reserve": "core.jobs.repository.test_jobs",
    "app.core.jobs.repository.accept:accept_jobs": "core.jobs.repository.test_jobs",
    "app.core.jobs.repository.accept:insert_jobs": "access.tenants.repository.test_quotas",
    "app.core.jobs.repository.claim:_next_group": (
        "core.jobs.repository.test_claims "
        "core.timeline.repository.test_scoped_commits "
        "features.transactions.repository.test_transactions"
    ),
    "app.core.jobs.repository.claim:_next_of_all": "features.transactions.repository.test_transactions",
    "app.core.jobs.repository.claim:claim_group": (
        "access.tenants.repository.test_quotas "
        "core.jobs.repository.test_claims "
        "core.jobs.repository.test_commit_slots "
        "features.writes.service.test_run_writes"
    ),
    "app.core.jobs.repository.held_jobs:_TAKE": "core.jobs.repository.test_held_claims",
    "app.core.jobs.repository.held_jobs:kill": "core.jobs.repository.test_dead_workers",
    "app.core.jobs.repository.held_jobs:out_of_attempts": "features.writes.service.test_run_writes",
    "app.core.jobs.repository.job_locks:ENDED": "core.jobs.repository.test_claims",
    "app.core.jobs.repository.job_locks:_is_held": "core.jobs.repository.test_held_claims",
    "app.core.jobs.repository.job_locks:lock_with_transactions": (
        "features.transactions.repository.test_transactions"
    ),
    "app.core.jobs.repository.replays:replayed_job": "core.jobs.repository.test_jobs",
    "app.core.jobs.repository.writer_batches:_check_order": "core.jobs.repository.test_writer_batches",
    "app.core.jobs.repository.writer_batches:_reserve": "core.jobs.repository.test_writer_batches",
    "app.core.jobs.repository.writer_batches:reserve_batches": "core.timeline.repository.test_locks",
    "app.core.timeline.repository.archives:TimelineArchiveStore.archive": (
        "core.timeline.repository.test_consistency core.timeline.repository.test_timeline_archives"
    ),
    "app.core.timeline.repository.conflict_window:window_of": (
        "core.timeline.repository.test_timeline_store"
    ),
    "app.core.timeline.repository.publish:_LOCK_HEADS": (
        "core.timeline.repository.test_concurrent_commits core.timeline.repository.test_locks"
    ),
    "app.core.timeline.repository.publish:_REMOVE": "core.timeline.repository.test_timeline_store",
    "app.core.timeline.repository.publish:_complete": "core.timeline.repository.test_consistency",
    "app.core.timeline.repository.publish:_insert_files": "core.timeline.repository.test_timeline_store",
    "app.core.timeline.repository.publish:_remove": "core.timeline.repository.test_timeline_store",
    "app.core.timeline.repository.publish:publish_commits": (
        "core.catalog.repository.test_schemas "
        "core.timeline.repository.test_consistency "
        "core.timeline.repository.test_scoped_commits "
        "core.timeline.repository.test_timeline_store "
        "core.timeline.repository.test_watermarks "
        "features.retention.repository.test_history "
        "features.versions.repository.test_savepoints"
    ),
    "app.core.timeline.repository.publish_in_slot:publish_in_slot": (
        "core.jobs.repository.test_commit_slots"
    ),
    "app.core.timeline.repository.read_leases:ReadLeaseStore.acquire": (
        "core.timeline.repository.test_locks core.timeline.repository.test_read_leases"
    ),
    "app.core.timeline.repository.timeline:TimelineStore.outcome_of": (
        "core.timeline.repository.test_broken_connections core.timeline.repository.test_consistency"
    ),
    "app.core.timeline.repository.timeline:TimelineStore.publish": (
        "core.timeline.repository.test_consistency"
    ),
    "app.core.timeline.service.publish:publish_until_known": "core.timeline.service.test_publish",
    "app.features.maintenance.repository.changelog_merges:ChangelogMergeStore.replace": (
        "features.maintenance.repository.test_changelog_merges"
    ),
    "app.features.retention.repository.feed:RetentionStore.cut": "core.timeline.repository.test_locks",
    "app.features.retention.repository.feed:_cuttable": (
        "features.retention.repository.test_retention features.versions.repository.test_savepoints"
    ),
    "app.features.retention.repository.history:HistoryStore.expire_files": (
        "core.timeline.repository.test_locks features.retention.repository.test_history"
    ),
    "app.features.retention.repository.history:_first_retained_version": (
        "features.retention.repository.test_history"
    ),
    "app.features.retention.repository.references:ReferenceStore.expire_replaced": (
        "features.maintenance.repository.test_changelog_merges"
    ),
    "app.features.retention.repository.references:ReferenceStore.referenced": (
        "features.retention.repository.test_reap"
    ),
    "app.features.retention.repository.references:_REFERENCES": "features.retention.repository.test_reap",
    "app.features.retention.service.reaper:Reap._reap": "features.retention.service.test_reap",
    "app.features.writes.attempt:Claimed.retained": "features.writes.test_attempt",
    "app.features.writes.attempt:Decoded.from_the_head": (
        "features.writes.test_attempt features.writes.service.test_plan_writes"
    ),
    "app.features.writes.attempt:Decoded.retained": "features.writes.test_attempt",
    "app.features.writes.attempt:Merged._without": (
        "features.writes.test_attempt "
        "features.writes.service.test_run_writes "
        "features.writes.service.test_small_commits"
    ),
    "app.features.writes.attempt:Merged.commit": (
        "features.writes.test_attempt features.writes.service.test_run_writes"
    ),
    "app.features.writes.attempt:Merged.conflicted": (
        "features.writes.test_attempt features.writes.service.test_run_writes"
    ),
    "app.features.writes.attempt:Planned.merged": (
        "features.writes.test_attempt features.writes.service.test_run_writes"
    ),
    "app.features.writes.attempt:WriteGroup._retained": "features.writes.test_attempt",
    "app.features.writes.attempt:WriteGroup.fenced": (
        "features.writes.test_attempt features.writes.service.test_run_writes"
    ),
    "app.features.writes.attempt:WriteGroup.moved": "features.writes.test_attempt",
    "app.features.writes.attempt:WriteGroup.replan": (
        "features.writes.test_attempt features.writes.service.test_run_writes"
    ),
    "app.features.writes.attempt:WriteGroup.without": "features.writes.test_attempt",
    "app.features.writes.attempt:_check_sum": "features.writes.test_attempt",
    "app.features.writes.attempt:basis_of": (
        "features.writes.test_attempt "
        "features.writes.service.test_plan_writes "
        "features.writes.service.test_run_writes"
    ),
    "app.features.writes.service.plan:PlanWrites.run": "features.writes.service.test_run_writes",
    "app.features.writes.service.run:RunWrites._commit": "features.writes.service.test_run_writes",
    "app.features.writes.service.run:RunWrites._decode": "features.writes.service.test_run_writes",
    "app.features.writes.service.run:RunWrites._end": "features.writes.service.test_run_writes",
    "app.features.writes.service.run:RunWrites._fail_affected": "features.writes.service.test_run_writes",
    "app.features.writes.service.run:RunWrites._merge": "features.writes.service.test_run_writes",
    "app.infra.db.session:Database._begin": "core.timeline.repository.test_broken_connections",
    "app.infra.db.session:_commit": "core.timeline.repository.test_broken_connections",
    "app.infra.files.checksums:_verify_content": "infra.files.test_checksums",
    "app.infra.files.checksums:verify": "infra.files.test_checksums",
    "app.infra.files.deletion_vector_file:VectorReader._read": "infra.files.test_index_files",
    "app.infra.files.storage:LocalStorage._make_durable": "infra.files.test_durability",
    "app.infra.files.storage:LocalStorage._make_folders": (
        "infra.files.test_durability infra.files.test_storage"
    ),
    "app.infra.files.storage:LocalStorage.create": "infra.files.test_durability infra.files.test_storage",
    "app.infra.files.storage:LocalStorage.synced_together": "infra.files.test_durability",
    "app.infra.files.storage:_SyncedTogether._sync": "infra.files.test_durability",
    "app.kernel.commit.conflict:_Owners.of": "kernel.commit.test_conflict conformance.test_halved_buckets",
    "app.kernel.commit.conflict:check_conflicts": (
        "core.timeline.repository.test_scoped_commits "
        "core.timeline.repository.test_timeline_store "
        "kernel.commit.test_conflict"
    ),
    "app.kernel.commit.write_plan:plan_merge": "kernel.commit.test_write_plan",
    "app.kernel.format.index.deletion_vector:from_bytes": "kernel.format.test_deletion_vector",
    "app.kernel.format.index.deletion_vector:positions_set": "kernel.format.test_deletion_vector",
    "app.kernel.format.index.deletion_vector:union": "kernel.format.test_deletion_vector",
    "workers.engine.merge.file_rewrite:rewrite_files": "conformance.test_halved_buckets",
    "workers.engine.merge.task_report:TaskReport._are_changes": "conformance.test_written_once",
}
"""`module:name` of a function, of a method as `Class.method`, or of a value of a module, and its modules of tests below
`tests`, in the order in which they run."""
