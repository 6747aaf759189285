"""The promises of the service, row by row, and the tests that hold each.

A row is held by tests (by node id), or it says what is not built, or both: then the tests hold the part that is built.
`python -m tests.mission` lists the tests, and `make mission` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """A promise. `tests`: node ids below `tests/`. `missing`: what is not built, with the reason."""

    name: str
    tests: tuple[str, ...] = ()
    missing: str | None = None


def row(name: str, *tests: str, missing: str | None = None) -> Row:
    """A row, in one line."""
    return Row(name=name, tests=tests, missing=missing)


_OPERATIONS = "flows/test_write_operations.py"
_HUDI = "scenarios/test_hudi.py"
_ODF = "scenarios/test_open_data_fabric.py"
_KINDS = "scenarios/test_rows_of_every_kind.py"
_READ_JOBS = "features/reads/service/test_read_jobs.py"
_VOCABULARY = "mission/test_vocabulary.py"
_META = "mission/test_meta_columns.py"
_PINS = "mission/test_pins.py"
_CONFLICTS = "mission/test_conflicts.py"
_FILES = "features/sources/handlers/test_files.py"
_TOPICS = "infra/kafka/test_sources_over_http.py"
_ROUNDS = "features/sources/repository/test_rounds.py"
_SPARK = "spark/test_spark"
_NEW = "features/writes/handlers/test_new_datasets.py"

SERVICE = (
    row(
        "REST API for datasets, writes, reads and changes",
        "process/openapi/test_conformance.py",
        "clients/test_client.py::test_datasets_are_registered_found_listed_and_deleted",
    ),
    row(
        "Postgres timeline with optimistic commit concurrency",
        "core/timeline/repository/test_concurrent_commits.py",
        "core/timeline/repository/test_interleavings.py",
        "flows/test_two_writers.py::test_writers_of_different_buckets_do_not_conflict",
        "flows/test_two_writers.py::test_writers_of_the_same_bucket_replan",
    ),
    row(
        "Celery workers on Redis run PySpark tasks",
        f"{_OPERATIONS}::test_insert_upsert_bulk_insert_and_delete_change_the_table",
        "flows/test_worker_killed.py::test_write_with_a_killed_worker_happens_once",
        "flows/test_rounds_killed.py::test_writes_of_a_round_with_a_killed_worker_happen_once_each",
    ),
    row(
        "changelog offsets are published to consumers",
        "core/changes/handlers/test_concurrent_reads.py::test_all_readers_get_the_same_bytes_while_the_feed_is_written",
        "core/consumers/repository/test_consumer_histories.py",
        "flows/test_webhooks.py::test_webhook_delivers_every_committed_change_once",
    ),
    row(
        "multi-tenant",
        "access/tenants/repository/test_row_security.py::test_foreign_tenant_sees_and_changes_nothing",
        "http/test_access_matrix.py",
        "http/test_quotas.py",
        "flows/test_fairness.py::test_write_is_committed_before_the_queue_of_another_tenant_has_ended",
    ),
    row(
        "clients generated from OpenAPI",
        "process/openapi/test_generated_clients.py",
        "clients/test_models.py",
    ),
    row("layout of the repository", "clients/test_packages.py", "architecture/test_import_contracts.py"),
)

HUDI = (
    row(
        "upsert with pluggable indexes",
        f"{_OPERATIONS}::test_upsert_matches_rows_with_every_index",
    ),
    row(
        "insert, upsert, bulk_insert, delete",
        f"{_OPERATIONS}::test_insert_upsert_bulk_insert_and_delete_change_the_table",
        "conformance/test_bulk_insert.py::test_bulk_insert_sorts_and_sizes_files_without_key_lookups",
        "features/writes/handlers/test_write_modes.py::test_write_that_does_not_combine_stores_every_row_as_sent",
        "features/writes/handlers/test_write_modes.py::test_write_to_a_record_key_always_combines",
    ),
    row(
        "ordering field and combining before a write",
        f"{_OPERATIONS}::test_ordering_field_selects_the_newest_row_before_and_after_the_write",
        "kernel/format/test_ordering_field.py::test_row_with_the_greater_member_wins_before_and_after_the_write",
        "features/writes/handlers/test_ordering_member.py::test_late_rows_and_deletes_are_compared_by_the_member",
    ),
    row(
        "record key, nested partition path, key generator",
        f"{_OPERATIONS}::test_keys_of_several_fields_and_nested_partition_sources_work",
        "features/writes/handlers/test_key_members.py",
    ),
    row("payload class: merge modes", f"{_OPERATIONS}::test_merge_modes_decide_the_result_of_upserts"),
    row("drop duplicates of inserts", f"{_OPERATIONS}::test_drop_duplicates_counts_the_dropped_rows"),
    row("atomic publish and rollback", f"{_HUDI}::test_publish_is_atomic_and_failed_writes_roll_back"),
    row(
        "snapshot isolation",
        f"{_HUDI}::test_reader_is_isolated_from_writes_and_services",
        f"{_PINS}::test_page_of_rows_keeps_its_version_for_the_next_one",
        f"{_PINS}::test_last_page_of_rows_keeps_nothing",
        f"{_PINS}::test_waiting_read_keeps_its_version_until_it_has_ended",
        f"{_PINS}::test_cancelled_read_keeps_nothing",
        f"{_PINS}::test_repeated_request_keeps_its_version_once",
        f"{_PINS}::test_waiting_incremental_read_keeps_the_changes_of_its_range",
        f"{_PINS}::test_waiting_incremental_read_keeps_no_files_of_the_table",
        f"{_PINS}::test_cancelled_incremental_read_keeps_no_changes",
        f"{_PINS}::test_incremental_read_that_waits_too_long_loses_its_changes",
        f"{_PINS}::test_refused_lease_of_a_feed_keeps_nothing",
        f"{_PINS}::test_lease_of_a_feed_and_a_cut_exclude_each_other",
    ),
    row(
        "savepoint and restore",
        f"{_HUDI}::test_restore_returns_to_a_savepoint",
        "flows/test_time_travel.py::test_restore_and_rollback_work_on_the_deployment",
        "flows/test_kills_of_other_work.py::test_restore_with_a_killed_worker_happens_once",
        f"{_PINS}::test_waiting_restore_keeps_its_version",
    ),
    row(
        "file sizes and layout by statistics",
        f"{_HUDI}::test_small_files_receive_new_rows_and_files_end_at_their_size",
        f"{_HUDI}::test_statistics_exclude_files_from_a_read",
    ),
    row("asynchronous compaction", f"{_HUDI}::test_compaction_merges_logs_beside_a_writer"),
    row(
        "timeline metadata and lineage",
        "features/overview/handlers/test_overview.py::test_timeline_entries_have_metadata_and_lineage",
        f"{_FILES}::test_position_is_in_the_timeline_entry_of_the_commit",
    ),
    row(
        "five meta columns",
        f"{_KINDS}::test_meta_columns_are_returned_in_every_format",
        f"{_META}::test_read_job_has_the_meta_columns_of_pages",
        f"{_META}::test_meta_columns_follow_the_selected_columns_and_the_order",
        f"{_META}::test_incremental_read_has_the_meta_columns_of_the_rows_that_changed",
        f"{_META}::test_export_has_the_meta_columns_of_pages",
        f"{_META}::test_export_of_a_range_has_the_meta_columns_of_the_rows_that_changed",
        f"{_META}::test_export_of_changes_has_no_meta_columns",
    ),
    row(
        "a bad record does not fail the job",
        f"{_OPERATIONS}::test_bad_record_is_quarantined_and_its_job_succeeds",
        "features/writes/handlers/test_bad_neighbours.py",
        "mission/test_overflows.py::test_overflowing_sum_quarantines_the_rows_of_its_key_only",
        "mission/test_overflows.py::test_feed_has_no_row_of_a_key_that_overflows",
        "mission/test_overflows.py::test_writes_of_one_commit_quarantine_their_own_rows",
    ),
    row(
        "copy on write and merge on read",
        f"{_OPERATIONS}::test_merge_on_read_inserts_append_to_logs",
        f"{_READ_JOBS}::test_read_optimized_query_reads_only_base_files",
        "conformance/test_write_operations.py::test_short_history_equals_the_model",
    ),
    row(
        "incremental query",
        f"{_HUDI}::test_incremental_query_returns_changes_and_refuses_invalid_bounds",
        f"{_READ_JOBS}::test_begin_is_exclusive_and_end_inclusive",
        f"{_READ_JOBS}::test_incremental_rows_of_every_producer_are_those_of_the_table",
        f"{_READ_JOBS}::test_filters_are_pushed_down_to_files",
        f"{_READ_JOBS}::test_incremental_read_skips_files_outside_its_partitions",
    ),
    row(
        "errors of incremental queries",
        "features/reads/service/test_refused_reads.py::test_incremental_query_without_a_begin_is_refused",
        "features/reads/service/test_refused_reads.py::test_incremental_query_of_an_empty_timeline_is_refused",
        "features/reads/handlers/test_reads.py::test_unknown_query_type_is_refused",
    ),
    row(
        "latest schema for incremental reads",
        f"{_READ_JOBS}::test_columns_added_later_are_null_in_older_rows",
        f"{_READ_JOBS}::test_changed_rows_are_read_across_a_dropped_and_a_renamed_column",
    ),
    row("quickstart data generator", "clients/test_trips_demo.py"),
    row(
        "DeltaStreamer, once and continuous",
        f"{_FILES}::test_files_of_a_folder_are_read_once_in_the_order_of_their_names",
        f"{_FILES}::test_continuous_source_reads_what_arrives_and_changed_files_again",
        f"{_FILES}::test_rounds_are_bounded_and_follow_each_other",
        "flows/test_sources.py::test_round_with_a_killed_worker_is_committed_once",
        "flows/test_sources_killed.py",
        "infra/kafka/test_impressions_example.py",
    ),
    row(
        "Kafka, Avro and schema registry",
        f"{_TOPICS}::test_messages_of_a_topic_become_rows_of_the_feed",
        f"{_TOPICS}::test_schemas_of_the_registry_are_the_columns_and_change_in_flight",
        "infra/kafka/test_source_kind.py::test_avro_is_read_with_the_schema_of_each_message",
        "flows/test_topics.py::test_each_message_is_one_row_while_workers_are_killed",
    ),
    row(
        "transformer",
        "features/sources/handlers/test_transforms.py",
        "engine/test_transforms.py",
        "flows/test_sources.py::test_round_with_a_transform_and_a_killed_worker_is_committed_once",
    ),
    row(
        "source ordering field, filter of duplicates, operation",
        f"{_FILES}::test_dataset_is_registered_with_the_columns_of_the_first_files",
        f"{_FILES}::test_rows_whose_key_is_in_the_table_are_left_out",
        f"{_FILES}::test_snapshot_replaces_the_table_and_a_round_without_files_does_not",
    ),
    row(
        "checkpoint in the commit",
        f"{_FILES}::test_position_is_in_the_timeline_entry_of_the_commit",
        f"{_ROUNDS}::test_commit_moves_the_position_once",
        f"{_ROUNDS}::test_reset_position_makes_the_running_round_void",
        "flows/test_sources.py::test_round_with_a_killed_worker_is_committed_once",
    ),
    row(
        "empty batch commits nothing",
        "flows/test_input_formats.py::test_write_without_rows_changes_nothing",
        "features/sources/handlers/test_sources.py::test_round_without_input_succeeds_without_a_version",
    ),
    row("metrics and timers", missing="there is no metrics endpoint"),
    row(
        "scheduling pools for services",
        "engine/test_spark_engine.py::test_writes_and_services_have_their_own_scheduling_pools",
        "engine/test_pools.py::test_each_tenant_has_a_pool_of_its_own_for_each_kind_of_work",
    ),
)

PAIMON = (
    row(
        "save modes",
        f"{_OPERATIONS}::test_save_modes_append_overwrite_ignore_or_refuse",
        "features/writes/handlers/test_write_conflicts.py::test_rows_committed_meanwhile_decide_the_save_mode",
        f"{_NEW}::test_write_registers_its_dataset_in_every_save_mode",
        f"{_NEW}::test_dataset_with_rows_is_left_alone_or_refused",
        f"{_NEW}::test_failed_write_leaves_no_dataset_and_its_job",
        f"{_NEW}::test_racing_writes_register_one_dataset",
    ),
    row(
        "dynamic partition overwrite and overwrite by filter",
        f"{_OPERATIONS}::test_overwrite_and_delete_replace_partitions_or_filtered_rows",
    ),
    row(
        "Spark data source",
        f"{_SPARK}_writes.py::test_all_partitions_are_one_commit",
        f"{_SPARK}_writes.py::test_operations_and_modes",
        f"{_SPARK}_reads.py::test_snapshot_and_time_travel",
        f"{_SPARK}_reads.py::test_sql_over_a_view",
        f"{_SPARK}_streams.py::test_stream_of_changes_continues_from_its_checkpoint",
        f"{_SPARK}_streams.py::test_complete_mode_replaces_the_table",
        "spark/test_commits.py::test_a_repeated_commit_is_one_write",
    ),
    row(
        "merge schema and explicit cast",
        f"{_OPERATIONS}::test_merge_schema_adds_columns_and_explicit_cast_converts_values",
    ),
    row("fixed buckets", f"{_OPERATIONS}::test_every_bucket_mode_distributes_rows"),
    row(
        "dynamic buckets",
        f"{_OPERATIONS}::test_every_bucket_mode_distributes_rows",
        "conformance/test_file_sizes.py::test_dynamic_buckets_open_by_row_count_and_keys_stay_in_their_buckets",
    ),
    row(
        "keys unique across partitions",
        "conformance/test_file_sizes.py::test_moved_row_takes_a_bucket_of_its_new_partition",
        "features/writes/handlers/test_write_modes.py::test_key_moved_by_an_overwrite_by_partitions_leaves_its_old_partition",
    ),
    row(
        "appends without buckets, optional partition shuffle",
        f"{_OPERATIONS}::test_keyless_inserts_work_with_and_without_partition_shuffle",
    ),
    row(
        "postponed buckets",
        "features/maintenance/service/test_rewrite_file_groups.py::test_writes_postponed_during_the_service_wait_for_the_next",
        "features/versions/service/test_restore.py::test_restore_drops_later_postponed_writes_and_returns_earlier_ones",
    ),
    row(
        "commit messages of tasks, one commit",
        "flows/test_queued_writes.py::test_queued_writes_commit_as_one_version",
    ),
    row("spill", "conformance/test_spill.py::test_bucket_larger_than_memory_is_merged"),
    row(
        "post-commit actions",
        "engine/test_hive_metastore.py",
        "features/versions/service/test_tag_reconciler.py",
        "features/partitions/handlers/test_partition_events.py::test_idle_partition_is_marked_done",
        "mission/test_partition_done.py::test_write_ends_the_partitions_that_it_changes",
        "mission/test_partition_done.py::test_partitions_end_only_with_a_commit",
        "mission/test_partition_done.py::test_partition_done_requires_its_service",
        "features/sources/handlers/test_ended_partitions.py::test_partitions_are_done_once_everything_was_read",
        "features/versions/handlers/test_batch_tags.py::test_latest_batches_are_tagged_in_their_commits",
        "features/metastore/service/test_metastore_reconciler.py::test_report_waits_until_the_dataset_is_idle",
        "flows/test_post_commit_actions.py",
    ),
    row(
        "streaming sink: batches are idempotent",
        f"{_OPERATIONS}::test_writer_batch_commits_once",
        "features/writes/handlers/test_write_modes.py::test_writer_batch_commits_once",
        f"{_SPARK}_streams.py::test_stream_of_changes_continues_from_its_checkpoint",
        f"{_SPARK}_streams.py::test_complete_mode_replaces_the_table",
        f"{_SPARK}_streams.py::test_a_repeated_batch_is_committed_once",
        f"{_SPARK}_streams.py::test_crashed_query_repeats_its_last_batch_without_doubling_it",
        "spark/test_killed_drivers.py",
    ),
)

OPEN_DATA_FABRIC = (
    row(
        "watermarks and late rows",
        "kernel/commit/test_watermarks.py",
        "engine/test_late_rows.py",
        "core/timeline/repository/test_watermarks.py",
        "core/changes/handlers/test_watermarks.py",
        "features/views/repository/test_derived_views.py::test_watermark_of_a_view_is_the_least_of_its_inputs_and_never_goes_back",
    ),
    row("op column", f"{_ODF}::test_op_is_uint8_and_a_dictionary_encoded_int32_in_parquet"),
    row(
        "immutable append-only stream",
        f"{_ODF}::test_feed_is_append_only_with_offset_system_time_and_event_time",
    ),
    row(
        "corrections are pairs with the original values",
        f"{_ODF}::test_correct_from_directly_precedes_correct_to_with_the_original_values",
    ),
    row(
        "retract, upsert and single-event forms",
        f"{_ODF}::test_retract_and_upsert_forms_are_subsets_and_pairs_become_single_events",
    ),
    row(
        "snapshot merge strategy",
        f"{_ODF}::test_snapshot_write_derives_appends_corrections_and_retractions",
        f"{_ODF}::test_keyless_snapshot_write_emits_a_retract_stream",
    ),
    row(
        "corrections and retractions as input",
        f"{_ODF}::test_changelog_write_reproduces_corrections_and_retractions",
        "features/writes/handlers/test_row_changes.py::"
        "test_retract_stream_reproduces_a_keyless_dataset_at_every_version",
        "features/writes/handlers/test_row_changes.py::"
        "test_retraction_of_a_row_that_is_not_there_is_quarantined_and_redriven",
        "features/sources/handlers/test_dataset_changes.py::"
        "test_changes_of_a_dataset_without_a_key_are_applied_row_by_row",
    ),
    row(
        "provenance of derived changes",
        "features/views/handlers/test_origins.py",
        "flows/test_derived_views.py::test_row_by_row_view_follows_every_change",
    ),
    row(
        "late data corrects earlier results: derived datasets",
        "flows/test_derived_views.py::test_ranking_view_emits_overtakings",
        "flows/test_derived_views.py::test_grouping_view_corrects_its_groups",
    ),
    row(
        "order is preserved, op is propagated",
        f"{_ODF}::test_filter_and_projection_keep_order_and_op",
        "flows/test_derived_views.py::test_row_by_row_view_follows_every_change",
    ),
    row("UI hides op where unused", missing="the console is not built"),
    row(
        "corrections are linked to what they correct",
        f"{_ODF}::test_corrections_are_linked_to_the_changes_they_correct",
    ),
    row(
        "AS OF warnings",
        f"{_ODF}::test_read_as_of_an_earlier_time_marks_rows_corrected_since",
        "mission/test_corrected_since.py::test_read_job_marks_the_rows_that_pages_mark",
        "mission/test_corrected_since.py::test_marks_follow_the_selected_columns_and_the_order",
        "mission/test_corrected_since.py::test_incremental_read_marks_the_rows_that_changed",
        "mission/test_corrected_since.py::test_waiting_read_keeps_the_changes_that_correct_its_rows",
        "mission/test_corrected_since.py::test_export_marks_the_rows_that_pages_mark",
        "mission/test_corrected_since.py::test_feed_without_corrections_is_refused",
        "mission/test_corrected_since.py::test_export_of_changes_has_no_marks",
    ),
    row(
        "custom vocabulary",
        f"{_ODF}::test_dataset_has_its_own_vocabulary",
        f"{_VOCABULARY}::test_feed_has_the_names_of_the_vocabulary_in_every_format",
        f"{_VOCABULARY}::test_standard_names_are_returned_on_request",
        f"{_VOCABULARY}::test_formats_of_other_systems_keep_their_names",
        f"{_VOCABULARY}::test_exports_have_the_names_of_the_vocabulary",
        f"{_VOCABULARY}::test_changes_of_the_vocabulary_are_written_in_every_format",
        f"{_VOCABULARY}::test_fault_of_a_change_has_the_names_that_were_sent",
        f"{_VOCABULARY}::test_vocabulary_is_changed",
        f"{_VOCABULARY}::test_started_message_keeps_its_names",
    ),
)

BEYOND = (
    row(
        "idempotent writes",
        "flows/test_servers_killed.py::test_write_accepted_by_a_killed_api_is_replayed_by_its_key",
    ),
    row(
        "the feed folds to the table",
        "features/verifications/handlers/test_verify.py::test_table_equals_its_feed_at_every_version",
    ),
    row(
        "conflicts name the winning commit",
        f"{_CONFLICTS}::test_conflict_of_two_writers_names_the_winning_commit",
        f"{_CONFLICTS}::test_conflict_of_an_expected_version_names_the_winning_commit",
        f"{_CONFLICTS}::test_conflict_of_a_save_mode_names_the_winning_commit",
        f"{_CONFLICTS}::test_conflict_of_a_transaction_names_the_winning_commit",
        f"{_CONFLICTS}::test_conflict_with_a_change_of_the_dataset_names_its_key",
        f"{_CONFLICTS}::test_write_that_wins_in_the_end_names_what_it_was_planned_again_after",
    ),
    row(
        "group commit of small writes",
        "flows/test_queued_writes.py::test_queued_writes_commit_as_one_version",
    ),
    row(
        "retention knows consumers",
        "features/retention/repository/test_retention.py::test_consumers_within_their_lag_bound_retain_their_changes",
        "features/retention/handlers/test_retention.py::test_expired_changes_are_gone_and_rows_stay",
    ),
    row(
        "quarantine with redrive",
        "flows/test_quarantine.py::test_bad_records_of_a_large_body_are_repaired_and_redriven",
    ),
    row(
        "feed across schema changes",
        "kernel/format/test_evolution_merge.py",
        "core/catalog/handlers/test_schema_changes.py",
    ),
    row(
        "webhooks from an outbox",
        "flows/test_webhooks.py::test_webhook_delivers_every_committed_change_once",
        "flows/test_webhooks.py::test_webhook_that_starts_with_the_table_goes_on_while_workers_are_killed",
        "features/webhooks/handlers/test_webhook_snapshots.py",
    ),
    row("Delta Sharing", "open/test_sharing.py"),
    row(
        "Iceberg snapshots",
        "features/iceberg/handlers/test_load_table.py",
        "features/iceberg/handlers/test_catalogue.py",
        "features/objects/test_objects.py",
        "open/test_grants.py",
        "open/test_hidden_values.py",
    ),
    row("S3-compatible storage", "cluster/test_stories.py", "infra/files/test_storage.py"),
    row("console in the browser", missing="the console is not built"),
    row(
        "command line",
        "clients/test_init.py",
        "clients/test_administration.py::test_commands_administer_tenants_and_keys",
    ),
    row(
        "commits to several datasets",
        f"{_OPERATIONS}::test_transaction_writes_several_datasets_atomically",
        "flows/test_transactions_killed.py::test_transaction_with_a_killed_worker_happens_once_in_every_dataset",
    ),
    row(
        "rows by key",
        "features/reads/service/test_lookup.py::test_every_key_has_its_row_at_every_version",
        "features/reads/handlers/test_rows.py::test_row_is_found_by_its_key_at_any_version",
    ),
    row(
        "the table, then its changes",
        "clients/test_client_reads.py::test_feed_starts_with_the_table",
        "core/consumers/handlers/test_consumers.py::test_consumer_starts_with_the_table_and_resumes_within_it",
    ),
)

GROUPS = {
    "service": SERVICE,
    "hudi": HUDI,
    "paimon": PAIMON,
    "open data fabric": OPEN_DATA_FABRIC,
    "beyond": BEYOND,
}


def every_test() -> list[str]:
    """The node ids of all rows, each once, in the order of the rows."""
    return list(
        dict.fromkeys(f"tests/{test}" for rows in GROUPS.values() for each in rows for test in each.tests)
    )
