"""Guards of jobs: each is accepted once, claimed by one worker and ended by that worker."""

from __future__ import annotations

from typing import Final

from tests.mutants.guard import Guard

JOB_GUARDS: Final = (
    Guard(
        name="a claim is of a running job",
        module="app.core.jobs.repository.job_locks",
        text="jobs.c.epoch == claimed, RUNNING)",
        without="jobs.c.epoch == claimed)",
        tests=(
            "tests.core.jobs.repository.test_held_claims::test_claim_of_a_job_that_runs_no_longer_is_void",
        ),
    ),
    Guard(
        name="a claim is of one epoch",
        module="app.core.jobs.repository.job_locks",
        text="jobs.c.id == any_(ids), jobs.c.epoch == claimed,",
        without="jobs.c.id == any_(ids),",
        tests=(
            "tests.core.jobs.repository.test_held_claims::test_worker_with_a_superseded_claim_changes_nothing",
        ),
    ),
    Guard(
        name="each claim raises the epoch",
        module="app.core.jobs.repository.held_jobs",
        text="""\
        epoch=jobs.c.epoch + 1,
""",
        tests=(
            "tests.core.jobs.repository.test_held_claims::test_worker_with_a_superseded_claim_changes_nothing",
        ),
    ),
    Guard(
        name="no write overtakes a postponed one",
        module="app.core.jobs.repository.claim",
        text="if found.postponed:",
        without="if False:",
        tests=("tests.features.writes.service.test_run_writes::test_writes_outlive_any_number_of_outages",),
    ),
    Guard(
        name="an outage is no attempt",
        module="app.core.jobs.repository.held_jobs",
        text="jobs.c.attempts - jobs.c.outages >=",
        without="jobs.c.attempts >=",
        tests=("tests.features.writes.service.test_run_writes::test_writes_outlive_any_number_of_outages",),
    ),
    Guard(
        name="a folder on a disk that is away is not made again",
        module="app.infra.files.storage",
        text="""\
        if folder == self.root:
            raise _away(str(folder))
""",
        tests=(
            "tests.infra.files.test_storage::test_folder_of_a_new_installation_is_made_once_and_its_absence_is_an_outage",
        ),
    ),
    Guard(
        name="a group contains no write of a transaction",
        module="app.core.jobs.repository.claim",
        text="if row.transaction_id is not None and not group:",
        without="if False:",
        tests=(
            "tests.features.transactions.repository.test_transactions"
            "::test_transaction_accepted_during_a_claim_is_claimed_whole",
        ),
    ),
    Guard(
        name="running jobs of a tenant are bounded",
        module="app.core.jobs.repository.claim",
        text="""\
    if not may_run_another(connection, quotas_of(found.quotas)):
        return []
""",
        tests=("tests.access.tenants.repository.test_quotas::test_jobs_beyond_the_running_ones_wait",),
    ),
    Guard(
        name="queued jobs of a tenant are bounded",
        module="app.core.jobs.repository.accept",
        text="""\
    check_job_quotas(connection, quotas_of(stored_quotas), new)
""",
        tests=(
            "tests.access.tenants.repository.test_quotas::test_queue_takes_the_jobs_of_the_quota_and_replays_beyond_it",
        ),
    ),
    Guard(
        name="creators of a limited tenant are counted one after another",
        module="app.access.tenants.repository.quotas",
        text="""\
    lock_quota(connection, name)
    count =""",
        without="    count =",
        tests=(
            "tests.access.tenants.repository.test_quotas::test_concurrent_creators_of_datasets_never_exceed_the_quota",
        ),
    ),
    Guard(
        name="groups of a dataset are bounded",
        module="app.core.jobs.repository.claim",
        text="if found.groups >= rules.dataset_writers_max:",
        without="if False:",
        tests=("tests.core.jobs.repository.test_claims::test_groups_with_live_leases_are_bounded",),
    ),
    Guard(
        name="no group is claimed beside a contended one",
        module="app.core.jobs.repository.claim",
        text="found.slot_requested or (found.groups and _is_running(connection, wanted, jobs.c.contended))",
        without="found.slot_requested",
        tests=("tests.core.jobs.repository.test_claims::test_beside_a_contended_group_no_other_is_claimed",),
    ),
    Guard(
        name="a refresh is left to its own threads",
        module="app.core.jobs.repository.claim",
        text=" or (rules.process is not None and _process(found) is not rules.process):",
        without=":",
        tests=(
            "tests.core.jobs.repository.test_claims::test_write_of_another_kind_is_not_claimed_and_not_overtaken",
        ),
    ),
    Guard(
        name="a job kills two processes at most",
        module="app.core.jobs.repository.held_jobs",
        text=" if row.deaths >= DEATHS_MAX]",
        without=" if False]",
        tests=(
            "tests.core.jobs.repository.test_dead_workers"
            "::test_job_whose_process_is_killed_runs_again_isolated_and_fails_at_the_second_death",
        ),
    ),
    Guard(
        name="a job that goes alone is not joined to others",
        module="app.core.jobs.repository.claim",
        text="""\
        if row.alone and group:
            break
""",
        tests=("tests.core.timeline.repository.test_scoped_commits::test_exclusive_write_shares_no_group",),
    ),
    Guard(
        name="the rows that are kept with the jobs of a group are bounded",
        module="app.core.jobs.repository.claim",
        text=" and kept_bytes > _KEPT_BYTES_MAX",
        without=" and False",
        tests=(
            "tests.core.jobs.repository.test_claims::test_rows_that_are_kept_with_the_jobs_of_a_group_are_bounded",
        ),
    ),
    Guard(
        name="rows of a small write are cleared when its job ends",
        module="app.core.jobs.repository.job_locks",
        text='{**NO_LEASE, "staged_rows": None}',
        without="{**NO_LEASE}",
        tests=(
            "tests.core.jobs.repository.test_claims::test_rows_of_a_small_write_are_kept_for_claims_until_it_ends",
        ),
    ),
    Guard(
        name="others are not joined to a job that goes alone",
        module="app.core.jobs.repository.claim",
        text="""\
        if row.alone:
            break
""",
        tests=("tests.core.timeline.repository.test_scoped_commits::test_exclusive_write_shares_no_group",),
    ),
    Guard(
        name="attempts are bounded",
        module="app.core.jobs.repository.claim",
        text="""\
    if found.exhausted:
        _give_up(connection, wanted, rules.attempts_max, participants)
        return None
""",
        tests=(
            "tests.core.jobs.repository.test_claims::test_job_out_of_attempts_fails_and_the_next_is_claimed",
        ),
    ),
    Guard(
        name="a transaction waits for every group that runs",
        module="app.core.jobs.repository.claim",
        text="""\
    if _is_running(connection, dataset_ids):
        return []
""",
        tests=(
            "tests.features.transactions.repository.test_transactions::test_transaction_shares_no_commit_and_waits_for_every_running_group",
        ),
    ),
    Guard(
        name="a transaction waits for what came before",
        module="app.core.jobs.repository.claim",
        text="""\
    if any(each is None or each.transaction_id != transaction_id for each in following):
        return []
""",
        tests=(
            "tests.features.transactions.repository.test_transactions::test_transaction_waits_for_earlier_jobs_in_any_of_its_datasets",
        ),
    ),
    Guard(
        name="writes of a transaction end together",
        module="app.core.jobs.repository.job_locks",
        text="or_(and_(*conditions), jobs.c.transaction_id.in_(transactions))",
        without="and_(*conditions)",
        tests=(
            "tests.features.transactions.repository.test_transactions::test_cancelled_job_cancels_its_transaction_and_notifies_its_datasets",
        ),
    ),
    Guard(
        name="writes wait while a table service publishes",
        module="app.core.jobs.repository.claim",
        text="found.slot_requested or (",
        without="(",
        tests=(
            "tests.core.jobs.repository.test_commit_slots::test_commit_slot_waits_for_running_writes_and_blocks_new_claims",
        ),
    ),
    Guard(
        name="a table service waits for writes that run",
        module="app.core.timeline.repository.publish_in_slot",
        text="""\
    if groups:
""",
        without="""\
    if False:
""",
        tests=(
            "tests.core.jobs.repository.test_commit_slots::test_commit_slot_waits_for_running_writes_and_blocks_new_claims",
        ),
    ),
    Guard(
        name="a table service that is not held does not publish",
        module="app.core.timeline.repository.publish_in_slot",
        text="if len(held) < len(claims):",
        without="if False:",
        tests=(
            "tests.core.jobs.repository.test_commit_slots::test_fenced_service_neither_publishes_nor_blocks_writes",
        ),
    ),
    Guard(
        name="batches of a stream are taken one after another",
        module="app.core.jobs.repository.writer_batches",
        text="""\
        connection.execute(_LOCK, {"stream": " ".join(stream)})
""",
        tests=(
            "tests.core.timeline.repository.test_locks::test_batch_that_another_request_is_about_to_take_is_answered_with_its_job",
            "tests.core.timeline.repository.test_locks::test_batch_below_one_that_another_request_is_about_to_take_is_out_of_order",
        ),
    ),
    Guard(
        name="batches are numbered upwards",
        module="app.core.jobs.repository.writer_batches",
        text="if last is not None and batch_id < last:",
        without="if False:",
        tests=(
            "tests.core.jobs.repository.test_writer_batches::test_lower_unknown_batch_number_is_out_of_order",
        ),
    ),
    Guard(
        name="a known batch gives its job",
        module="app.core.jobs.repository.writer_batches",
        text="if batch_id in owners and batch_id not in free:",
        without="if False:",
        tests=("tests.core.jobs.repository.test_writer_batches::test_known_batch_returns_its_first_job",),
    ),
    Guard(
        name="an idempotency key is reserved once",
        module="app.core.jobs.repository.accept",
        text=".on_conflict_do_nothing()",
        tests=("tests.core.jobs.repository.test_jobs::test_known_idempotency_key_replays_its_job",),
    ),
    Guard(
        name="an idempotency key is of one request",
        module="app.core.jobs.repository.replays",
        text="if row.request_hash != request_hash:",
        without="if False:",
        tests=(
            "tests.core.jobs.repository.test_jobs::test_known_idempotency_key_with_another_request_is_refused",
        ),
    ),
    Guard(
        name="a failure of the service frees the key",
        module="app.core.jobs.repository.replays",
        text="return None if failed_by_service(job.state, job.error) else job",
        without="return job",
        tests=("tests.core.jobs.repository.test_jobs::test_failure_caused_by_the_service_frees_the_key",),
    ),
    Guard(
        name="a dataset that is gone accepts nothing",
        module="app.core.jobs.repository.accept",
        text="""\
        if each.dataset_id in live
        and each.id""",
        without="        if each.id",
        tests=("tests.core.jobs.repository.test_jobs::test_unknown_dataset_accepts_no_job",),
    ),
    Guard(
        name="a tenant ends with its transaction",
        module="app.infra.db.session",
        text="set_config('headwater.tenant_id', {value}, true)",
        without="set_config('headwater.tenant_id', {value}, false)",
        tests=(
            "tests.access.tenants.repository.test_row_security::test_tenant_setting_ends_with_its_transaction",
        ),
    ),
    Guard(
        name="a connection that breaks at COMMIT leaves doubt",
        module="app.infra.db.session",
        text="""\
        if error.connection_invalidated:
            raise CommitInDoubt""",
        without="""\
        if False:
            raise CommitInDoubt""",
        tests=(
            "tests.core.timeline.repository.test_broken_connections::test_commit_with_a_lost_response_is_found",
        ),
    ),
    Guard(
        name="a dead connection of the pool is replaced",
        module="app.infra.db.session",
        text="""\
            if not error.connection_invalidated:
                raise
""",
        without="""\
            raise
""",
        tests=(
            "tests.core.timeline.repository.test_broken_connections::test_dead_pooled_connections_are_replaced",
        ),
    ),
)
