"""No byte that is served to a reader which sees a part of a dataset has a value of the rest."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from typing import Final

import httpx2

from tests.open.crawl import Served, by_catalogue, by_scans, by_sharing, of_others
from tests.open.datasets import OpenDataset, Tenant
from tests.open.grants import NarrowDataset, SharedDataset
from tests.open.planted import marks, planted, restriction, visible_marks
from tests.support.commit_seed import commit_seed
from tests.support.left_out import left_out
from tests.support.service import Service

_GRANTS: Final = 2
_GRANTS_MANY: Final = 10
"""Of each dataset, where many readers are tried."""


def check_unseen(served: Iterable[tuple[str, httpx2.Response]], visible: set[int]) -> int:
    """How many answers there are. Raises AssertionError for one that has a hidden value."""
    answers = 0
    for place, answer in served:
        answers += 1
        headers = repr(list(answer.headers.multi_items())).encode()
        found = (marks(answer.content) | marks(headers)) - visible
        assert not found, (
            f"{place}, {answer.status_code}: values {sorted(found)[:5]} in {answer.content[:500]!r}"
        )
        assert answer.status_code < 500, (place, answer.text[:500])
    return answers


def check_dataset(
    dataset: OpenDataset,
    seed: int | str,
    *crawls: Callable[[NarrowDataset], Served],
    grants: int = _GRANTS,
) -> int:
    """How many answers of some keys of the dataset have no hidden value."""
    dice, every = random.Random(f"readers {seed}"), visible_marks(dataset)
    total = 0
    for _ in range(grants):
        narrow = NarrowDataset.of(dataset, restriction(dice))
        visible = visible_marks(narrow)
        assert every - visible, narrow.seen
        total += sum(check_unseen(crawl(narrow), visible) for crawl in crawls)
        narrow.client.close()
    return total


def check_search(dataset: OpenDataset, crawl: Callable[[OpenDataset], Served]) -> None:
    """The search finds all values of rows in what is served to a key that sees everything."""
    served = [answer for _, answer in crawl(dataset)]
    found = set[int]().union(*(marks(answer.content) for answer in served))
    latest = marks(repr(dataset.rows().to_pylist()).encode())
    assert latest
    assert latest <= found


def test_scans_have_no_hidden_value(service: Service) -> None:
    dataset = planted(Tenant.new(service), commit_seed())
    check_search(dataset, by_scans)
    assert check_dataset(dataset, commit_seed(), by_scans) > 10


def test_tables_have_no_hidden_value(service: Service) -> None:
    dataset = planted(Tenant.new(service), commit_seed())
    check_search(dataset, by_catalogue)
    assert check_dataset(dataset, commit_seed(), by_catalogue) > 10


def test_objects_of_a_key_that_sees_everything_show_nothing(service: Service) -> None:
    dataset = planted(Tenant.new(service), commit_seed())
    narrow = NarrowDataset.of(dataset, restriction(random.Random(f"others {commit_seed()}")))
    visible = visible_marks(narrow)
    answers = list(of_others(dataset, narrow))
    assert len(answers) > 10
    for place, answer in answers:
        assert answer.status_code in {403, 404}, place
        # A path has values of partitions, which the response repeats.
        assert marks(answer.content) <= visible | marks(place.encode()), place


@left_out("OPEN", "test-open")
def test_no_reader_gets_a_hidden_value(service: Service) -> None:
    """`OPEN_SERVED`: how many datasets and readers. `OPEN_SEED`: the first seed. A failure names its seed."""
    first, many = int(os.environ.get("OPEN_SEED", "0")), int(os.environ.get("OPEN_SERVED", "20"))
    for seed in range(first, first + -(-many // (2 * _GRANTS_MANY))):
        tenant = Tenant.new(service)
        dataset = planted(tenant, seed)
        try:
            check_dataset(dataset, seed, by_catalogue, by_scans, grants=_GRANTS_MANY)
            dice = random.Random(f"recipients {seed}")
            for _ in range(_GRANTS_MANY):
                shared = SharedDataset.with_recipient(dataset, restriction(dice))
                check_unseen(by_sharing(shared), visible_marks(shared))
                shared.client.close()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        finally:
            tenant.client.close()
