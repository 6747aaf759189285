"""Keys and recipients that see a part of a dataset: engines read what `/rows` gives them, at every kept version."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from tests.open.comparison import check_equal
from tests.open.datasets import OpenDataset, answered
from tests.open.engines import DUCKDB, EngineError, Reader
from tests.open.grants import NarrowDataset, restriction

_GRANTS: Final = 3
_OF_A_TENANT: Final = 50


def narrowed(dataset: OpenDataset, seed: int | str) -> Iterator[NarrowDataset]:
    """The dataset as some keys see it."""
    dice = random.Random(f"grants {seed}")
    fields = answered(dataset.client.get(dataset.path)).json()["schema"]["fields"]
    columns = [each["name"] for each in fields if each["name"].startswith("x")]
    for _ in range(_GRANTS):
        yield NarrowDataset.of(dataset, restriction(dice, columns))


def check_seen(reader: Reader, dataset: NarrowDataset) -> None:
    """Compares the rows of each kept version in each warehouse; where the grant does not fit, the engine fails."""
    for version in dataset.kept_versions():
        expected = None if dataset.refuses(version) else dataset.rows(version)
        for warehouse in reader.engine.warehouses:
            place = f"{dataset.name}, {dataset.seen}, version {version}, {warehouse}"
            if expected is None:
                with pytest.raises(EngineError):
                    reader.read(dataset.address, warehouse=warehouse, version=version)
                continue
            found = reader.read(dataset.address, warehouse=warehouse, version=version)
            try:
                check_equal(reader.engine, found, expected)
            except AssertionError as error:
                raise AssertionError(f"{place}: {error}") from None


def test_scans_have_what_keys_see_of_a_few_histories(few_histories: Sequence[OpenDataset]) -> None:
    for dataset in few_histories:
        for narrow in narrowed(dataset, dataset.name):
            for version in narrow.kept_versions():
                if narrow.refuses(version):
                    plan = narrow.client.post(f"{narrow.path}/scans", json={"version": version})
                    assert plan.status_code == 403
                else:
                    check_equal(DUCKDB, narrow.scanned(version), narrow.rows(version))
