"""A clustering with writers between its plan and its commit: rows have other places by then, and are found there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.core.jobs.kinds.rewrite import ClusteringTask
from app.core.timeline.values import NewCommit
from app.features.maintenance.service.clustering import Clustering
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.file_group import FileKind
from app.kernel.format.policies import ClusterOrder
from tests.features.maintenance.service import test_rewrite_file_groups as compactions
from tests.features.maintenance.service.test_rewrite_file_groups import (
    APPENDED,
    MARKED,
    NewTable,
    append,
    delete,
    delete_where,
    notes,
    plans,
    upsert,
)
from tests.support.lake_table import LakeTable
from tests.support.table_services import ServedTable, result_of
from tests.support.verification import verified

new_table = compactions.new_table
TASK = ClusteringTask(columns=("note", "id"), order=ClusterOrder.Z_ORDER)


def cluster(served: ServedTable) -> NewCommit:
    return served.serve(TASK, Clustering.plan)


def once(act: Callable[[], None]) -> Callable[[], None]:
    """Does it the first time it is called."""
    waiting = [act]
    return lambda: waiting.pop()() if waiting else None


def places(message: CommitMessage, table: LakeTable) -> set[int]:
    """The ids of the rows that vectors take out of the files of a message."""
    found = set()
    for file in message.added:
        ids = table.reader.open(file).read(columns=["id"]).column("id").to_pylist()
        if file.deletion_vector is not None:
            live = {row["id"] for row in table.rows()}
            found |= set(ids) - live
    return found


def test_rows_deleted_during_clustering_are_deleted_from_its_files(new_table: NewTable) -> None:
    table = new_table(**MARKED)
    for note, ids in (("c", range(8)), ("a", range(8, 16)), ("b", range(20, 24))):
        upsert(table, note, *ids)
    delete(table, 11)
    served = ServedTable(table=table, meanwhile=lambda: upsert(table, "new", 3, 9, 30))
    served.in_slot = once(lambda: delete(table, 3, 21))
    commit = cluster(served)
    assert plans(served) == 1
    [message] = commit.messages
    assert [file.deletion_vector.cardinality for file in message.added if file.deletion_vector] == [3]
    assert places(message, table) == {3, 21}, "9 has another row since"
    expected = {**dict.fromkeys(range(8), "c"), **dict.fromkeys(range(8, 16), "a")}
    expected |= {**dict.fromkeys(range(20, 24), "b"), 9: "new", 30: "new"}
    assert notes(table) == {key: note for key, note in expected.items() if key not in (3, 11, 21)}
    assert verified(table).differences == 0
    marks = {file.clustered_by for file in message.added}
    assert marks == {"z_order:2,1"}


def test_group_without_change_offsets_is_planned_again_after_a_delete(new_table: NewTable) -> None:
    table = new_table(**APPENDED, table_type="merge_on_read", changelog={"producer": "none"})
    append(table, "b", *range(5))
    append(table, "a", *range(5, 9))
    served = ServedTable(table=table, meanwhile=once(lambda: delete_where(table, "id IN (2, 7)")))
    result = result_of(cluster(served))
    assert (plans(served), result["file_groups_left"]) == (2, 0)
    assert notes(table) == {**dict.fromkeys((0, 1, 3, 4), "b"), **dict.fromkeys((5, 6, 8), "a")}


def test_groups_changed_by_writers_every_time_are_skipped(new_table: NewTable) -> None:
    table = new_table(table_type="copy_on_write")
    upsert(table, "b", *range(5))
    numbers = iter(range(100, 200))
    served = ServedTable(table=table, meanwhile=lambda: upsert(table, "c", next(numbers)))
    result = result_of(cluster(served))
    assert (result["file_groups"], result["file_groups_left"]) == (0, 1)
    assert len(notes(table)) == 5 + plans(served)


@pytest.mark.parametrize("producer", ["input", "none"])
def test_logs_written_during_the_service_stay_on_top(new_table: NewTable, producer: str) -> None:
    table = new_table(table_type="merge_on_read", changelog={"producer": producer})
    upsert(table, "b", *range(6))
    upsert(table, "a", *range(3))
    feed = len(table.feed)

    def write() -> None:
        upsert(table, "c", 1, 9)
        delete(table, 2, 4)

    served = ServedTable(table=table, meanwhile=write)
    commit = cluster(served)
    assert plans(served) == 1
    assert not any(message.changelog for message in commit.messages)
    assert notes(table) == {0: "a", 1: "c", 3: "b", 5: "b", 9: "c"}
    kinds = sorted(file.kind for file in table.groups()["bucket-00000"])
    assert kinds == [FileKind.BASE, FileKind.LOG, FileKind.LOG]
    assert len(table.feed) == feed + (2 if producer == "input" else 0)
