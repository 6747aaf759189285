"""Guards of a write attempt: each state, and what a transition keeps of it."""

from __future__ import annotations

from typing import Final

from tests.mutants.guard import Guard

ATTEMPT_GUARDS: Final = (
    Guard(
        name="messages of an earlier schema are made again",
        module="app.features.writes.attempt",
        text=" and part.schema_id >= schema_id:",
        without=":",
        tests=(
            "tests.features.writes.service.test_plan_writes::test_messages_made_under_an_earlier_schema_are_made_again",
            "tests.features.writes.test_attempt::test_plan_is_based_on_the_head_or_on_the_version_of_valid_messages",
        ),
    ),
    Guard(
        name="input is read again under a schema that came in between",
        module="app.features.writes.attempt",
        text="if evolved is not None and evolved.schema.id <= schema_id:",
        without="if False:",
        tests=(
            "tests.features.writes.service.test_plan_writes::test_input_is_read_again_after_another_write_merged_the_same_schema",
            "tests.features.writes.test_attempt::test_plan_is_based_on_the_head_or_on_the_version_of_valid_messages",
            "tests.features.writes.service.test_run_writes::test_write_that_adds_an_already_added_column_is_read_again",
        ),
    ),
    Guard(
        name="a restore is planned where its rows were read",
        module="app.features.writes.attempt",
        text="version=decoded.restored.read_version",
        without="version=found.version",
        tests=(
            "tests.features.writes.service.test_plan_writes::test_restore_is_planned_at_the_version_that_its_rows_were_compared_with",
            "tests.features.writes.test_attempt::test_plan_is_based_on_the_head_or_on_the_version_of_valid_messages",
        ),
    ),
    Guard(
        name="a part is planned where its messages are valid",
        module="app.features.writes.attempt",
        text="version=part.version, messages",
        without="version=found.version, messages",
        tests=(
            "tests.features.writes.service.test_plan_writes::test_only_groups_without_a_message_are_planned_at_the_version_of_the_messages",
            "tests.features.writes.test_attempt::test_plan_is_based_on_the_head_or_on_the_version_of_valid_messages",
        ),
    ),
    Guard(
        name="a plan at an expired version starts over",
        module="app.features.writes.service.plan",
        text="return basis.decoded.from_the_head()",
        without="return part",
        tests=(
            "tests.features.writes.service.test_run_writes::test_write_whose_version_expires_before_it_is_merged_again_starts_over_at_the_head",
        ),
    ),
    Guard(
        name="a restore at an expired version is read again",
        module="app.features.writes.attempt",
        text="return self if self.restored is None else self.read_again()",
        without="return self",
        tests=(
            "tests.features.writes.test_attempt::test_only_a_restore_is_read_again_when_its_version_expires",
            "tests.features.writes.service.test_plan_writes::test_restore_whose_version_has_expired_is_read_again",
        ),
    ),
    Guard(
        name="a missing file of an expired version is not taken for damage",
        module="app.features.writes.service.run",
        text="with expired_if_missing(self.kept, group.tenant_id, [(part.dataset_id, part.plan.version)]):",
        without="if True:",
        tests=(
            "tests.features.writes.service.test_run_writes::test_write_that_finds_files_gone_with_their_version_starts_over_at_the_head",
        ),
    ),
    Guard(
        name="messages that were kept go into the commit",
        module="app.features.writes.attempt",
        text="{**self.messages, **{message.file_group: message for message in messages}}",
        without="{message.file_group: message for message in messages}",
        tests=(
            "tests.features.writes.test_attempt::test_messages_of_earlier_tasks_and_new_ones_are_merged",
            "tests.features.writes.service.test_run_writes::test_after_a_conflict_only_the_file_groups_that_changed_are_merged_again",
        ),
    ),
    Guard(
        name="a write whose keys are live is refused",
        module="app.features.writes.attempt",
        text="if failed:",
        without="if False:",
        tests=(
            "tests.features.writes.test_attempt::test_writes_whose_keys_are_live_are_refused",
            "tests.features.writes.service.test_run_writes::test_insert_of_a_live_key_fails_alone_and_names_the_key",
        ),
    ),
    Guard(
        name="every row is accounted for",
        module="app.features.writes.attempt",
        text="if counted != sent:",
        without="if False:",
        tests=("tests.features.writes.test_attempt::test_row_that_is_lost_or_doubled_is_never_committed",),
    ),
    Guard(
        name="a commit has the version that its write expects",
        module="app.features.writes.attempt",
        text="expected_version=next((version for version in expected if version is not None), None),",
        without="expected_version=None,",
        tests=(
            "tests.features.writes.test_attempt::test_expected_version_goes_into_the_commit",
            "tests.features.writes.service.test_run_writes::test_write_that_expects_another_version_fails_at_once",
        ),
    ),
    Guard(
        name="a commit moves the positions that its input reaches",
        module="app.features.writes.attempt",
        text="""\
            advances=self.decoded.advances,
""",
        tests=(
            "tests.features.writes.test_attempt::test_commit_moves_the_positions_that_its_input_reaches",
            "tests.features.writes.service.test_run_writes::test_refresh_that_always_conflicts_fails",
        ),
    ),
    Guard(
        name="a commit is checked against the scope that it has read",
        module="app.features.writes.attempt",
        text="""\
            scope=self.plan.read_scope,
""",
        tests=(
            "tests.features.writes.test_attempt::test_no_op_counts_its_rows_as_unchanged_and_leaves_the_schema",
        ),
    ),
    Guard(
        name="a conflict drops the messages of file groups that changed",
        module="app.features.writes.attempt",
        text="if group not in file_groups and not any(",
        without="if not any(",
        tests=(
            "tests.features.writes.test_attempt::test_conflict_sends_a_part_back_as_far_as_it_must_go",
            "tests.features.writes.service.test_run_writes::test_after_a_conflict_only_the_file_groups_that_changed_are_merged_again",
        ),
    ),
    Guard(
        name="a conflict drops the messages that share a changelog file with those of file groups that changed",
        module="app.features.writes.attempt",
        text=" and not any(file in void for file in message.changelog)",
        without="",
        tests=(
            "tests.features.writes.service.test_small_commits::test_after_a_conflict_the_groups_that_share_a_changelog_file_are_merged_again",
        ),
    ),
    Guard(
        name="a replan is at the head that it conflicted with",
        module="app.features.writes.attempt",
        text="version=head_version,",
        without="version=self.plan.version,",
        tests=(
            "tests.features.writes.test_attempt::test_conflict_sends_a_part_back_as_far_as_it_must_go",
            "tests.features.writes.service.test_run_writes::test_after_a_conflict_only_the_file_groups_that_changed_are_merged_again",
        ),
    ),
    Guard(
        name="a conflict in a scope has all of it read again",
        module="app.features.writes.attempt",
        text="if self.plan.read_scope is not None:",
        without="if False:",
        tests=("tests.features.writes.test_attempt::test_conflict_sends_a_part_back_as_far_as_it_must_go",),
    ),
    Guard(
        name="a restore that lost compares the table again",
        module="app.features.writes.attempt",
        text="""\
            return self.decoded.from_the_head()
""",
        without="""\
            return self.decoded
""",
        tests=(
            "tests.features.writes.test_attempt::test_conflict_sends_a_part_back_as_far_as_it_must_go",
            "tests.features.writes.service.test_run_writes::test_restore_that_loses_to_another_write_compares_the_table_again",
        ),
    ),
    Guard(
        name="a refresh that was overtaken derives its rows again",
        module="app.features.writes.attempt",
        text="back = part.decoded.read_again()",
        without="back = part.decoded",
        tests=(
            "tests.features.writes.test_attempt::test_refresh_that_was_overtaken_is_derived_again",
            "tests.features.writes.service.test_run_writes::test_refresh_overtaken_by_another_derives_its_rows_again",
        ),
    ),
    Guard(
        name="each lost race counts",
        module="app.features.writes.attempt",
        text="replace(self.moved(back), replans=self.replans + 1)",
        without="self.moved(back)",
        tests=(
            "tests.features.writes.test_attempt::test_refresh_that_was_overtaken_is_derived_again",
            "tests.features.writes.service.test_run_writes::test_write_that_conflicts_too_often_fails_and_names_the_other_commit",
        ),
    ),
    Guard(
        name="no group is claimed beside one that has lost several races",
        module="app.features.writes.service.run",
        text="if group.replans + 1 == _RACES_LOST_MAX:",
        without="if False:",
        tests=(
            "tests.features.writes.service.test_run_writes"
            "::test_write_that_lost_three_races_is_committed_before_any_other_is_claimed",
        ),
    ),
    Guard(
        name="a group that loses too often fails",
        module="app.features.writes.service.run",
        text="if group.replans == self.replans_max:",
        without="if False:",
        tests=(
            "tests.features.writes.service.test_run_writes::test_write_that_conflicts_too_often_fails_and_names_the_other_commit",
            "tests.features.writes.service.test_run_writes::test_refresh_that_always_conflicts_fails",
        ),
    ),
    Guard(
        name="a fenced group drops the writes whose claims are void",
        module="app.features.writes.attempt",
        text="else fence.held",
        without="else {job.id for job in self.jobs}",
        tests=(
            "tests.features.writes.test_attempt::test_fenced_group_continues_with_the_claims_that_are_held",
        ),
    ),
    Guard(
        name="a fenced transaction is published in no dataset",
        module="app.features.writes.attempt",
        text="set() if self.together else fence.held",
        without="fence.held",
        tests=(
            "tests.features.writes.service.test_run_writes::test_transaction_with_one_void_claim_is_published_in_no_dataset",
        ),
    ),
    Guard(
        name="a group that lost a write merges again",
        module="app.features.writes.attempt",
        text="return self.decoded.retained(held)",
        without="return (left := self.decoded.retained(held)) and replace(self, decoded=left)",
        tests=(
            "tests.features.writes.test_attempt::test_failed_write_does_not_stop_later_writes_of_its_dataset",
            "tests.features.writes.test_attempt::test_fenced_group_continues_with_the_claims_that_are_held",
            "tests.features.writes.service.test_run_writes::test_cancelled_write_is_left_out_and_the_others_are_committed",
        ),
    ),
    Guard(
        name="a write that is dropped takes its input along",
        module="app.features.writes.attempt",
        text="""\
 if made.job.id in held)
        return replace(self, inputs=inputs)""",
        without="""\
)
        return replace(self, inputs=inputs)""",
        tests=(
            "tests.features.writes.test_attempt::test_failed_write_does_not_stop_later_writes_of_its_dataset",
            "tests.features.writes.test_attempt::test_fenced_group_continues_with_the_claims_that_are_held",
        ),
    ),
    Guard(
        name="a write that is dropped before it is merged takes its input along",
        module="app.features.writes.attempt",
        text="""\
 if made.job.id in held)
        return _decoded_so_far""",
        without="""\
)
        return _decoded_so_far""",
        tests=(
            "tests.features.writes.test_attempt::test_claimed_part_continues_with_the_writes_that_are_held",
        ),
    ),
    Guard(
        name="a transaction that loses a write ends",
        module="app.features.writes.attempt",
        text="set() if self.together else {",
        without="{",
        tests=("tests.features.writes.test_attempt::test_transaction_fails_as_a_whole",),
    ),
    Guard(
        name="rounds put files under other names",
        module="app.features.writes.attempt",
        text="leader.epoch, self.round)",
        without="leader.epoch, 0)",
        tests=("tests.features.writes.test_attempt::test_attempts_at_a_write_name_their_files_differently",),
    ),
    Guard(
        name="epochs put files under other names",
        module="app.features.writes.attempt",
        text="leader.instant, leader.epoch,",
        without="leader.instant, 0,",
        tests=("tests.features.writes.test_attempt::test_attempts_at_a_write_name_their_files_differently",),
    ),
    Guard(
        name="a part that goes back begins a round",
        module="app.features.writes.attempt",
        text="round=self.round + back",
        without="round=self.round",
        tests=("tests.features.writes.test_attempt::test_round_grows_only_when_a_part_goes_back",),
    ),
    Guard(
        name="a group that lost a write begins a round",
        module="app.features.writes.attempt",
        text="round=self.round + 1",
        without="round=self.round",
        tests=(
            "tests.features.writes.test_attempt::test_group_without_one_of_its_writes_begins_another_round",
        ),
    ),
    Guard(
        name="jobs of a worker that fails go back",
        module="app.features.writes.service.run",
        text="""\
                self.jobs.release(group.tenant_id, group.claims)
""",
        tests=(
            "tests.features.writes.service.test_run_writes::test_unexpected_error_returns_the_writes_to_the_queue",
        ),
    ),
    Guard(
        name="an error that names a write fails that write",
        module="app.features.writes.service.run",
        text="affected = group.affected(error) or group.jobs",
        without="affected = group.jobs",
        tests=(
            "tests.features.writes.service.test_run_writes::test_write_whose_input_is_damaged_fails_and_the_others_run_again",
        ),
    ),
    Guard(
        name="the other writes of a group run again",
        module="app.features.writes.service.run",
        text="""\
        self.jobs.release(group.tenant_id, [job.claim for job in group.jobs if job not in affected])
""",
        tests=(
            "tests.features.writes.service.test_run_writes::test_write_whose_input_is_damaged_fails_and_the_others_run_again",
        ),
    ),
    Guard(
        name="input that cannot be read fails its write",
        module="app.features.writes.service.run",
        text="""\
            self._fail(job, error)
            return group.without(job)
""",
        without="""\
            raise
""",
        tests=(
            "tests.features.writes.service.test_run_writes::test_input_that_cannot_be_decoded_fails_its_write_alone",
        ),
    ),
)
