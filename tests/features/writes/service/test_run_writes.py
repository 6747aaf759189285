"""Groups of writes on the catalogue: what is done again after a conflict, and how each ending is recorded."""

from __future__ import annotations

import errno
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import pytest
from sqlalchemy import func, select, update

from app.core.feature.stagers import StagedInput
from app.core.jobs.errors import EngineStopped
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.tables import jobs
from app.core.jobs.values import Job, JobState
from app.core.timeline.values import Advance
from app.features.transactions.values import NewTransaction
from app.infra.db.errors import TooSlow
from app.infra.errors import StorageUnavailable, Unavailable
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import AddField
from app.kernel.format.operation import Operation
from tests.support.lakehouse import RULES, new_job
from tests.support.store_fixtures import Stores
from tests.support.versioned_tables import kind_of
from tests.support.writing import Row, Writing

MONDAY: Final = "2026-11-23"
TUESDAY: Final = "2026-11-24"


def row(number: int, day: str = MONDAY, n: int = 0) -> Row:
    return {"id": number, "day": day, "n": n, "note": None}


def raising(error: Exception) -> Callable[[], None]:
    def run() -> NoReturn:
        raise error

    return run


def test_without_a_write_nothing_is_claimed(writing: Writing) -> None:
    assert not writing.run()
    assert writing.announced == []


def test_writes_that_wait_are_committed_as_one_version(writing: Writing) -> None:
    jobs = [writing.send([row(1)]), writing.send([row(2, TUESDAY)])]
    assert writing.run()
    assert [writing.ended(job_id) for job_id in jobs] == [("succeeded", None)] * 2
    assert {writing.job(job_id).committed_version for job_id in jobs} == {1}
    assert writing.rows() == [row(1), row(2, TUESDAY)]
    assert writing.announced == [True]
    assert not writing.run()


def test_after_a_conflict_only_the_file_groups_that_changed_are_merged_again(writing: Writing) -> None:
    job_id = writing.send([row(1), row(2, TUESDAY)])
    writing.engine.before_merge = [lambda: writing.write([row(1, n=7), row(3)])]
    assert writing.run()
    first, other, again = writing.engine.merged
    assert len(first) == 2
    assert again == other, "the group that the other write changed"
    assert writing.ended(job_id) == ("succeeded", None)
    assert writing.rows() == [row(1), row(2, TUESDAY), row(3)]
    assert writing.timeline.planned_at == [0, 0, 1]


