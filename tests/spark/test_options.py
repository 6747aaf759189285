"""Options of reads and writes that cannot be, found by the data source before Spark starts a task."""

from datetime import date

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from headwater_client import Headwater, Problem
from headwater_client.spark import HeadwaterDataSource, InvalidOption
from headwater_client.spark.arrow_types import arrow_schema


@pytest.fixture
def source(connection):
    """The data source with options."""

    def make(path="orders", **options):
        return HeadwaterDataSource(CaseInsensitiveDict({"path": path, **connection, **options}))

    return make


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wher": "id = 1"}, "unknown option wher: expected api_key, as_of, begin"),
        ({"version": "x"}, "option: .* `int"),
        ({"as_of": "yesterday"}, "option as_of: expected a time"),
        ({"query": "changed"}, "Invalid enum value 'changed'"),
        ({"query": "changes", "meta": "true"}, "option meta: query changes has no such columns"),
        (
            {"query": "changes", "corrected_since": "true"},
            "option corrected_since: query changes has no such",
        ),
        ({"query": "changes", "changes_per_task": "0"}, "changes_per_task: expected a number from 1 on"),
        ({"meta": "maybe"}, "option: .*meta"),
        ({"path": ""}, "name the dataset"),
    ],
)
def test_wrong_options_of_reads_are_explained(source, options, message):
    with pytest.raises(InvalidOption, match=message):
        source(**options).schema()


def test_names_of_options_have_no_case(orders, source):
    assert source(COLUMNS="note,id", checkpointLocation="x").schema().fieldNames() == ["note", "id"]


def test_url_and_key_come_from_the_environment(orders, connection, monkeypatch):
    options = CaseInsensitiveDict({"path": "orders"})
    for name in ("HEADWATER_URL", "HEADWATER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidOption, match="set the options url and api_key"):
        HeadwaterDataSource(options).schema()
    monkeypatch.setenv("HEADWATER_URL", connection["url"])
    monkeypatch.setenv("HEADWATER_API_KEY", connection["api_key"])
    assert HeadwaterDataSource(options).schema().fieldNames() == ["id", "note", "day"]


@pytest.fixture
def table(connection):
    """The data source with the properties of a CREATE TABLE with options, in a session of the tenant."""

    class Registered(HeadwaterDataSource):
        _session = connection

    def make(**options):
        given = {"dataset": "orders", **options}
        prefixed = {f"option.{name}": value for name, value in given.items()}
        return Registered(
            CaseInsensitiveDict({"provider": "headwater", "owner": "root", **given, **prefixed})
        )

    return make


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api_key": "key"}, "option api_key: Spark's catalogue would store the key"),
        ({"url": "http://elsewhere"}, "the table is of the service http://elsewhere, the session of"),
        ({"location": "folder"}, "name the dataset with the option dataset"),
        ({"operation": "delete"}, r"unknown option operation: .*INSERT INTO t WITH \(…\)"),
        ({"push_filters": "true"}, r"SELECT … FROM t WITH \(push_filters = 'true'\)"),
        ({"dataset": ""}, "name the dataset: CREATE TABLE t USING headwater OPTIONS"),
        ({"path": "returns"}, "one dataset only: path is 'returns', dataset 'orders'"),
        ({"dataset": "nothing"}, "there is no dataset nothing: register it by create_dataset"),
        ({"dataset": "nothing", "create": "true"}, "or set the options create 'true', fields"),
        ({"fields": "id int64, note"}, "option fields: expected names with types .*, not 'note'"),
        (
            {"fields": "id int64, note int32, day date"},
            "exists and has the columns id int64, note string, day date",
        ),
        ({"record_key": "id"}, r"option record_key: dataset orders exists and has \('id', 'day'\)"),
    ],
)
def test_wrong_options_of_tables_are_explained(orders, table, options, message):
    with pytest.raises(InvalidOption, match=message):
        table(**options).schema()


