"""Guards of commits: planned, checked for conflicts, published, and found again when the answer is lost."""

from __future__ import annotations

from typing import Final

from tests.mutants.guard import Guard

COMMIT_GUARDS: Final = (
    Guard(
        name="a lost answer to COMMIT is looked up",
        module="app.timeline.service.publish",
        text="""\
            unknown = True
""",
        without="""\
            unknown = False
""",
        tests=(
            "tests.services.test_commit::test_commit_that_happened_although_its_answer_was_lost_is_published_once",
        ),
    ),
    Guard(
        name="a commit waits for the database",
        module="app.timeline.service.publish",
        text="""\
        except Unavailable:
""",
        without="""\
        except ZeroDivisionError:
""",
        tests=(
            "tests.services.test_commit::test_commit_that_was_not_sent_is_published_without_asking_for_its_outcome",
        ),
    ),
    Guard(
        name="messages of an earlier schema are made again",
        module="app.writes.service.plan",
        text="if part.plan is not None and part.plan.dataset.definition.schema.id < dataset.definition.schema.id:",
        without="if False:",
        tests=("tests.services.test_plan_writes::test_messages_made_under_an_earlier_schema_are_made_again",),
    ),
    Guard(
        name="input is read again under a schema that came in between",
        module="app.writes.service.plan",
        text="if part.evolved.schema.id <= dataset.definition.schema.id:",
        without="if False:",
        tests=(
            "tests.services.test_plan_writes::test_schema_that_another_write_brought_first_has_the_input_read_again",
        ),
    ),
    Guard(
        name="a restore is planned where its rows were read",
        module="app.writes.service.plan",
        text="""\
            version = part.restored.read_version
""",
        without="""\
            pass
""",
        tests=(
            "tests.services.test_plan_writes::test_restore_is_planned_where_its_rows_were_compared_with_the_table",
        ),
    ),
    Guard(
        name="a part is planned where its messages were read",
        module="app.writes.service.plan",
        text="dataset.version if part.read_version is None else part.read_version",
        without="dataset.version",
        tests=(
            "tests.services.test_plan_writes::test_groups_with_a_message_are_planned_no_more_and_the_others_where_these_were_read",
        ),
    ),
    Guard(
        name="a plan at an expired version starts over",
        module="app.writes.service.run",
        text="""\
                part.start_over()
                if part.restored is not None:
""",
        without="""\
                if part.restored is not None:
""",
        tests=(
            "tests.ports.test_run_writes::test_write_whose_version_expires_before_it_is_merged_again_starts_over_at_the_head",
        ),
    ),
    Guard(
        name="a missing file of an expired version is not taken for damage",
        module="app.writes.service.run",
        text="with telling_expired(self.kept, tenant_id, [(part.dataset_id, part.planned_at)]):",
        without="if True:",
        tests=(
            "tests.ports.test_run_writes::test_write_that_finds_files_gone_with_their_version_starts_over_at_the_head",
        ),
    ),
    Guard(
        name="a write that loses too often fails",
        module="app.writes.service.run",
        text="""\
                    if replans > self.replans_max:
""",
        without="""\
                    if False:
""",
        tests=("tests.ports.test_run_writes::test_write_that_loses_too_often_fails_and_names_the_winner",),
    ),
    Guard(
        name="a refresh that loses too often fails",
        module="app.writes.service.run",
        text='if replans > self.replans_max or not error.facts["retryable"]:',
        without='if not error.facts["retryable"]:',
        tests=("tests.ports.test_run_writes::test_refresh_that_always_comes_second_fails",),
    ),
    Guard(
        name="a conflict that stays one is not tried again",
        module="app.writes.service.run",
        text='if replans > self.replans_max or not error.facts["retryable"]:',
        without="if replans > self.replans_max:",
        tests=("tests.ports.test_run_writes::test_write_that_expects_another_version_fails_at_once",),
    ),
    Guard(
        name="a refresh that came second derives its rows again",
        module="app.writes.service.run",
        text="""\
            part.start_over()
            self._decode_part(tenant_id, group, part)
""",
        without="""\
            part.start_over()
""",
        tests=(
            "tests.ports.test_run_writes::test_refresh_whose_changes_another_took_in_first_derives_its_rows_again",
        ),
    ),
    Guard(
        name="a restore that lost compares the table again",
        module="app.writes.service.run",
        text="""\
                        if part.restored is not None:
                            # What""",
        without="""\
                        if False:
                            # What""",
        tests=(
            "tests.ports.test_run_writes::test_restore_that_loses_to_another_write_compares_the_table_again",
        ),
    ),
    Guard(
        name="jobs of a worker that fails go back",
        module="app.writes.service.run",
        text="""\
            self.jobs.release(tenant_id, group.claims())
""",
        tests=("tests.ports.test_run_writes::test_worker_that_fails_in_an_unknown_way_puts_its_writes_back",),
    ),
    Guard(
        name="an error that names a write fails that write",
        module="app.writes.service.run",
        text="for job in guilty or group.jobs:",
        without="for job in group.jobs:",
        tests=(
            "tests.ports.test_run_writes::test_write_whose_input_is_damaged_fails_and_the_others_run_again",
        ),
    ),
    Guard(
        name="input that cannot be read fails its write",
        module="app.writes.service.run",
        text="""\
                self._fail(tenant_id, job, error)
                group.drop(job)
""",
        without="""\
                raise
""",
        tests=("tests.ports.test_run_writes::test_input_that_cannot_be_decoded_fails_its_write_alone",),
    ),
    Guard(
        name="every row is accounted for",
        module="app.writes.service.group",
        text="if counted != sent:",
        without="if False:",
        tests=(
            "tests.writes.service.test_write_group::test_a_row_that_is_lost_or_doubled_is_never_committed",
        ),
    ),
    Guard(
        name="rounds put files under other names",
        module="app.writes.service.group",
        text="leader.epoch, self.rounds)",
        without="leader.epoch, 0)",
        tests=(
            "tests.writes.service.test_write_group::test_no_two_attempts_at_a_write_put_files_under_one_name",
        ),
    ),
    Guard(
        name="a conflict in a scope has all of it read again",
        module="app.writes.service.group",
        text="if self.plan is not None and self.plan.read_scope is not None:",
        without="if False:",
        tests=(
            "tests.writes.service.test_write_group::test_after_a_conflict_in_its_scope_all_is_read_again",
        ),
    ),
    Guard(
        name="a group that lost a write merges again",
        module="app.writes.service.group",
        text="""\
            part.start_over()
        self.parts""",
        without="        self.parts",
        tests=(
            "tests.writes.service.test_write_group::test_the_writes_of_a_dataset_go_on_without_one_that_failed",
        ),
    ),
    Guard(
        name="a void claim fences its group",
        module="app.timeline.repository.publish",
        text="if len(held) < len(claims):",
        without="if False:",
        tests=("tests.timeline.repository.test_timeline_store::test_one_void_claim_fences_the_whole_group",),
    ),
    Guard(
        name="an expected version is checked",
        module="app.timeline.repository.publish",
        text="""\
        check_version(commit.dataset_id, commit.expected_version, head.version)
""",
        tests=(
            "tests.timeline.repository.test_scoped_commits::test_a_write_that_expects_another_version_is_refused_whatever_it_changes",
        ),
    ),
    Guard(
        name="a plan under an earlier schema conflicts",
        module="app.timeline.repository.publish",
        text="""\
            outdated_plan(connection, commit, head.version)
            or forgotten_window(""",
        without="            forgotten_window(",
        tests=("tests.catalog.repository.test_schemas::test_a_plan_under_an_earlier_schema_is_made_again",),
    ),
    Guard(
        name="a plan before the beginning of the history conflicts",
        module="app.timeline.repository.publish",
        text="""\
            or forgotten_window(connection, commit, head.version, head.earliest_version)
""",
        tests=(
            "tests.retention.repository.test_history::test_a_write_that_was_planned_before_sees_its_conflict_after",
        ),
    ),
    Guard(
        name="a file that may be gone is not listed again",
        module="app.timeline.repository.publish",
        text="""\
            or forgotten_files(connection, commit, head.version)
""",
        tests=("tests.versions.repository.test_savepoints::test_restore_lists_no_file_that_was_forgotten",),
    ),
    Guard(
        name="commits of a dataset are serial",
        module="app.timeline.repository.publish",
        text="""\
        .with_for_update(of=heads)
""",
        tests=(
            "tests.timeline.repository.test_concurrent_commits::test_offsets_are_dense_under_concurrent_publishers",
        ),
    ),
    Guard(
        name="heads are locked in one order",
        module="app.timeline.repository.publish",
        text="""\
        .order_by(heads.c.dataset_id)
""",
        tests=("tests.ports.test_locks::test_heads_are_locked_in_the_order_of_their_ids_whatever_the_plan",),
    ),
    Guard(
        name="a file is removed once",
        module="app.timeline.repository.publish",
        text="""\
            files.c.removed_version.is_(None),
""",
        tests=("tests.timeline.repository.test_timeline_store::test_a_file_is_removed_once",),
    ),
    Guard(
        name="removed files are those that are live",
        module="app.timeline.repository.publish",
        text="if len(removed) != len(paths):",
        without="if False:",
        tests=(
            "tests.timeline.repository.test_timeline_store::test_a_plan_that_does_not_fit_the_table_changes_nothing",
        ),
    ),
    Guard(
        name="a message writes files of its own group",
        module="app.timeline.repository.publish",
        text="if written - {message.file_group}:",
        without="if False:",
        tests=(
            "tests.timeline.repository.test_timeline_store::test_a_plan_that_does_not_fit_the_table_changes_nothing",
        ),
    ),
    Guard(
        name="a commit completes the instants of its jobs",
        module="app.timeline.repository.publish",
        text="if completed.rowcount != len(outcomes):",
        without="if False:",
        tests=("tests.ports.test_consistency::test_commit_of_a_job_without_an_instant_is_refused",),
    ),
    Guard(
        name="a refresh takes changes in where its view stands",
        module="app.timeline.repository.publish",
        text="if not move_follower(connection, each.dataset_id, each.name, each.since, each.next_since):",
        without="if move_follower(connection, each.dataset_id, each.name, each.since, each.next_since) is None:",
        tests=("tests.ports.test_consistency::test_commit_whose_input_another_has_taken_in_is_refused",),
    ),
    Guard(
        name="a follower moves from where it is",
        module="app.consumers.repository.followers",
        text=", consumers.c.position == since)",
        without=")",
        tests=("tests.consumers.repository.test_followers::test_a_position_moves_from_where_it_is",),
    ),
    Guard(
        name="looking an outcome up waits for the commit",
        module="app.timeline.repository.timeline",
        text="""\
                .with_for_update()
            )
            found = [""",
        without="""\
            )
            found = [""",
        tests=(
            "tests.timeline.repository.test_broken_connections::test_looking_up_waits_for_a_commit_that_is_still_under_way",
        ),
    ),
    Guard(
        name="an outcome is that of all commits",
        module="app.timeline.repository.timeline",
        text="return known if len(known) == len(found) else None",
        without="return known or None",
        tests=(
            "tests.ports.test_consistency::test_outcome_of_commits_is_unknown_unless_all_of_them_were_published",
        ),
    ),
    Guard(
        name="commit times increase",
        module="app.catalog.repository.head",
        text="func.greatest(now, heads.c.committed_at + timedelta(milliseconds=1))",
        without="now",
        tests=(
            "tests.timeline.repository.test_timeline_store::test_commit_times_increase_though_the_clock_goes_backwards",
        ),
    ),
    Guard(
        name="a plan from the future is refused",
        module="app.timeline.repository.conflict_window",
        text="if head_version < commit.read_version:",
        without="if False:",
        tests=("tests.timeline.repository.test_timeline_store::test_a_plan_from_the_future_is_refused",),
    ),
    Guard(
        name="a group that changed is a conflict",
        module="app.commit.conflict",
        text="if not hits:",
        without="if True:",
        tests=(
            "tests.commit.test_conflict::test_interleaving",
            "tests.timeline.repository.test_timeline_store::test_a_group_that_changed_since_it_was_read_conflicts",
        ),
    ),
    Guard(
        name="a change in the scope is a conflict",
        module="app.commit.conflict",
        text=" or _within(change, scope)",
        tests=(
            "tests.timeline.repository.test_scoped_commits::test_any_later_change_in_the_scope_conflicts",
        ),
    ),
    Guard(
        name="a file that is gone is a conflict of who replaces it",
        module="app.commit.conflict",
        text="return self.files.get(change.path) if change.removed else None",
        without="return None",
        tests=("tests.commit.test_conflict::test_what_a_result_rests_on_decides_what_it_conflicts_with",),
    ),
)
