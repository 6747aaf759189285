"""Guards of jobs: each is accepted once, claimed by one worker and ended by that worker."""

from __future__ import annotations

from typing import Final

from tests.mutants.guard import Guard

JOB_GUARDS: Final = (
    Guard(
        name="a claim is of a running job",
        module="app.jobs.repository.claim",
        text=".in_(pairs), _RUNNING)",
        without=".in_(pairs))",
        tests=("tests.jobs.repository.test_held_claims::test_claim_of_a_job_that_runs_no_longer_is_void",),
    ),
    Guard(
        name="a claim is of one epoch",
        module="app.jobs.repository.claim",
        text="tuple_(jobs.c.id, jobs.c.epoch).in_(pairs)",
        without="jobs.c.id.in_([job_id for job_id, _ in pairs])",
        tests=(
            "tests.jobs.repository.test_held_claims::test_worker_whose_job_another_has_claimed_since_changes_nothing",
        ),
    ),
    Guard(
        name="each claim raises the epoch",
        module="app.jobs.repository.claim",
        text="""\
            epoch=jobs.c.epoch + 1,
""",
        tests=(
            "tests.jobs.repository.test_held_claims::test_worker_whose_job_another_has_claimed_since_changes_nothing",
        ),
    ),
    Guard(
        name="groups of a dataset are bounded",
        module="app.jobs.repository.claim",
        text="if _live_groups(connection, [dataset_id]) >= rules.dataset_writers_max:",
        without="if False:",
        tests=("tests.jobs.repository.test_claims::test_groups_with_live_leases_are_bounded",),
    ),
    Guard(
        name="a job that goes alone is not joined to others",
        module="app.jobs.repository.claim",
        text="""\
        if row.alone and group:
            break
""",
        tests=(
            "tests.timeline.repository.test_scoped_commits::test_a_write_that_goes_alone_shares_no_group",
        ),
    ),
    Guard(
        name="others are not joined to a job that goes alone",
        module="app.jobs.repository.claim",
        text="""\
        if row.alone:
            break
""",
        tests=(
            "tests.timeline.repository.test_scoped_commits::test_a_write_that_goes_alone_shares_no_group",
        ),
    ),
    Guard(
        name="attempts are bounded",
        module="app.jobs.repository.claim",
        text="""\
    _give_up(connection, wanted, rules.attempts_max, participants)
""",
        tests=("tests.jobs.repository.test_claims::test_a_job_out_of_attempts_fails_and_the_next_goes_on",),
    ),
    Guard(
        name="a transaction waits for every group that runs",
        module="app.jobs.repository.claim",
        text="""\
    if _live_groups(connection, dataset_ids):
        return []
""",
        tests=(
            "tests.transactions.repository.test_transactions::test_it_shares_no_commit_and_waits_for_every_group_that_runs",
        ),
    ),
    Guard(
        name="a transaction waits for what came before",
        module="app.jobs.repository.claim",
        text="""\
    if any(_next_transaction(connection, row.dataset_id, _QUEUED) != transaction_id for row in members):
        return []
""",
        tests=(
            "tests.transactions.repository.test_transactions::test_it_waits_for_what_came_before_in_any_of_its_datasets",
        ),
    ),
    Guard(
        name="writes of a transaction end together",
        module="app.jobs.repository.job_ends",
        text="or_(and_(*conditions), jobs.c.transaction_id.in_(transactions))",
        without="and_(*conditions)",
        tests=(
            "tests.transactions.repository.test_transactions::test_cancelling_one_cancels_all_and_wakes_their_datasets",
        ),
    ),
    Guard(
        name="writes wait while a table service publishes",
        module="app.jobs.repository.claim",
        text="if is_slot_requested(connection, wanted):",
        without="if False:",
        tests=(
            "tests.jobs.repository.test_commit_slots::test_writes_that_run_go_first_and_no_others_are_claimed_until_it_has_published",
        ),
    ),
    Guard(
        name="a table service waits for writes that run",
        module="app.timeline.repository.publish_in_slot",
        text="""\
    if groups:
""",
        without="""\
    if False:
""",
        tests=(
            "tests.jobs.repository.test_commit_slots::test_writes_that_run_go_first_and_no_others_are_claimed_until_it_has_published",
        ),
    ),
    Guard(
        name="a table service that is not held does not publish",
        module="app.timeline.repository.publish_in_slot",
        text="if len(held) < len(claims):",
        without="if False:",
        tests=(
            "tests.jobs.repository.test_commit_slots::test_a_service_that_is_no_longer_held_neither_publishes_nor_keeps_writes_waiting",
        ),
    ),
    Guard(
        name="batches of a stream are taken one after another",
        module="app.jobs.repository.writer_batches",
        text="""\
        connection.execute(_LOCK, {"stream": " ".join(stream)})
""",
        tests=(
            "tests.timeline.repository.test_locks::test_batch_that_another_request_is_about_to_take_is_answered_with_its_job",
            "tests.timeline.repository.test_locks::test_batch_below_one_that_another_request_is_about_to_take_is_out_of_order",
        ),
    ),
    Guard(
        name="batches are numbered upwards",
        module="app.jobs.repository.writer_batches",
        text="if last is not None and batch_id < last:",
        without="if False:",
        tests=(
            "tests.jobs.repository.test_writer_batches::test_a_lower_number_that_was_not_seen_is_out_of_order",
        ),
    ),
    Guard(
        name="a known batch gives its job",
        module="app.jobs.repository.writer_batches",
        text="if batch_id in owners and batch_id not in free:",
        without="if False:",
        tests=("tests.jobs.repository.test_writer_batches::test_a_batch_that_was_seen_gives_its_first_job",),
    ),
    Guard(
        name="an idempotency key is reserved once",
        module="app.jobs.repository.accept",
        text=".on_conflict_do_nothing()",
        tests=("tests.jobs.repository.test_jobs::test_a_known_key_replays_its_job_and_leaves_no_second",),
    ),
    Guard(
        name="an idempotency key is of one request",
        module="app.jobs.repository.replays",
        text="if row.request_hash != request_hash:",
        without="if False:",
        tests=("tests.jobs.repository.test_jobs::test_a_known_key_with_another_request_is_refused",),
    ),
    Guard(
        name="a failure of the service frees the key",
        module="app.jobs.repository.replays",
        text="return None if failed_by_service(job.state, job.error) else job",
        without="return job",
        tests=("tests.jobs.repository.test_jobs::test_a_failure_of_the_services_own_frees_the_key",),
    ),
    Guard(
        name="a dataset that is gone accepts nothing",
        module="app.jobs.repository.accept",
        text="""\
        if each.dataset_id in live
        and each.id""",
        without="        if each.id",
        tests=("tests.jobs.repository.test_jobs::test_no_job_for_a_dataset_that_is_none",),
    ),
    Guard(
        name="a tenant ends with its transaction",
        module="app.db.session",
        text="set_config('headwater.tenant_id', :value, true)",
        without="set_config('headwater.tenant_id', :value, false)",
        tests=("tests.tenants.repository.test_row_security::test_a_tenant_does_not_outlive_its_transaction",),
    ),
    Guard(
        name="a connection that breaks at COMMIT leaves doubt",
        module="app.db.session",
        text="""\
        if error.connection_invalidated:
            raise CommitInDoubt""",
        without="""\
        if False:
            raise CommitInDoubt""",
        tests=(
            "tests.timeline.repository.test_broken_connections::test_a_lost_answer_is_looked_up_and_found",
        ),
    ),
    Guard(
        name="a dead connection of the pool is replaced",
        module="app.db.session",
        text="""\
            if not error.connection_invalidated:
                raise
""",
        without="""\
            raise
""",
        tests=(
            "tests.timeline.repository.test_broken_connections::test_pooled_connections_that_died_are_replaced_unnoticed",
        ),
    ),
)
