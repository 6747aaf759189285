"""Which way a view follows its inputs, and what dataset it is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from app.features.views.new_view import CreateView, define_view
from app.features.views.refresh_plan import fitted_plan, follows_changes, rows_sql
from app.features.views.values import ViewDefinition, ViewMode
from app.kernel.format.dataset import DatasetDefinition, TableType
from app.kernel.format.definition.new_dataset import CreateBucket
from app.kernel.format.errors import InvalidDataset, InvalidView
from tests.support.view_inputs import DATASETS, planned


@pytest.mark.parametrize(
    ("sql", "key", "follows"),
    [
        ("SELECT id, paid FROM orders", ["id"], True),
        ("SELECT id AS number, upper(customer) AS who FROM orders WHERE paid", ["number"], True),
        # More than the key of the input distinguishes rows just as well.
        ("SELECT id, customer FROM orders", ["id", "customer"], True),
        ("SELECT id, customer FROM orders", ["customer"], False),
        ("SELECT id, customer FROM orders", [], False),
        ("SELECT id + 1 AS id FROM orders", ["id"], False),
        ('SELECT name, since FROM "eu.customers"', ["name", "since"], True),
        ('SELECT name, vip FROM "eu.customers"', ["name"], False),
        ("SELECT item FROM lines", ["item"], False),
        ("SELECT DISTINCT id FROM orders", ["id"], False),
        ("SELECT id, count(*) AS n FROM orders GROUP BY id", ["id"], False),
    ],
)
def test_view_follows_changes_if_each_names_its_row(sql: str, key: list[str], follows: bool) -> None:
    assert follows_changes(planned(sql), DATASETS, key) is follows


@pytest.mark.parametrize(
    ("sql", "key", "checked"),
    [
        ("SELECT id, customer FROM orders", ["id"], False),
        ("SELECT id, customer FROM orders", ["id", "customer"], False),
        ("SELECT id, customer FROM orders", ["customer"], True),
        ("SELECT id, customer FROM orders", [], False),
        ("SELECT customer, count(*) AS n FROM orders GROUP BY customer", ["customer"], True),
        ("SELECT id, count(*) AS n FROM orders GROUP BY id", ["id"], False),
    ],
)
def test_key_is_checked_unless_it_is_provably_unique(sql: str, key: list[str], checked: bool) -> None:
    text = rows_sql(planned(sql), {"orders": "input"}, key)
    assert ("PARTITION BY" in text) is checked
    assert ("assert_true" in text) is checked


def viewed(sql: str) -> ViewDefinition:
    return ViewDefinition(sql=sql, plan=planned(sql), mode=ViewMode.RECOMPUTE)


def changed(dataset: DatasetDefinition, column: str, /, **values: str) -> DatasetDefinition:
    fields = tuple(
        replace(field, **values) if field.name == column else field for field in dataset.schema.fields
    )
    return replace(dataset, schema=replace(dataset.schema, fields=fields))


def test_inputs_must_have_the_columns_of_the_query() -> None:
    view = viewed("SELECT id, price FROM orders")
    assert fitted_plan(view, DATASETS) == view.plan
    renamed = {"orders": changed(DATASETS["orders"], "price", name="cost")}
    with pytest.raises(InvalidView, match='"price"'):
        fitted_plan(view, renamed)
    # Those that it does not read may go.
    fitted_plan(viewed("SELECT id FROM orders"), renamed)


def test_wider_column_is_bound_again_where_the_result_keeps_its_types() -> None:
    view = viewed("SELECT id, CAST(byte AS string) AS b FROM orders")
    wider = {"orders": changed(DATASETS["orders"], "byte", type="double")}
    plan = fitted_plan(view, wider)
    assert plan.sources[0].columns["byte"] == "DOUBLE"
    assert plan.schema == view.plan.schema
    # A column of the result that would be wider reads as before, if a value that does not fit fails the refresh.
    view = viewed("SELECT id, byte FROM orders")
    assert fitted_plan(view, {"orders": changed(DATASETS["orders"], "byte", type="int64")}) == view.plan
    with pytest.raises(InvalidView, match="type DOUBLE now"):
        fitted_plan(view, wider)


def define(sql: str, **settings: Any) -> Any:
    return define_view(CreateView(name="shown", sql=sql, **settings), planned(sql))


def test_view_is_a_dataset_of_the_columns_of_its_sql() -> None:
    defined = define("SELECT id, customer, byte FROM orders", table_type=TableType.MERGE_ON_READ)
    assert [(field.name, field.type, field.nullable) for field in defined.schema.fields] == [
        ("id", "int64", False),
        ("customer", "string", True),
        ("byte", "int16", True),
    ]
    assert (defined.record_key, defined.table_type) == (("id",), TableType.MERGE_ON_READ)
    assert define("SELECT id FROM orders", record_key=[]).record_key == ()
    assert define("SELECT count(*) AS n FROM orders").record_key == ()
    # A column is required in a key only: those of inputs may be relaxed.
    assert all(field.nullable for field in define("SELECT id FROM orders", record_key=[]).schema.fields)


@pytest.mark.parametrize(
    ("sql", "settings", "pointers"),
    [
        ("SELECT id FROM orders", {"record_key": ["nope"]}, ["/record_key/0"]),
        ("SELECT id, tags FROM orders", {"record_key": ["tags"]}, ["/record_key/0"]),
        ("SELECT count(*) AS n FROM orders", {"bucket": CreateBucket(count=4)}, ["/bucket/mode"]),
        ("SELECT id FROM orders", {"partition_by": ["day"]}, ["/partition_by/0", "/partition_by/0"]),
    ],
)
def test_views_obey_the_rules_of_datasets(sql: str, settings: dict[str, Any], pointers: list[str]) -> None:
    with pytest.raises(InvalidDataset) as refusal:
        define(sql, **settings)
    assert [error["pointer"] for error in refusal.value.facts["errors"]] == pointers
