"""Guards of commits: planned, checked for conflicts, published, and found again when the answer is lost."""

from __future__ import annotations

from typing import Final

from tests.mutants.guard import Guard

COMMIT_GUARDS: Final = (
    Guard(
        name="a lost answer to COMMIT is looked up",
        module="app.core.timeline.service.publish",
        text="""\
            unknown = True
""",
        without="""\
            unknown = False
""",
        tests=(
            "tests.core.timeline.service.test_publish::test_commit_with_a_lost_response_is_published_once",
        ),
    ),
    Guard(
        name="a commit waits for the database",
        module="app.core.timeline.service.publish",
        text="""\
        except Unavailable:
""",
        without="""\
        except ZeroDivisionError:
""",
        tests=(
            "tests.core.timeline.service.test_publish::test_commit_that_was_not_sent_is_published_without_asking_for_its_outcome",
        ),
    ),
    Guard(
        name="a void claim fences its group",
        module="app.core.timeline.repository.publish",
        text="if len(held) < len(claims):",
        without="if False:",
        tests=(
            "tests.core.timeline.repository.test_timeline_store::test_one_void_claim_fences_the_whole_group",
        ),
    ),
    Guard(
        name="an expected version is checked",
        module="app.core.timeline.repository.publish",
        text="""\
        check_version(commit.dataset_id, commit.expected_version, head.version)
""",
        tests=(
            "tests.core.timeline.repository.test_scoped_commits::test_write_with_another_expected_version_is_refused",
        ),
    ),
    Guard(
        name="a plan under an earlier schema conflicts",
        module="app.core.timeline.repository.publish",
        text="""\
            outdated_plan(connection, commit, head.version)
            or expired_window(""",
        without="            expired_window(",
        tests=(
            "tests.core.catalog.repository.test_schemas::test_commit_planned_under_an_earlier_schema_conflicts",
        ),
    ),
    Guard(
        name="a plan before the beginning of the history conflicts",
        module="app.core.timeline.repository.publish",
        text="""\
            or expired_window(connection, commit, head.version, head.earliest_version)
""",
        tests=(
            "tests.features.retention.repository.test_history::test_write_planned_before_an_expiry_still_conflicts",
        ),
    ),
    Guard(
        name="a file that may be gone is not listed again",
        module="app.core.timeline.repository.publish",
        text="""\
            or expired_files(connection, commit, head.version)
""",
        tests=(
            "tests.features.versions.repository.test_savepoints::test_restore_of_a_purged_file_conflicts",
        ),
    ),
    Guard(
        name="rows are compared with the watermark of the version before",
        module="app.core.timeline.repository.publish",
        text="""\
            or other_watermark(connection, commit, head.version, head.watermark)
""",
        tests=(
            "tests.core.timeline.repository.test_watermarks::"
            "test_rows_that_were_compared_with_an_earlier_watermark_are_planned_again",
        ),
    ),
    Guard(
        name="commits of a dataset are serial",
        module="app.core.timeline.repository.publish",
        text="""\
    .with_for_update()
""",
        tests=(
            "tests.core.timeline.repository.test_concurrent_commits::test_offsets_are_dense_under_concurrent_publishers",
        ),
    ),
    Guard(
        name="heads are locked in one order",
        module="app.core.timeline.repository.publish",
        text="""\
    .order_by(heads.c.dataset_id)
""",
        tests=(
            "tests.core.timeline.repository.test_locks::test_heads_are_locked_in_the_order_of_their_ids_whatever_the_plan",
        ),
    ),
    Guard(
        name="a file is removed once",
        module="app.core.timeline.repository.publish",
        text="""\
        files.c.removed_version.is_(None),
""",
        tests=("tests.core.timeline.repository.test_timeline_store::test_file_is_removed_once",),
    ),
    Guard(
        name="removed files are those that are live",
        module="app.core.timeline.repository.publish",
        text="if len(removed) != len(paths):",
        without="if False:",
        tests=(
            "tests.core.timeline.repository.test_timeline_store::test_inconsistent_commit_changes_nothing",
        ),
    ),
    Guard(
        name="a message writes files of its own group",
        module="app.core.timeline.repository.publish",
        text="if written - {message.file_group}:",
        without="if False:",
        tests=(
            "tests.core.timeline.repository.test_timeline_store::test_inconsistent_commit_changes_nothing",
        ),
    ),
    Guard(
        name="a commit completes the instants of its jobs",
        module="app.core.timeline.repository.publish",
        text="if completed.rowcount != len(outcomes):",
        without="if False:",
        tests=(
            "tests.core.timeline.repository.test_consistency::test_commit_of_a_job_without_an_instant_is_refused",
        ),
    ),
    Guard(
        name="a refresh takes changes in where its view stands",
        module="app.core.consumers.repository.participant",
        text="if not move_follower(connection, each.dataset_id, each.name, each.since, each.next_since):",
        without="if move_follower(connection, each.dataset_id, each.name, each.since, each.next_since) is None:",
        tests=(
            "tests.core.timeline.repository.test_consistency::test_commit_of_already_processed_input_is_refused",
        ),
    ),
    Guard(
        name="a commit that was overtaken is not published",
        module="app.core.timeline.repository.publish",
        text="if overtaken is not None:",
        without="if False:",
        tests=(
            "tests.core.timeline.repository.test_consistency::test_commit_of_already_processed_input_is_refused",
        ),
    ),
    Guard(
        name="a commit that is refused changes nothing",
        module="app.core.timeline.repository.timeline",
        text="""\
                if not isinstance(result, tuple):
                    connection.rollback()
""",
        tests=(
            "tests.core.timeline.repository.test_consistency::test_commit_that_is_overtaken_moves_no_position",
        ),
    ),
    Guard(
        name="a follower moves from where it is",
        module="app.core.consumers.repository.followers",
        text=", is_at(before))",
        without=")",
        tests=(
            "tests.core.consumers.repository.test_followers::test_follower_moves_only_from_its_current_position",
        ),
    ),
    Guard(
        name="looking an outcome up waits for the commit",
        module="app.core.timeline.repository.timeline",
        text="""\
                .with_for_update()
            )
            found = [""",
        without="""\
            )
            found = [""",
        tests=(
            "tests.core.timeline.repository.test_broken_connections::test_outcome_lookup_waits_for_a_running_commit",
        ),
    ),
    Guard(
        name="an outcome is that of all commits",
        module="app.core.timeline.repository.timeline",
        text="return known if len(known) == len(found) else None",
        without="return known or None",
        tests=(
            "tests.core.timeline.repository.test_consistency::test_outcome_of_commits_is_unknown_unless_all_of_them_were_published",
        ),
    ),
    Guard(
        name="commit times increase",
        module="app.core.catalog.repository.head",
        text="func.greatest(_NOW, heads.c.committed_at + timedelta(milliseconds=1))",
        without="_NOW",
        tests=(
            "tests.core.timeline.repository.test_timeline_store::test_commit_times_increase_when_the_clock_goes_backwards",
        ),
    ),
    Guard(
        name="a plan from the future is refused",
        module="app.core.timeline.repository.conflict_window",
        text="if head_version < commit.read_version:",
        without="if False:",
        tests=(
            "tests.core.timeline.repository.test_timeline_store::test_commit_planned_at_a_future_version_is_refused",
        ),
    ),
    Guard(
        name="a group that changed is a conflict",
        module="app.kernel.commit.conflict",
        text="if not hits:",
        without="if True:",
        tests=(
            "tests.kernel.commit.test_conflict::test_commit_conflicts_with_changes_of_its_file_groups",
            "tests.core.timeline.repository.test_timeline_store::test_group_changed_since_it_was_read_conflicts",
        ),
    ),
    Guard(
        name="a change in the scope is a conflict",
        module="app.kernel.commit.conflict",
        text=" or _within(change, scope)",
        tests=(
            "tests.core.timeline.repository.test_scoped_commits::test_later_change_in_the_scope_conflicts",
        ),
    ),
    Guard(
        name="a file that is gone is a conflict of who replaces it",
        module="app.kernel.commit.conflict",
        text="if change.removed and change.path in self.files:",
        without="if False:",
        tests=("tests.kernel.commit.test_conflict::test_reads_of_a_commit_decide_its_conflicts",),
    ),
    Guard(
        name="a bucket that was halved is a conflict of every plan of its former size",
        module="app.kernel.commit.conflict",
        text="if other != slot and overlap(other, slot)",
        without="if False",
        tests=(
            "tests.conformance.test_halved_buckets::test_writes_planned_before_a_bucket_is_halved_are_planned_again",
        ),
    ),
    Guard(
        name="all parts of a bucket that is halved are written",
        module="workers.engine.merge.file_rewrite",
        text="if not (report.changed or files.pending or task.compact or task.divides):",
        without="if not (report.changed or files.pending or task.compact):",
        tests=("tests.conformance.test_halved_buckets::test_part_without_rows_of_the_write_keeps_its_rows",),
    ),
    Guard(
        name="a bucket that is merged already is not planned again under another size",
        module="app.kernel.commit.write_plan",
        text="work = _by_half(dataset, writes, intents, files, scope, {*done, *beside})",
        without="work = _by_half(dataset, writes, intents, files, scope, {*beside})",
        tests=("tests.kernel.commit.test_write_plan::test_merged_buckets_are_taken_in_a_plan_of_the_others",),
    ),
)