def test_write_that_conflicts_too_often_fails_and_names_the_other_commit(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    writing.replans_max = 2
    writing.engine.before_merge = [
        lambda: writing.write([row(2)]),
        lambda: None,
        lambda: writing.write([row(3)]),
        lambda: None,
        lambda: writing.write([row(4)]),
    ]
    assert writing.run()
    assert writing.ended(job_id) == ("failed", "commit-conflict")
    error = writing.job(job_id).error
    assert error is not None
    assert (error.facts["retryable"], len(error.facts["file_groups"])) == (True, 1)
    winners = writing.timeline.instants(
        writing.tenant_id, writing.dataset.id, page_size=1, page_token=None
    ).items
    assert error.facts["winner"] == winners[0].id
    assert writing.rows() == [row(2), row(3), row(4)]


def test_write_that_lost_three_races_is_committed_before_any_other_is_claimed(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    writing.replans_max = 20
    rivals: list[str] = []

    def rival() -> None:
        rivals.append(writing.send([row(2, n=len(rivals))]))
        writing.run(owner="another")

    # Each rival merges, too, while nothing else happens.
    writing.engine.before_merge = [rival, lambda: None] * 3 + [rival] * 20
    assert writing.run()
    assert writing.ended(job_id) == ("succeeded", None)
    assert [writing.job(each).state.value for each in rivals] == ["succeeded"] * 3 + ["queued"]
    writing.engine.before_merge.clear()
    assert writing.run(owner="another")
    assert writing.ended(rivals[-1]) == ("succeeded", None)
    assert writing.rows() == [row(1), row(2, n=3)]


def test_write_whose_version_expires_before_it_is_merged_again_starts_over_at_the_head(
    writing: Writing,
) -> None:
    job_id = writing.send([row(1), row(2, TUESDAY)])
    writing.engine.before_merge = [lambda: writing.write([row(3)])]

    def clean() -> None:
        writing.write([row(4)])
        writing.expire_versions()

    writing.timeline.after_refusal = [clean]
    assert _bounded(writing)
    assert writing.ended(job_id) == ("succeeded", None)
    assert writing.timeline.planned_at == [0, 0, 1, 2]
    assert len(writing.engine.merged[-1]) == 2, "all groups are merged again"
    assert writing.rows() == [row(1), row(2, TUESDAY), row(3), row(4)]


def test_write_that_finds_files_gone_with_their_version_starts_over_at_the_head(writing: Writing) -> None:
    writing.write([row(1)])
    job_id = writing.send([row(2)])

    def clean() -> NoReturn:
        writing.write([row(3)])
        writing.expire_versions()
        raise CorruptFile("the file is missing", path="data")

    writing.engine.before_merge = [clean]
    assert _bounded(writing)
    assert writing.ended(job_id) == ("succeeded", None)
    assert writing.rows() == [row(1), row(2), row(3)]


def test_missing_file_of_a_version_that_is_kept_fails_the_write(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    writing.engine.before_merge = [raising(CorruptFile("the file is missing", path="data"))]
    assert writing.run()
    assert writing.ended(job_id) == ("failed", "corrupt-file")


def _bounded(writing: Writing) -> bool:
    """Runs a group that would otherwise plan for ever."""
    plans = []
    live_files = writing.timeline.live_files

    def counted(*arguments: Any, **named: Any) -> Any:
        plans.append(arguments)
        assert len(plans) < 20, "planned again and again"
        return live_files(*arguments, **named)

    writing.timeline.live_files = counted  # type: ignore[method-assign]
    return writing.run()


def test_cancelled_write_is_left_out_and_the_others_are_committed(writing: Writing) -> None:
    jobs = [writing.send([row(1)]), writing.send([row(2)])]
    writing.engine.before_merge = [lambda: writing.jobs.cancel(writing.tenant_id, jobs[0])]
    assert writing.run()
    assert [writing.ended(job_id)[0] for job_id in jobs] == ["cancelled", "succeeded"]
    assert writing.rows() == [row(2)]


def test_group_whose_writes_are_all_cancelled_commits_nothing(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    writing.engine.before_merge = [lambda: writing.jobs.cancel(writing.tenant_id, job_id)]
    assert writing.run()
    assert (writing.version, writing.ended(job_id)[0]) == (0, "cancelled")


def test_stopped_write_stays_with_its_claim(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    writing.engine.before_merge = [raising(EngineStopped("cancelled"))]
    assert writing.run()
    assert writing.ended(job_id)[0] == "running"
    assert writing.announced == [True]


def test_write_of_a_dataset_that_is_deleted_meanwhile_is_cancelled_with_it(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    writing.engine.before_merge = [
        lambda: writing.catalog.delete(writing.tenant_id, writing.dataset.id, version=None)
    ]
    assert writing.run()
    assert writing.ended(job_id)[0] == "cancelled"


OUTAGES: Final = {
    "database": Unavailable("the database is out of reach"),
    "storage": StorageUnavailable("the storage is out of reach", path="data"),
    "space": OSError(errno.ENOSPC, "no space left on device"),
}


@pytest.mark.parametrize("missing", OUTAGES)
def test_writes_outlive_any_number_of_outages(writing: Writing, missing: str) -> None:
    job_ids = [writing.send([row(1)]), writing.send([row(2)])]
    outages = 2 * RULES.attempts_max
    writing.engine.before_merge = [raising(OUTAGES[missing])] * outages
    for _ in range(outages):
        assert writing.run()
        assert not writing.run(), "the writes wait, and none overtakes them"
        assert writing.jobs.runnable(9) == []
        waiting = [writing.job(job_id) for job_id in job_ids]
        assert [(job.state, job.progress.waiting_for) for job in waiting] == [(JobState.QUEUED, missing)] * 2
        end_pauses(writing)
    assert len(writing.jobs.runnable(9)) == 1
    assert writing.run()
    assert [writing.ended(job_id) for job_id in job_ids] == [("succeeded", None)] * 2
    assert (writing.version, writing.rows()) == (1, [row(1), row(2)])
    assert writing.job(job_ids[0]).progress.waiting_for is None


def end_pauses(writing: Writing) -> None:
    """Lets the time of postponed jobs come, after checking that it is bounded."""
    with writing.database.tenant(writing.tenant_id) as connection:
        latest = func.max(jobs.c.not_before) - func.clock_timestamp()
        assert connection.execute(select(latest)).scalar_one() <= timedelta(seconds=60)
        connection.execute(update(jobs).values(not_before=func.clock_timestamp()))


def test_writes_and_their_raw_input_outlive_a_storage_that_is_away(
    stores: Stores, tenant_id: str, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    made = stores.catalog.create(tenant_id, new_id(), kind_of("copy_on_write, bloom"))
    writing = Writing(database=stores.database, storage=LocalStorage(root), dataset=made)
    writing.write([row(1)])
    job_ids = [
        writing.send([row(1, n=1)]),
        writing.send_raw(b'{"id": 2, "day": "2026-11-23", "n": 0, "note": null}'),
    ]
    root.rename(tmp_path / "away")
    assert writing.run()
    assert [writing.job(job_id).progress.waiting_for for job_id in job_ids] == ["storage"] * 2
    assert not root.exists(), "a folder in its place would hide the tables"
    (tmp_path / "away").rename(root)
    end_pauses(writing)
    assert writing.run()
    assert [writing.ended(job_id) for job_id in job_ids] == [("succeeded", None)] * 2
    assert writing.rows() == [row(1, n=1), row(2)]


def test_statement_that_takes_too_long_counts_as_an_attempt(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    for _ in range(RULES.attempts_max):
        writing.engine.before_merge = [raising(TooSlow("the database does not answer in time"))]
        assert writing.run()
    assert not writing.run()
    assert writing.ended(job_id) == ("failed", "attempts-exhausted")


def test_error_of_no_particular_write_fails_every_write_of_the_group(writing: Writing) -> None:
    job_ids = [writing.send([row(1)]), writing.send([row(2)])]
    writing.engine.before_merge = [raising(CorruptFile("damaged", path="data"))]
    assert writing.run()
    assert [writing.ended(job_id) for job_id in job_ids] == [("failed", "corrupt-file")] * 2
    assert writing.version == 0


def deep_table(stores: Stores, tenant_id: str, folder: Path) -> Writing:
    """Writes to a table whose partition paths may be too long for an index of Postgres."""
    names = [f"p{number}" for number in range(16)]
    fields = [
        CreateField(name="id", type="int64"),
        *(CreateField(name=name, type="string") for name in names),
    ]
    definition = define_dataset(CreateDataset(name="deep", schema=CreateSchema(fields=fields)))
    # As many were allowed once.
    definition = msgspec.structs.replace(definition, partition_by=tuple(names))
    made = stores.catalog.create(tenant_id, new_id(), definition)
    return Writing(database=stores.database, storage=LocalStorage(folder), dataset=made)


def deep_row(number: int, length: int) -> Row:
    """A row whose partition values have this number of characters each, and cannot be compressed."""
    chosen = random.Random(number)
    return {"id": number} | {
        f"p{place}": "".join(chosen.choices(string.ascii_letters, k=length)) for place in range(16)
    }


def test_write_that_postgres_cannot_store_fails_with_its_reason_and_the_others_are_committed(
    stores: Stores, tenant_id: str, tmp_path: Path
) -> None:
    writing = deep_table(stores, tenant_id, tmp_path)
    jobs = [
        writing.send([deep_row(number, length)], Operation.INSERT)
        for number, length in enumerate((3, 300, 3))
    ]
    for _ in range(4):
        writing.run()
    assert [writing.ended(job_id) for job_id in jobs] == [
        ("succeeded", None),
        ("failed", "not-storable"),
        ("succeeded", None),
    ]
    assert writing.version == 2


def test_write_whose_input_is_damaged_fails_and_the_others_run_again(writing: Writing) -> None:
    jobs = [writing.send([row(1)]), writing.send([row(2)])]
    [staged] = writing.job(jobs[0]).write.staged
    writing.engine.before_merge = [raising(CorruptFile("damaged", path=staged.path))]
    assert writing.run()
    assert [writing.ended(job_id) for job_id in jobs] == [("failed", "corrupt-file"), ("queued", None)]
    assert writing.run()
    assert writing.ended(jobs[1]) == ("succeeded", None)
    assert writing.rows() == [row(2)]


def test_missing_module_fails_the_writes_with_its_name(writing: Writing) -> None:
    job_id = writing.send([row(1)])
    error = RuntimeError("the task ended")
    error.__cause__ = ModuleNotFoundError("No module named 'pandas'")
    writing.engine.before_merge = [raising(error)]
    assert writing.run()
    assert writing.ended(job_id) == ("failed", "internal")
    fault = writing.job(job_id).error
    assert fault is not None
    assert "No module named 'pandas'" in fault.detail


def test_unexpected_error_returns_the_writes_to_the_queue(writing: Writing) -> None:
    jobs = [writing.send([row(1)]), writing.send([row(2)])]
    writing.engine.before_merge = [raising(ZeroDivisionError("a bug"))]
    with pytest.raises(ZeroDivisionError):
        writing.run()
    assert [writing.job(job_id).state for job_id in jobs] == [JobState.QUEUED] * 2
    assert writing.announced == [True]
    # Each alone from now on, in case one of them is to blame.
    assert writing.run()
    assert [writing.job(job_id).state for job_id in jobs] == [JobState.SUCCEEDED, JobState.QUEUED]


def test_input_that_cannot_be_decoded_fails_its_write_alone(writing: Writing) -> None:
    bad = writing.send_raw(b'{"id": 1, "day": "2026-11-23"')
    good = writing.send_raw(b'{"id": 2, "day": "2026-11-23", "n": 0, "note": null}')
    assert writing.run()
    assert writing.ended(bad)[0] == "failed"
    assert writing.ended(good) == ("succeeded", None)
    assert writing.rows() == [row(2)]


def test_insert_of_a_live_key_fails_alone_and_names_the_key(writing: Writing) -> None:
    writing.write([row(1)])
    jobs = [writing.send([row(1), row(2)], Operation.INSERT), writing.send([row(3)], Operation.INSERT)]
    assert writing.run()
    assert [writing.ended(job_id) for job_id in jobs] == [
        ("failed", "duplicate-key"),
        ("succeeded", None),
    ]
    error = writing.job(jobs[0]).error
    assert error is not None
    assert (error.facts["keys"], error.facts["duplicates"]) == ([{"day": MONDAY, "id": 1}], 1)
    assert writing.rows() == [row(1), row(3)]


def test_write_is_merged_again_after_a_schema_change(writing: Writing) -> None:
    job_id = writing.send([row(1)])

    def add_column() -> None:
        before = writing.catalog.get(writing.tenant_id, writing.dataset.id)
        writing.catalog.evolve(
            writing.tenant_id,
            writing.dataset.id,
            evolve(before.definition, [AddField(field=CreateField(name="more", type="string"))]),
            version=before.version,
            instant_id=new_instant_id(),
        )

    writing.engine.before_merge = [add_column]
    assert writing.run()
    assert writing.ended(job_id) == ("succeeded", None)
    assert writing.rows() == [row(1) | {"more": None}]
    assert len(writing.engine.merged) == 2


def test_write_that_adds_an_already_added_column_is_read_again(writing: Writing) -> None:
    body = b'{"id": %d, "day": "2026-11-23", "n": 0, "note": null, "more": "%d"}'
    job_id = writing.send_raw(body % (1, 1), merge_schema=True)

    def bring() -> None:
        other = writing.send_raw(body % (2, 2), merge_schema=True)
        assert writing.run(owner="another")
        assert writing.ended(other) == ("succeeded", None)

    writing.engine.before_merge = [bring]
    assert writing.run()
    assert writing.ended(job_id) == ("succeeded", None)
    assert writing.rows() == [row(1) | {"more": "1"}, row(2) | {"more": "2"}]
    definition = writing.catalog.get(writing.tenant_id, writing.dataset.id).definition
    assert definition.schema.id == 2


def test_restore_that_loses_to_another_write_compares_the_table_again(writing: Writing) -> None:
    writing.write([row(1)])
    writing.write([row(1, n=1), row(2)])
    job_id = writing.send_restore(1)
    writing.engine.before_merge = [lambda: writing.write([row(3)])]
    assert writing.run()
    assert writing.ended(job_id) == ("succeeded", None)
    assert writing.rows() == [row(1)]
    assert writing.timeline.planned_at[-2:] == [2, 3]


def test_writes_and_refreshes_are_run_by_their_own_processes_in_order_of_acceptance(
    followed: Writing,
) -> None:
    writing = followed
    plain = {"rules": msgspec.structs.replace(writing.worker().rules, process=WriteProcess.WORKER)}
    derived = {
        "rules": msgspec.structs.replace(writing.worker().rules, process=WriteProcess.DERIVED),
        "stagers": {JobKind.REFRESH: Deriving(writing, [0])},
    }
    here = (writing.tenant_id, writing.dataset.id)
    handed_over = [
        (WriteProcess.WORKER, *here),
        (WriteProcess.DERIVED, *here),
        (WriteProcess.WORKER, *here),
    ]
    writing.write([row(2)])
    writing.send([row(3)])
    writing.accept(WriteRequest(operation=Operation.UPSERT, derived=True))
    writing.send_restore(1)
    assert not writing.run(**derived)
    assert writing.run(**plain)
    assert writing.rows() == [row(2), row(3)]
    assert not writing.run(**plain)
    assert writing.run(**derived)
    assert writing.rows() == [row(1), row(2), row(3)]
    assert not writing.run(**derived)
    assert writing.handed_over == handed_over
    assert writing.run(**plain)
    assert writing.rows() == [row(2)]
    assert not writing.run(**plain)
    assert writing.handed_over == handed_over, "nothing waits"


def test_restore_whose_head_expires_before_it_is_merged_starts_over(writing: Writing) -> None:
    writing.write([row(1)])
    writing.write([row(2)])
    job_id = writing.send_restore(1)

    def clean() -> NoReturn:
        writing.write([row(3)])
        writing.expire_versions()
        raise CorruptFile("the file is missing", path="data")

    writing.engine.before_merge = [clean]
    assert _bounded(writing)
    # The version to go back to has expired, too, and that is what the job says.
    assert writing.ended(job_id) == ("failed", "version-expired")


def test_transaction_fails_as_a_whole_when_one_write_does(
    writing: Writing, stores: Stores, tenant_id: str
) -> None:
    other = stores.catalog.create(
        tenant_id, new_id(), msgspec.structs.replace(writing.dataset.definition, name="other")
    )
    new = NewTransaction(id=new_id(), jobs=(new_job(writing.dataset.id), new_job(other.id)))
    stores.transactions.accept(tenant_id, new)
    writing.engine.before_merge = [raising(CorruptFile("damaged", path="data"))]
    assert writing.run()
    codes = sorted(str(writing.ended(job.id)[1]) for job in new.jobs)
    assert codes == ["corrupt-file", "transaction-failed"]


def other_table(writing: Writing, stores: Stores, kind: str) -> Writing:
    """The writes of another dataset of this kind."""
    definition = msgspec.structs.replace(kind_of(kind), name="other")
    made = stores.catalog.create(writing.tenant_id, new_id(), definition)
    return Writing(database=writing.database, storage=writing.storage, dataset=made)


def send_together(stores: Stores, writes: list[tuple[Writing, Operation]]) -> Callable[[], list[JobState]]:
    """A transaction that writes row 1 to each dataset; returns how its jobs are."""
    jobs = [
        msgspec.structs.replace(
            new_job(each.dataset.id),
            request=WriteRequest(operation=operation, staged=each.staged([row(1)], operation)),
        )
        for each, operation in writes
    ]
    tenant_id = writes[0][0].tenant_id
    stores.transactions.accept(tenant_id, NewTransaction(id=new_id(), jobs=tuple(jobs)))
    return lambda: [stores.jobs.get(tenant_id, job.id).state for job in jobs]


@pytest.mark.parametrize("kind", ["unaware", "copy_on_write, bloom"])
def test_conflict_in_one_dataset_of_a_transaction_leaves_what_was_merged_for_the_other(
    writing: Writing, stores: Stores, kind: str
) -> None:
    other = other_table(writing, stores, kind)
    states = send_together(stores, [(other, Operation.INSERT), (writing, Operation.UPSERT)])
    writing.engine.before_merge = [lambda: None, lambda: writing.write([row(1, n=7)])]
    assert writing.run()
    assert states() == [JobState.SUCCEEDED] * 2
    assert (writing.rows(), other.rows()) == ([row(1)], [row(1)])
    # The transaction's two, the other write's, and the one that it changed.
    assert len(writing.engine.merged) == 4


def test_transaction_with_one_void_claim_is_published_in_no_dataset(writing: Writing, stores: Stores) -> None:
    other = other_table(writing, stores, "copy_on_write, bloom")
    states = send_together(stores, [(other, Operation.UPSERT), (writing, Operation.UPSERT)])

    def take_one_over() -> None:
        with writing.database.tenant(writing.tenant_id) as connection:
            taken = update(jobs).where(jobs.c.dataset_id == other.dataset.id)
            connection.execute(taken.values(epoch=jobs.c.epoch + 1))

    writing.engine.before_merge = [lambda: None, take_one_over]
    assert writing.run()
    assert (writing.version, other.version) == (0, 0)
    assert states() == [JobState.RUNNING] * 2


def test_conflicts_in_both_datasets_of_a_transaction_are_found(writing: Writing, stores: Stores) -> None:
    """Also the one that came before the other dataset was planned again."""
    other = other_table(writing, stores, "copy_on_write, bloom")
    states = send_together(stores, [(other, Operation.UPSERT), (writing, Operation.UPSERT)])

    def change_both() -> None:
        writing.write([row(1, n=7)])
        other.write([row(1, n=7), row(2)])

    writing.engine.before_merge = [lambda: None, change_both]
    assert writing.run()
    assert states() == [JobState.SUCCEEDED] * 2
    assert (writing.rows(), other.rows()) == ([row(1)], [row(1), row(2)])


def test_write_that_expects_another_version_fails_at_once(writing: Writing) -> None:
    job_id = writing.send([row(1)], expected_version=7)
    assert writing.run()
    assert writing.ended(job_id) == ("failed", "commit-conflict")
    assert writing.timeline.planned_at == [0]


@dataclass
class Deriving:
    """Derives a row; the changes that it was made of begin at the next of these offsets."""

    writing: Writing
    since: list[int]

    def stage(self, job: Job, prefix: str, tag: str) -> StagedInput:
        staged = self.writing.staged([row(len(self.since))], Operation.UPSERT)
        advance = Advance(
            dataset_id=self.writing.dataset.id,
            name="view",
            since=self.since.pop(0),
            next_since=9,
            schema_id=1,
        )
        return StagedInput(job=job, files=staged, advances=(advance,))


def test_refresh_overtaken_by_another_derives_its_rows_again(followed: Writing) -> None:
    job_id = followed.accept(WriteRequest(operation=Operation.UPSERT, derived=True))
    assert followed.run(stagers={JobKind.REFRESH: Deriving(followed, [5, 0])})
    assert followed.ended(job_id) == ("succeeded", None)
    assert followed.rows() == [row(1)], "those of the second attempt"


def test_refresh_that_always_conflicts_fails(followed: Writing) -> None:
    job_id = followed.accept(WriteRequest(operation=Operation.UPSERT, derived=True))
    followed.replans_max = 2
    assert followed.run(stagers={JobKind.REFRESH: Deriving(followed, [5, 5, 5, 0])})
    assert followed.ended(job_id) == ("failed", "commit-conflict")
    assert followed.version == 0
