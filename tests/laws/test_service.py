"""The laws on a running service: the same rows by different ways in, and copies of a feed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import pytest

from tests.laws.checks import FOLDING, check
from tests.laws.definitions import plain
from tests.laws.histories import History, history
from tests.laws.runs import VARIABLE, minutes, new_seeds, run
from tests.laws.served import ServedDataset, ServedDatasets
from tests.laws.tables import is_valid
from tests.support.left_out import left_out
from tests.support.service import Service
from tests.support.shares import share

_STEPS: Final = 5
_tenants = count(1)


@pytest.fixture
def new_datasets(service: Service) -> Iterator[Callable[[int | str], ServedDatasets]]:
    """Makes datasets of a tenant of their own, whose ways in are those of a seed."""
    clients = []

    def make(seed: int | str) -> ServedDatasets:
        clients.append(service.client(service.new_key(f"laws-{next(_tenants)}")))
        return ServedDatasets(service, clients[-1], random.Random(f"ways {seed}"))

    yield make
    for client in clients:
        client.close()


NewDatasets = Callable[[int | str], ServedDatasets]


def _history(seed: str) -> History:
    return history(seed, is_valid, steps=_STEPS)


@share(40)
@pytest.mark.parametrize("seed", range(120))
def test_ways_in_make_the_same_table(new_datasets: NewDatasets, seed: int) -> None:
    run([f"service {seed}"], _history, new_datasets(seed), is_valid).check()


@share(40)
@pytest.mark.parametrize("seed", range(120))
def test_copies_of_a_feed_are_equal_to_the_original(new_datasets: NewDatasets, seed: int) -> None:
    _check_copies(new_datasets(seed), seed)


def _check_copies(datasets: ServedDatasets, seed: int | str) -> int:
    """Copies the feed of a dataset as it is delivered, and by a source. Returns the number of rows."""
    one = next(
        each
        for number in count()
        if (each := _history(f"copies {seed} {number}")).dataset["changelog"]["producer"] in FOLDING
    )
    originals: list[ServedDataset] = []

    def new_dataset(registration: dict[str, Any]) -> ServedDataset:
        originals.append(datasets(registration))
        return originals[-1]

    checked = check(one, new_dataset)
    [original] = originals
    merges = one.dataset.get("merge_mode") in ("first", "aggregate")
    for way in ("ndjson", "arrow", "source"):
        same = not merges and datasets.dice.random() < 0.5
        copied = datasets(one.dataset if same else plain(one.dataset, datasets.dice, is_valid))
        if way == "source":
            copied.follow(original)
        elif checked.changes:
            copied.take(original.feed(way), way)
        copied.serve("compact")
        found = Counter(map(checked.model.text, copied.rows()))
        assert found == checked.model.rows(), (
            f"a copy by {way} differs: {one.text} into {copied.registration}"
        )
    return one.rows


@left_out(VARIABLE, "laws")
def test_service_of_many_histories(
    new_datasets: NewDatasets, record_property: Callable[[str, object], None]
) -> None:
    seeds = new_seeds()
    found = run(seeds, _history, new_datasets(next(iter(seeds))), is_valid, minutes=minutes())
    record_property("laws", found.text)
    found.check()
