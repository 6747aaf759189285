"""Random histories against the model: groups of writes on every kind of dataset, with too little memory in some."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest

from app.infra.files import data_sink
from app.infra.files.lookups import lookup
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.verification import check_verifiable
from app.kernel.commit import small_files
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import NotVerifiable
from tests.conformance.histories import LONG
from tests.conformance.kinds import Kind, defined
from tests.conformance.model import Expected, HeapModel, KeyedModel, check_step, model_of
from tests.conformance.operations import Predicate
from tests.conformance.random_writes import Dice, kinds
from tests.support.lake_table import COMPACT, LakeTable, Outcome, Write
from tests.support.shares import share
from tests.support.verification import verified
from workers.engine.merge import append_write, task_report
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.task_files import TaskResources

HISTORIES: Final = int(os.environ.get("HISTORIES", "4000" if LONG else "60"))
_STEPS: Final = 6
_TIGHT: Final = MemoryBudget(bytes_max=2_000)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, TaskResources]]:
    """By whether rows have to be spilled."""
    root = tmp_path_factory.mktemp("storage")
    hot = HotFolder(tmp_path_factory.mktemp("hot"), 2**28)
    scratch = tmp_path_factory.mktemp("scratch")
    yield {
        tight: TaskResources.on(
            LocalStorage(root), MemoryBudget(bytes_max=2_000 if tight else 2**26, scratch=scratch), hot
        )
        for tight in (False, True)
    }
    assert not list(scratch.iterdir()), "what was spilled is left behind"


@share(3)
@pytest.mark.parametrize(
    ("seed", "kind"), list(enumerate(kinds(HISTORIES))), ids=lambda each: getattr(each, "name", None)
)
def test_random_history_equals_the_model(
    places: dict[bool, TaskResources], monkeypatch: pytest.MonkeyPatch, seed: int, kind: Kind
) -> None:
    # Files of few rows get no index otherwise.
    for module in (data_sink, lookup):
        monkeypatch.setattr(module, "KEPT_ROWS_MIN", 1 if seed % 2 else 6)
    monkeypatch.setattr(small_files, "_SMALL_SHARE", 10**9 if seed % 4 == 3 else 4)
    # All old rows are marked, or some, or small files are rewritten.
    monkeypatch.setattr(small_files, "_ROWS_MAX", (0, 4, 10**6)[seed // 2 % 3])
    if seed % 5:
        # Rows that are all new are written once, however few they are.
        for module in (append_write, task_report):
            monkeypatch.setattr(module, "SMALL_CHANGES_BYTES", 0)
    dataset = defined(kind)
    assert isinstance(dataset, DatasetDefinition)
    resources = places[seed % 3 == 0]
    handle = MergeHandle(resources)
    table = LakeTable(
        storage=resources.storage, dataset=dataset, run=lambda tasks: [handle.run(task) for task in tasks]
    )
    model = model_of(dataset)
    dice = Dice(kind, dataset, seed)
    for _ in range(_STEPS):
        if dice.random.random() < 0.25:
            alone = dice.alone()
            if alone is not None:
                _step(table, model, [alone[0]], alone[1])
        elif writes := dice.group():
            _step(table, model, writes, None)
        if dice.random.random() < 0.3:
            _step(table, model, [COMPACT], None)
    _step(table, model, [COMPACT], None)
    model.check_fold(table)


def _step(
    table: LakeTable, model: KeyedModel | HeapModel, writes: list[Write], removes: Predicate | None
) -> None:
    before = table.version
    expected: Expected = model.expect(writes, removes)
    outcome: Outcome = table.write(*writes)
    check_step(model, table, before, expected, outcome)
    for begin in {0, before - 1, before} - {-1}:
        model.check_changed_rows(table, begin)
    _verify(table)


def _verify(table: LakeTable) -> None:
    """Wherever a feed says what its table holds, it does so at every version."""
    try:
        check_verifiable(table.dataset)
    except NotVerifiable:
        return
    found = verified(table, memory=_TIGHT if table.version % 2 else None)
    assert found.differences == 0, found.first
    assert found.changes == table.next_offset
