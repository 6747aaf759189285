"""Table services planned at one version and published at a later one: writers came in between, and nothing is lost.

A table that services work on is held to one that has the same writes and is left alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from app.core.jobs.kinds.rewrite import ClusteringTask
from app.features.maintenance.service.clustering import Clustering
from app.features.maintenance.service.compaction import Compaction
from app.infra.files import data_sink
from app.infra.files.lookups import lookup
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.verification import check_verifiable
from app.kernel.commit import small_files
from app.kernel.format.dataset import BucketMode, ChangelogProducer, DatasetDefinition, TableType
from app.kernel.format.errors import NotVerifiable
from app.kernel.format.file_group import FileKind
from app.kernel.format.policies import ClusterOrder
from tests.conformance.histories import LONG
from tests.conformance.kinds import Kind, defined
from tests.conformance.random_writes import Dice, kinds
from tests.kernel.commit.reference import exact
from tests.support.lake_table import LakeTable, Write
from tests.support.shares import share
from tests.support.table_services import ServedTable, result_of
from tests.support.verification import verified
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.task_files import TaskResources

HISTORIES: Final = int(os.environ.get("HISTORIES", "2000" if LONG else "12"))
_ROUNDS: Final = 3


def _kinds() -> list[Kind]:
    """By turns of those that mark old rows, keep logs, and write files again."""
    by_way: dict[tuple[bool, bool], list[Kind]] = {}
    for kind in kinds(1_000):
        dataset = defined(kind)
        assert isinstance(dataset, DatasetDefinition)
        by_way.setdefault((dataset.table_type is TableType.MERGE_ON_READ, dataset.looks_up), []).append(kind)
    return [kind for three in zip(*by_way.values(), strict=False) for kind in three][:HISTORIES]


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> TaskResources:
    return TaskResources.on(LocalStorage(tmp_path_factory.mktemp("storage")), MemoryBudget(bytes_max=2**26))


@pytest.fixture(scope="module")
def rebased() -> Iterator[Counter[str]]:
    """What happened to services, over all histories: each way must have been taken."""
    seen: Counter[str] = Counter()
    yield seen
    if sum(seen.values()) > 100:
        assert set(seen) == {"published as planned", "rebased", "planned again"}, seen


@share(5)
@pytest.mark.parametrize(
    ("seed", "kind"), list(enumerate(_kinds())), ids=lambda each: getattr(each, "name", None)
)
def test_services_between_writes_change_neither_snapshot_nor_feed(
    resources: TaskResources, monkeypatch: pytest.MonkeyPatch, rebased: Counter[str], seed: int, kind: Kind
) -> None:
    for module in (data_sink, lookup):
        monkeypatch.setattr(module, "KEPT_ROWS_MIN", 1 if seed % 2 else 6)
    # All files are small, or none is.
    monkeypatch.setattr(small_files, "_SMALL_SHARE", 1 if (seed // 3) % 3 else 10**9)
    dataset = defined(kind)
    assert isinstance(dataset, DatasetDefinition)
    both = _Both(resources, dataset, Dice(kind, dataset, seed))
    for _ in range(_ROUNDS):
        both.write()
        both.write()
        both.serve(rebased)
    both.compact()
    assert _by_values(both.served) == _by_values(both.alone)
    if both.feeds_agree:
        assert _by_key(both.served) == _by_key(both.alone)


class _Both:
    """A table with services and one without, which get the same writes."""

    def __init__(self, resources: TaskResources, dataset: DatasetDefinition, dice: Dice) -> None:
        handle = MergeHandle(resources)
        self.served, self.alone = (
            LakeTable(
                storage=resources.storage,
                dataset=dataset,
                run=lambda tasks: [handle.run(task) for task in tasks],
            )
            for _ in range(2)
        )
        self._dice = dice
        self._services = ServedTable(table=self.served)

    @property
    def _postpones(self) -> bool:
        bucket = self.served.dataset.bucket
        return bucket.mode is BucketMode.POSTPONE and not bucket.fixed_now

    @property
    def feeds_agree(self) -> bool:
        """Postponed writes are delivered as given, or as what a write with a scope has made of them, in any order."""
        return not (self._postpones and self.served.dataset.changelog.producer is ChangelogProducer.INPUT)

    def write(self) -> None:
        """A group of writes, or one that takes rows out without naming them."""
        alone = self._dice.alone() if self._dice.random.random() < 0.25 else None
        writes: list[Write] = self._dice.group() if alone is None else [alone[0]]
        if writes:
            assert self.served.write(*writes).conflicts == self.alone.write(*writes).conflicts

    def serve(self, seen: Counter[str]) -> None:
        """A service, with writers between its plan and its commit, and sometimes once more before it has its turn."""
        random = self._dice.random
        services = self._services
        services.waits = random.randrange(3)
        services.meanwhile = self._writers(random.randrange(3))
        services.in_slot = self._writers(random.randrange(2))
        services.tasks.clear()
        clustering = self._clustering()
        commit = services.serve(clustering, Compaction.plan if clustering is None else Clustering.plan)
        if not commit.messages:
            return
        plans = len({task.attempt for task in services.tasks})
        vectors = any(file.deletion_vector for message in commit.messages for file in message.added)
        seen["planned again" if plans > 1 else "rebased" if vectors else "published as planned"] += 1
        assert result_of(commit)["file_groups_left"] == 0
        deferred = self.served.dataset.changelog.producer is ChangelogProducer.DEFERRED
        if clustering is not None or not (self._postpones or deferred):
            assert not any(message.changelog for message in commit.messages)
        self._verify()

    def _clustering(self) -> ClusteringTask | None:
        """By some columns, in one order or the other; None where it is to be a compaction."""
        random, fields = self._dice.random, self.served.dataset.schema.fields
        flat = [field.name for field in fields if "<" not in field.type]
        if random.random() < 0.5:
            return None
        columns = random.sample(flat, random.randint(1, min(3, len(flat))))
        return ClusteringTask(columns=tuple(columns), order=random.choice(list(ClusterOrder)))

    def _writers(self, groups: int) -> Callable[[], None]:
        """Writes this number of groups when it is called first, and none after that."""
        left = [None] * groups

        def write() -> None:
            while left:
                left.pop()
                self.write()

        return write

    def compact(self) -> None:
        """Folds both: all that waits appears."""
        for table in (self.served, self.alone):
            table.compact()
            assert {file.kind for file in table.files.values()} <= {FileKind.BASE}
        self._verify()

    def _verify(self) -> None:
        if not self._postpones:
            assert _by_values(self.served) == _by_values(self.alone)
        try:
            check_verifiable(self.served.dataset)
        except NotVerifiable:
            return
        found = verified(self.served)
        assert found.differences == 0, found.first


def _by_values(table: LakeTable) -> Counter[str]:
    return Counter(map(exact, table.rows()))


def _by_key(table: LakeTable) -> dict[object, list[tuple[int, str]]]:
    """The feed of each key, in order; of rows without a key, whichever order."""
    grouped: dict[object, list[tuple[int, str]]] = {}
    for change in table.changes():
        key = tuple(exact({name: change.row[name]}) for name in table.dataset.record_key)
        grouped.setdefault(key, []).append((change.op, exact(change.row)))
    if not table.dataset.record_key:
        return {key: sorted(changes) for key, changes in grouped.items()}
    return grouped
