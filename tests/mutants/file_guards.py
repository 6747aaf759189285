"""Guards of files: they are durable, damage is found, and only files that nothing refers to are deleted."""

from __future__ import annotations

from typing import Final

from tests.mutants.guard import Guard

FILE_GUARDS: Final = (
    Guard(
        name="rows are written once as changes only if no other changes of the task come first",
        module="workers.engine.merge.task_report",
        text="            and not self._changelog.rows\n",
        tests=(
            "tests.conformance.test_written_once::test_changes_of_logs_stay_before_those_of_the_rows_that_replace_the_table",
        ),
    ),
    Guard(
        name="rows are written once as changes only if they are all rows of their files",
        module="workers.engine.merge.task_report",
        text="            and sink.is_empty\n",
        tests=(
            "tests.conformance.test_written_once::test_rows_beside_live_ones_are_written_once_where_these_are_not_rewritten",
        ),
    ),
    Guard(
        name="reaper queries what is unfinished before what is referenced",
        module="app.features.retention.service.reaper",
        text="""\
        busy_instants, busy_jobs, busy_claim = self.references.unfinished(tenant_id, dataset_id)
        kept = set() if gone else self.references.referenced(tenant_id, dataset_id, old)
""",
        without="""\
        kept = set() if gone else self.references.referenced(tenant_id, dataset_id, old)
        busy_instants, busy_jobs, busy_claim = self.references.unfinished(tenant_id, dataset_id)
""",
        tests=(
            "tests.features.retention.service.test_reap::test_reaper_keeps_files_that_are_published_between_its_two_queries",
        ),
    ),
    Guard(
        name="reaper keeps files of open instants",
        module="app.features.retention.service.reaper",
        text=" and instant_of(path) not in busy_instants",
        tests=(
            "tests.features.retention.service.test_reap::test_reaper_keeps_files_of_open_instants_however_old",
        ),
    ),
    Guard(
        name="reaper keeps files of unfinished jobs",
        module="app.features.retention.service.reaper",
        text=" and job_of(path) not in busy_jobs",
        tests=(
            "tests.features.retention.service.test_reap::test_reaper_keeps_files_of_unfinished_jobs_however_old",
        ),
    ),
    Guard(
        name="reaper keeps referenced files",
        module="app.features.retention.service.reaper",
        text="if path not in kept and ",
        without="if ",
        tests=("tests.features.retention.service.test_reap::test_reaper_deletes_what_nothing_refers_to",),
    ),
    Guard(
        name="reaper keeps young files",
        module="app.features.retention.service.reaper",
        text="if written < before and (",
        without="if (",
        tests=("tests.features.retention.service.test_reap::test_reaper_keeps_young_files",),
    ),
    Guard(
        name="reaper keeps markers of live datasets",
        module="app.features.retention.service.reaper",
        text=" and (gone or not is_marker(path))",
        tests=(
            "tests.features.retention.service.test_reap::test_reaper_leaves_markers_to_live_datasets_only",
        ),
    ),
    *(
        Guard(
            name=f"reaper queries {column}",
            module="app.features.retention.repository.references",
            text=f"    {column},\n",
            tests=(
                "tests.features.retention.repository.test_reap::test_reaper_keeps_files_that_a_column_refers_to",
            ),
        )
        for column in (
            "files.c.path",
            "files.c.vector_path",
            "files.c.index_path",
            "changelog_files.c.path",
            "replaced_changelog_files.c.path",
            "quarantine_files.c.path",
            "uploads.c.path",
            "export_files.c.path",
            "read_files.c.path",
            "timeline_archives.c.path",
        )
    ),
    Guard(
        name="reaper keeps merged changelog files of the claim that may list them",
        module="app.features.retention.service.reaper",
        text="            if busy_claim is None or maintenance_epoch_of(path) != busy_claim\n",
        tests=(
            "tests.features.retention.service.test_reap::test_reaper_keeps_merged_changelog_files_that_may_still_be_listed",
        ),
    ),
    Guard(
        name="replaced changelog files stay while a job may read them",
        module="app.features.retention.repository.references",
        text="                    ~reading.exists(),\n",
        tests=(
            "tests.features.maintenance.repository.test_changelog_merges::test_replaced_files_stay_for_jobs_that_began_before",
        ),
    ),
    Guard(
        name="replaced changelog files are listed until they expire",
        module="app.features.maintenance.repository.changelog_merges",
        text="                insert(replaced_changelog_files),\n                [",
        without="                insert(replaced_changelog_files),\n                [] and [",
        tests=(
            "tests.features.maintenance.repository.test_changelog_merges::test_replaced_files_stay_for_jobs_that_began_before",
        ),
    ),
    Guard(
        name="changelog files are merged under the claim of the dataset's maintenance",
        module="app.features.maintenance.repository.changelog_merges",
        text="            if not _is_held(connection, dataset_id, epoch):\n                return False\n",
        tests=(
            "tests.features.maintenance.repository.test_changelog_merges::"
            "test_merge_is_refused_without_the_claim_or_all_of_its_inputs",
        ),
    ),
    Guard(
        name="a merge lists nothing unless all of its inputs are there",
        module="app.features.maintenance.repository.changelog_merges",
        text="            if not _are_complete(segments, replaced):\n                return False\n",
        tests=(
            "tests.features.maintenance.repository.test_changelog_merges::"
            "test_merge_is_refused_without_the_claim_or_all_of_its_inputs",
        ),
    ),
    Guard(
        name="reaper queries the input of unfinished jobs",
        module="app.features.retention.repository.references",
        text="found.update(connection.execute(reading).scalars())",
        without="pass",
        tests=(
            "tests.features.retention.repository.test_reap::test_reaper_keeps_files_that_a_column_refers_to",
        ),
    ),
    Guard(
        name="files are synced",
        module="app.infra.files.storage",
        text="        os.fsync(descriptor)\n        _sync_folder(target.parent)\n",
        without="        _sync_folder(target.parent)\n",
        tests=(
            "tests.infra.files.test_durability::test_file_is_synced_with_all_its_bytes_and_then_its_folder",
        ),
    ),
    Guard(
        name="files that are synced together are synced",
        module="app.infra.files.storage",
        text="            os.fsync(descriptor)\n        for folder in",
        without="            pass\n        for folder in",
        tests=(
            "tests.infra.files.test_durability::"
            "test_files_that_are_synced_together_are_synced_on_leaving_and_their_folder_once",
        ),
    ),
    Guard(
        name="files of a merge are synced before it ends",
        module="app.infra.files.storage",
        text="            together.sync()\n",
        tests=("tests.infra.files.test_durability::test_files_of_a_merge_are_synced_before_it_ends",),
    ),
    Guard(
        name="files are flushed before they are synced",
        module="app.infra.files.storage",
        text="                    file.flush()\n",
        tests=(
            "tests.infra.files.test_durability::test_file_is_synced_with_all_its_bytes_and_then_its_folder",
        ),
    ),
    Guard(
        name="folders of new files are synced",
        module="app.infra.files.storage",
        text="_sync_folder(target.parent)",
        without="pass",
        tests=(
            "tests.infra.files.test_durability::test_file_is_synced_with_all_its_bytes_and_then_its_folder",
        ),
    ),
    Guard(
        name="folders of new folders are synced",
        module="app.infra.files.storage",
        text="        _sync_folder(folder.parent)\n",
        tests=("tests.infra.files.test_durability::test_new_folder_is_synced_into_its_parent",),
    ),
    Guard(
        name="folders made by another process are synced",
        module="app.infra.files.storage",
        text="exists and (folder in self._durable_folders or self.root not in folder.parents)",
        without="exists",
        tests=("tests.infra.files.test_durability::test_folder_made_by_another_process_is_synced_once",),
    ),
    Guard(
        name="unfinished files are removed",
        module="app.infra.files.storage",
        text="                    target.unlink(missing_ok=True)\n",
        tests=("tests.infra.files.test_durability::test_unfinished_file_is_removed_and_not_synced",),
    ),
    Guard(
        name="paths are written once",
        module="app.infra.files.storage",
        text='target.open("xb"',
        without='target.open("wb"',
        tests=("tests.infra.files.test_storage::test_path_is_written_once",),
    ),
    Guard(
        name="sizes of files are checked at each open",
        module="app.infra.files.checksums",
        text="if size != file.size_bytes:",
        without="if False:",
        tests=(
            "tests.infra.files.test_checksums::test_file_that_is_truncated_after_its_first_read_is_corrupt",
        ),
    ),
    Guard(
        name="checksums of files are checked",
        module="app.infra.files.checksums",
        text="if digest.hexdigest() != checksum:",
        without="if False:",
        tests=("tests.infra.files.test_checksums::test_file_with_other_bytes_is_corrupt",),
    ),
    Guard(
        name="deletion vectors are checked",
        module="app.infra.files.deletion_vector_file",
        text=" if _checksum(data) == vector.checksum else None",
        tests=("tests.infra.files.test_index_files::test_damaged_vector_is_refused_and_named",),
    ),
    Guard(
        name="deletion vectors have as many rows as recorded",
        module="app.infra.files.deletion_vector_file",
        text=" or len(deleted) != vector.cardinality",
        tests=("tests.infra.files.test_index_files::test_vector_with_another_cardinality_is_refused",),
    ),
    Guard(
        name="rows that were deleted before stay deleted",
        module="app.kernel.format.index.deletion_vector",
        text="return added if existing is None else existing | added",
        without="return added",
        tests=("tests.kernel.format.test_deletion_vector::test_union_contains_the_positions_of_both",),
    ),
    Guard(
        name="bytes behind a deletion vector are refused",
        module="app.kernel.format.index.deletion_vector",
        text=" or len(deleted.serialize()) != len(data)",
        tests=("tests.kernel.format.test_deletion_vector::test_bytes_after_a_bitmap_are_refused",),
    ),
    Guard(
        name="positions fit a deletion vector",
        module="app.kernel.format.index.deletion_vector",
        text="if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < POSITIONS_MAX:",
        without="if False:",
        tests=("tests.kernel.format.test_deletion_vector::test_positions_out_of_range_are_refused",),
    ),
)
