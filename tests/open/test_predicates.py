"""Conditions select the same rows in every engine, and plans of the service have no file more than a client's."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.open.comparison import check_equal
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset
from tests.open.engines import ENGINES, PYICEBERG, SPARK, Engine
from tests.open.predicates import predicate
from tests.support.left_out import left_out

pytestmark = left_out("OPEN", "test-open")
_MANY = 40
_COLUMNS = ["id", "text", "small", "at"]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_conditions_select_the_rows_that_the_service_selects(
    reader: Readers, table: Callable[[str], OpenDataset], engine: Engine
) -> None:
    dataset, running, dice = table("flat"), reader(engine), random.Random(engine.name)
    versions = dataset.kept_versions()
    for _ in range(_MANY):
        where, version = predicate(dice), dice.choice(versions)
        columns = dice.choice((None, _COLUMNS))
        expected = dataset.rows(version, where=where, columns=columns)
        warehouse = dice.choice(engine.warehouses)
        plan = {"planning": dice.choice(("client", "server"))} if engine in (PYICEBERG, SPARK) else {}
        found = running.read(
            dataset.address, warehouse=warehouse, version=version, where=where, columns=columns, **plan
        )
        try:
            check_equal(engine, found, expected)
        except AssertionError as error:
            raise AssertionError(f"{where}, version {version}, {warehouse}: {error}") from None


@pytest.mark.parametrize("engine", [PYICEBERG, SPARK], ids=lambda engine: engine.name)
@pytest.mark.parametrize("name", ["flat", "parted_0", "evolved"])
def test_plans_of_the_service_select_the_rows_that_plans_of_the_client_select(
    reader: Readers, table: Callable[[str], OpenDataset], engine: Engine, name: str
) -> None:
    dataset, running = table(name), reader(engine)
    for version in dataset.kept_versions():
        expected = dataset.rows(version, where="id >= 5")
        for planning in ("client", "server"):
            found = running.read(dataset.address, version=version, where="id >= 5", planning=planning)
            check_equal(engine, found, expected)


def test_service_plans_no_file_that_the_client_does_not_plan(
    reader: Readers, table: Callable[[str], OpenDataset]
) -> None:
    running, dice = reader(PYICEBERG), random.Random("files")
    for name in ("flat", "parted_0", "parted_1"):
        dataset = table(name)
        for _ in range(_MANY // 2):
            where = predicate(dice) if name == "flat" else f"country = '{dice.choice(('de', 'a/b', 'ü%20'))}'"
            version = dice.choice(dataset.kept_versions())
            plans = [
                running.read(dataset.address, version=version, where=where, planning=planning, files=True)
                for planning in ("client", "server")
            ]
            client, server = ({str(path) for path in plan["path"]} for plan in plans)
            # The service knows more of a file than the bounds of its columns that manifests have.
            assert server <= client, f"{name}, {where}, version {version}"
