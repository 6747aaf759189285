"""Guards of retention: versions that are read, changes that consumers still need, and instants."""

from __future__ import annotations

from typing import Final

from tests.mutants.guard import Guard

VERSION_GUARDS: Final = (
    Guard(
        name="files of versions expire before a read lease is made, or after",
        module="app.features.retention.repository.history",
        text="""\
            lock_history(connection, dataset_id)
            _delete_lapsed_pins(connection, dataset_id)
            head = _head(connection, dataset_id, lock=True)
            unseen""",
        without="""\
            _delete_lapsed_pins(connection, dataset_id)
            head = _head(connection, dataset_id, lock=True)
            unseen""",
        tests=(
            "tests.core.timeline.repository.test_locks::test_version_that_a_reader_is_about_to_pin_keeps_its_files",
        ),
    ),
    Guard(
        name="a read lease is made before its version expires, or not at all",
        module="app.core.timeline.repository.read_leases",
        text="""\
            share_history(connection, dataset_id)
            check_kept(connection, dataset_id, version)
            if _may_lease(connection, dataset_id, version, superseded_seconds_max):
""",
        without="""\
            check_kept(connection, dataset_id, version)
            if _may_lease(connection, dataset_id, version, superseded_seconds_max):
""",
        tests=(
            "tests.core.timeline.repository.test_locks::test_version_that_a_clean_is_about_to_expire_cannot_be_pinned",
        ),
    ),
    Guard(
        name="a version that is gone cannot be pinned",
        module="app.core.timeline.repository.read_leases",
        text="""\
            check_kept(connection, dataset_id, version)
            if _may_lease(connection, dataset_id, version, superseded_seconds_max):
""",
        without="""\
            if _may_lease(connection, dataset_id, version, superseded_seconds_max):
""",
        tests=("tests.core.timeline.repository.test_read_leases::test_retained_version_can_be_leased",),
    ),
    Guard(
        name="names and read leases keep files",
        module="app.features.retention.repository.history",
        text="""\
                    ~seen.exists(),
""",
        tests=(
            "tests.features.retention.repository.test_history::test_named_versions_and_leases_retain_their_files",
        ),
    ),
    Guard(
        name="versions of running writes are kept",
        module="app.features.retention.repository.history",
        text="return beginning if started is None else min(beginning, _version_at(connection, dataset_id, started))",
        without="return beginning",
        tests=(
            "tests.features.retention.repository.test_history::test_versions_of_running_writes_are_retained",
        ),
    ),
    Guard(
        name="consumers that keep up keep their changes",
        module="app.features.retention.repository.feed",
        text="""\
    end = min([end, *fences])
""",
        tests=(
            "tests.features.retention.repository.test_retention::test_consumers_within_their_lag_bound_retain_their_changes",
        ),
    ),
    Guard(
        name="savepoints keep the feed",
        module="app.features.retention.repository.feed",
        text=", _savepoints_fence(connection, dataset_id)",
        tests=(
            "tests.features.versions.repository.test_savepoints::test_savepoint_retains_the_feed_from_its_version",
        ),
    ),
    Guard(
        name="readers that start with the table keep the feed",
        module="app.features.retention.repository.feed",
        text=", _leases_fence(connection, dataset_id)",
        tests=(
            "tests.features.versions.repository.test_savepoints"
            "::test_version_that_a_reader_starts_with_retains_the_feed_from_it",
        ),
    ),
    Guard(
        name="a feed is cut before a consumer is made, or after",
        module="app.features.retention.repository.feed",
        text="""\
            lock_feed(connection, dataset_id)
""",
        tests=(
            "tests.core.timeline.repository.test_locks::test_feed_is_cut_behind_a_consumer_that_is_being_made",
        ),
    ),
    Guard(
        name="a feed is cut before a consumer is moved, or after",
        module="app.features.retention.repository.feed",
        text="""\
                .with_for_update(read=True)
""",
        tests=(
            "tests.core.timeline.repository.test_locks::test_feed_is_cut_behind_a_consumer_that_is_being_moved",
        ),
    ),
    Guard(
        name="an open instant is not archived",
        module="app.core.timeline.repository.archives",
        text="""\
, ~OPEN_INSTANT
""",
        without="""\

""",
        tests=("tests.core.timeline.repository.test_consistency::test_open_instant_is_not_archived",),
    ),
    Guard(
        name="only the holder of a clean archives instants",
        module="app.core.timeline.repository.archives",
        text="if lock_jobs(connection, held_by([claim])):",
        without="if True:",
        tests=(
            "tests.core.timeline.repository.test_timeline_archives::test_only_the_holder_of_the_clean_archives_and_each_instant_once",
        ),
    ),
    Guard(
        name="an instant is archived once",
        module="app.core.timeline.repository.archives",
        text="if gone != len(ids):",
        without="if False:",
        tests=(
            "tests.core.timeline.repository.test_timeline_archives::test_only_the_holder_of_the_clean_archives_and_each_instant_once",
        ),
    ),
)