def test_a_table_registers_its_dataset_once(headwater, table):
    fields = "id int64, `a,b`: struct<x: decimal(4, 1), y: list<string>>, at timestamp"
    options = {
        "dataset": "made",
        "create": "true",
        "fields": fields,
        "record_key": "id",
        "ordering_field": "at",
    }
    for source in (table(**options), table(**options)):
        assert source.schema().fieldNames() == ["id", "a,b", "at"]
    made = headwater.get_dataset("made")
    assert [field.type for field in made.schema.fields][1] == "struct<x: decimal(4, 1), y: list<string>>"
    assert (made.record_key, made.ordering_field, made.version) == (("id",), "at", 0)


def test_reads_of_a_table_have_its_options(orders, table, connection):
    schema = table(columns="note", url=connection["url"] + "/").schema()
    assert connection["api_key"] not in schema.json()
    source = type(table())
    assert source(CaseInsensitiveDict()).reader(schema)._settings.columns == ("note",)
    # Options that name a dataset are those of another read, which only has the columns of the table.
    assert source(CaseInsensitiveDict({"dataset": "orders"})).reader(schema)._settings.columns is None
    with pytest.raises(InvalidOption, match="the table is of the service"):
        source(CaseInsensitiveDict({"url": "http://elsewhere"})).reader(schema)


@pytest.mark.parametrize(
    ("options", "code"),
    [({"version": "99"}, "invalid-request"), ({"tag": "x"}, "not-found"), ({"path": "nothing"}, "not-found")],
)
def test_problems_of_the_service_are_raised(orders, source, options, code):
    with pytest.raises(Problem) as refused:
        source(**options).schema()
    assert refused.value.code == code


def test_problems_are_raised_when_a_read_is_planned(orders, source):
    filtered = source(where="id =")
    with pytest.raises(Problem, match="invalid-filter"):
        filtered.reader(filtered.schema()).partitions()
    ahead = source(query="changes", since="99")
    with pytest.raises(Problem, match="offset-ahead"):
        ahead.reader(ahead.schema()).partitions()


@pytest.mark.parametrize(
    ("options", "overwrite", "message"),
    [
        ({"operation": "merge"}, False, "Invalid enum value 'merge'"),
        ({"operation": "delete_partition"}, False, "has no rows"),
        ({"operation": "delete"}, True, "does not go together"),
        ({"operaton": "upsert"}, False, "unknown option operaton"),
        ({"merge_schema": "maybe"}, False, "option: "),
        ({"metadata": "nightly-7"}, False, "option metadata: expected a JSON object of texts"),
        ({"metadata": '{"run": 7}'}, False, "option metadata: expected a JSON object of texts"),
    ],
)
def test_wrong_options_of_writes_are_explained(orders, source, options, overwrite, message):
    with pytest.raises(InvalidOption, match=message):
        source(**options).writer(StructType(), overwrite)


def test_rows_of_a_key_are_not_stored_as_sent(orders, source):
    schema = source().schema()
    rows = pa.Table.from_pylist([{"id": 1, "note": "a", "day": date(2026, 11, 20)}] * 2, arrow_schema(schema))
    writer = source(operation="bulk_insert", combine="false").writer(schema, False)
    uploaded = writer.write(iter(rows.to_batches()))
    with pytest.raises(Problem) as refused:
        writer.commit([uploaded])
    assert [error.pointer for error in refused.value.errors] == ["/combine"]


def test_metadata_is_that_of_the_commit(orders, source, connection):
    schema = source().schema()
    rows = pa.Table.from_pylist([{"id": 1, "note": "a", "day": date(2026, 11, 20)}], arrow_schema(schema))
    writer = source(metadata='{"Run": "7"}').writer(schema, False)
    writer.commit([writer.write(iter(rows.to_batches()))])
    with Headwater(**connection) as headwater:
        assert next(iter(headwater.change_pages(orders))).commits[-1].metadata == ({"Run": "7"},)


def test_values_of_options_do_not_show_the_key(orders, source, connection):
    schema = source().schema()
    for part in (source().reader(schema), source().writer(schema, False)):
        shown = " ".join(repr(value) for value in (part, *vars(part).values()))
        assert connection["api_key"] not in shown
