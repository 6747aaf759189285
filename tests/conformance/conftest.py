"""One Spark session for the folder, and the histories that ran on it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from app.core.jobs.engine import merge
from app.infra.files.storage import LocalStorage
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_plan import MergeTask
from tests.conformance.histories import Combination, batches, combinations, run_histories
from tests.support.spark import running_engine

Run = Callable[[Sequence[MergeTask]], Sequence[CommitMessage]]


@pytest.fixture(scope="package")
def root() -> Iterator[Path]:
    """Where the tables of the histories are."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as root:
        yield Path(root)


@pytest.fixture(scope="package")
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


@pytest.fixture(scope="package")
def run_on_spark(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs merge tasks as one Spark job."""
    numbers = count(1)
    with running_engine(root, tmp_path_factory.mktemp("spark")) as engine:
        yield lambda tasks: merge(engine, tasks, f"round-{next(numbers)}")


@pytest.fixture(scope="package")
def fault_of(
    run_on_spark: Run, root: Path, storage: LocalStorage
) -> Callable[[Combination], Exception | None]:
    """What went wrong with a combination. They run in batches, each when the first of its combinations is requested."""
    numbers = batches(combinations())
    found: dict[Combination, Exception | None] = {}
    ran: set[int] = set()

    def result_of(combination: Combination) -> Exception | None:
        number = numbers[combination]
        if number not in ran:
            ran.add(number)
            mine = [each for each, batch in numbers.items() if batch == number]
            found.update(run_histories(run_on_spark, storage, mine))
            for folder in root.iterdir():
                shutil.rmtree(folder)
        return found[combination]

    return result_of
