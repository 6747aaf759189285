"""Which way a view follows its inputs, and what dataset it is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from app.features.views.new_view import CreateView, define_view
from app.features.views.refresh_plan import fitted_plan, follows_changes, rows_sql
from app.features.views.values import ViewDefinition, ViewMode
from app.kernel.format.dataset import DatasetDefinition, MergeMode, TableType
from app.kernel.format.definition.new_dataset import CreateBucket
from app.kernel.format.errors import InvalidDataset, InvalidView
from app.kernel.sql.queries import bind_view, parse_view
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
    return define_view(CreateView(name="shown", sql=sql, **settings), planned(sql), DATASETS)


@pytest.mark.parametrize(
    ("sql", "settings", "event_time_field"),
    [
        ("SELECT id, made FROM orders", {}, "made"),
        ("SELECT id, note, made AS taken FROM orders WHERE paid", {}, "taken"),
        ("SELECT note, made FROM orders", {}, "made"),
        ("SELECT id, note FROM orders", {}, None),
        ("SELECT id, date_add(day, 1) AS day FROM orders", {}, None),
        ("SELECT id, made FROM orders", {"event_time_field": None}, None),
        ("SELECT id, made, day FROM orders", {"event_time_field": "day"}, "day"),
        ("SELECT day, max(made) AS made FROM orders GROUP BY day", {}, None),
        ("SELECT day, max(made) AS made FROM orders GROUP BY day", {"event_time_field": "made"}, "made"),
    ],
)
def test_event_time_is_that_of_the_input_where_it_is_passed_on(
    sql: str, settings: dict[str, Any], event_time_field: str | None
) -> None:
    orders = DATASETS["orders"]
    fields = tuple(
        replace(field, id=90 + number, name=name, type=type_)
        for number, (name, type_) in enumerate(
            (("made", "timestamp(ms)"), ("day", "date"), ("note", "string"))
        )
        for field in orders.schema.fields[-1:]
    )
    known = {field.name for field in fields}
    kept = tuple(field for field in orders.schema.fields if field.name not in known)
    inputs = {
        "orders": replace(
            orders, schema=replace(orders.schema, fields=(*kept, *fields)), event_time_field="made"
        )
    }
    plan = bind_view(parse_view(sql), inputs)
    defined = define_view(CreateView(name="shown", sql=sql, **settings), plan, inputs)
    assert defined.event_time_field == event_time_field


def test_ordering_field_of_a_view_is_not_compared_by_its_refreshes() -> None:
    defined = define("SELECT id, price FROM orders", ordering_field="price")
    assert (defined.ordering_field, defined.merge_mode) == ("price", MergeMode.COMMIT_TIME)
    assert defined.deletes.keep_seconds == 0
    for settings in ({"ordering_field": "id"}, {"ordering_field": "nothing"}, {"event_time_field": "id"}):
        [member] = settings
        with pytest.raises(InvalidDataset) as refusal:
            define("SELECT id, price FROM orders", **settings)
        assert refusal.value.facts["errors"][0]["pointer"] == f"/{member}"
    with pytest.raises(InvalidDataset) as refusal:
        define("SELECT price FROM orders", ordering_field="price")
    assert [each["pointer"] for each in refusal.value.facts["errors"]] == ["/ordering_field"]


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
