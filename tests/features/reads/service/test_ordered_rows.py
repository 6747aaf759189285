"""Pages of rows in an order, against sorted lists; and how much is read for them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from app.features.objects.service.secrets import KnownSecrets
from app.features.reads.service.rows import QueryType, ReadTable, RowQuery
from app.features.reads.service.sealed_places import SealedPlaces
from app.features.reads.values import RowPage
from app.infra.files.errors import OrderTooLarge
from app.infra.files.slices import ordered_walk
from app.infra.files.slices.table_walk import TableWalk
from app.infra.files.storage import LocalStorage
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import AddField
from app.kernel.format.errors import InvalidRequest, MaskedColumn
from app.kernel.format.operation import Operation
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.features.reads.service.test_read_table import Counted, use_case
from tests.support.lake_table import Write
from tests.support.retained_versions import versions_of
from tests.support.sealed_places import SEALED_PLACES
from tests.support.shares import share
from tests.support.table_feed import later_corrections_of
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    comparable,
    kind_of,
    new_versioned_table,
    written_versioned_table,
)

Row = dict[str, Any]
Order = Sequence[tuple[str, bool]]
ORDERS: tuple[str, ...] = ("n:desc", "note", "note:desc,n", "day:desc,n:asc", "id", "n,note:desc,id:desc")


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], VersionedTable]:
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))
    return cache(lambda kind: written_versioned_table(storage, kind))


def pages(
    versioned: VersionedTable,
    *,
    reading: ReadTable | None = None,
    access: RowAccess = EVERYTHING,
    **query: Any,
) -> Iterator[RowPage]:
    reading = reading or use_case(versioned)
    token = None
    while True:
        page = reading.page(versioned.dataset, RowQuery(**query, page_token=token), access)
        yield page
        token = page.next_page_token
        if token is None:
            return


def rows(versioned: VersionedTable, **query: Any) -> list[Row]:
    return [row for page in pages(versioned, **query) for row in page.rows.to_pylist()]


def order_of(text: str) -> Order:
    return [(part.partition(":")[0], part.endswith(":desc")) for part in text.split(",")]


def compared(one: Row, other: Row, order: Order) -> int:
    """Less than 0 if the first row comes first."""
    for name, descending in order:
        left, right = one[name], other[name]
        if left == right:
            continue
        if left is None or right is None:
            return 1 if left is None else -1
        return 1 if (left > right) is not descending else -1
    return 0


def in_order(found: Sequence[Row], order: Order) -> list[Row]:
    return sorted(found, key=functools.cmp_to_key(lambda one, other: compared(one, other, order)))


@share(4)
@pytest.mark.parametrize("kind", KINDS)
def test_pages_join_to_all_rows_in_order(
    versioned_tables: Callable[[str], VersionedTable], kind: str
) -> None:
    versioned = versioned_tables(kind)
    definition = versioned.table.dataset
    for number, text in enumerate(ORDERS):
        version = (4, len(versioned.rows) - 1)[number % 2]
        expected = versioned.rows[version]
        total = [*order_of(text), *((name, False) for name in definition.record_key)]
        for limit in (2, 9, 1_000):
            found = rows(versioned, order_by=(text,), version=version, limit=limit)
            assert comparable(found) == comparable(expected), text
            if definition.keyed:
                assert found == in_order(expected, total), (text, limit)
            else:
                assert found == in_order(found, order_of(text)), (text, limit)


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read none", "key_dynamic with deletion vectors"])
def test_order_holds_beside_filter_columns_partitions_and_meta(
    versioned_tables: Callable[[str], VersionedTable], kind: str
) -> None:
    versioned = versioned_tables(kind)
    key = [(name, False) for name in versioned.table.dataset.record_key]
    wanted = [row for row in versioned.rows[-1] if row["n"] > 20 and row["day"] == DAYS[1]]
    query: dict[str, Any] = {"where": "n > 20", "partitions": (f"day={DAYS[1]}",), "limit": 2}
    found = rows(versioned, order_by=("note:desc", "n"), columns=("id", "n"), **query)
    expected = in_order(wanted, [("note", True), ("n", False), *key])
    assert found == [{"id": row["id"], "n": row["n"]} for row in expected]
    with_meta = rows(versioned, order_by=("n:desc",), meta=True, **query)
    assert [row["id"] for row in with_meta] == [row["id"] for row in in_order(wanted, [("n", True), *key])]
    assert all(row["_hw_commit_seqno"] for row in with_meta)


def test_order_of_base_files_is_that_of_their_rows(
    versioned_tables: Callable[[str], VersionedTable],
) -> None:
    versioned = versioned_tables("merge_on_read none")
    for version in range(len(versioned.rows)):
        query: dict[str, Any] = {"version": version, "query_type": QueryType.READ_OPTIMIZED, "limit": 3}
        found = rows(versioned, order_by=("n",), **query)
        assert found == in_order(rows(versioned, **query), [("n", False), ("day", False), ("id", False)])


def test_restricted_readers_see_their_rows_in_order(
    versioned_tables: Callable[[str], VersionedTable],
) -> None:
    for kind in ("copy_on_write", "merge_on_read none", "unaware"):
        versioned = versioned_tables(kind)
        access = RowAccess(where=("n < 50",), masked=("note",))
        found = rows(versioned, access=access, order_by=("n:desc", "id", "day"), limit=2)
        visible = [{**row, "note": None} for row in versioned.rows[-1] if row["n"] < 50]
        assert found == in_order(visible, [("n", True), ("id", False), ("day", False)])


def test_order_by_a_hidden_column_is_refused(versioned_tables: Callable[[str], VersionedTable]) -> None:
    versioned = versioned_tables("copy_on_write")
    masked = RowAccess(masked=("n", "id"))
    for text in ("n", "day,n:desc", "id"):
        with pytest.raises(MaskedColumn):
            rows(versioned, access=masked, order_by=(text,))


def test_rows_that_are_equal_in_an_order_do_not_show_the_order_of_a_hidden_key(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    fields = [CreateField(name="id", type="int32"), CreateField(name="level", type="int32")]
    fields += [CreateField(name="note", type="string")]
    definition = define_dataset(
        CreateDataset(name="t", schema=CreateSchema(fields=fields), record_key=["id"])
    )
    versioned = new_versioned_table(LocalStorage(tmp_path_factory.mktemp("s")), definition)
    written = [{"id": number, "level": number % 2, "note": f"n{number}"} for number in range(60)]
    versioned.write(Write(operation=Operation.UPSERT, rows=written), written)
    masked = RowAccess(masked=("id",))

    def keys(**query: Any) -> list[int]:
        """The hidden keys in the order of the rows; the note of a row contains its key."""
        found = rows(versioned, access=masked, order_by=("level:desc",), **query)
        assert all(row["id"] is None for row in found)
        return [int(row["note"][1:]) for row in found]

    found = keys(limit=1_000)
    assert sorted(found) == list(range(60))
    assert [key % 2 for key in found] == [1] * 30 + [0] * 30
    steps = [later > earlier for earlier, later in pairwise(found[:30])]
    assert 5 < sum(steps) < 24
    # Pages of any size have the same order.
    assert keys(limit=7) == keys(limit=1) == found
    # Another secret makes another order: it cannot be computed by who guesses keys.
    places = SealedPlaces(secrets=KnownSecrets(lambda: {1: b"other" * 8}))
    assert keys(limit=1_000, reading=replace(use_case(versioned), places=places)) != found
    # A reader that sees the key gets rows that are equal in its order.
    visible = rows(versioned, access=RowAccess(masked=("note",)), order_by=("level",), limit=9)
    assert [row["id"] for row in visible] == [*range(0, 60, 2), *range(1, 60, 2)]


def test_tokens_name_no_partition_and_belong_to_their_order(
    versioned_tables: Callable[[str], VersionedTable],
) -> None:
    versioned = versioned_tables("copy_on_write")
    reading = use_case(versioned)
    access = RowAccess(where=("n >= 0",))
    first = reading.page(versioned.dataset, RowQuery(limit=1, order_by=("n",)), access)
    assert first.next_page_token is not None
    for query, reader in (
        (RowQuery(limit=1, order_by=("n:desc",), page_token=first.next_page_token), access),
        (RowQuery(limit=1, page_token=first.next_page_token), access),
        (RowQuery(limit=1, order_by=("n",), page_token=first.next_page_token), EVERYTHING),
    ):
        with pytest.raises(InvalidRequest):
            reading.page(versioned.dataset, query, reader)


@pytest.mark.parametrize(
    ("order_by", "detail"),
    [
        (("nope",), "there is no column 'nope'"),
        (("n:up",), "expected n:asc or n:desc, got n:up"),
        (("n,n:desc",), "'n' is listed more than once"),
        (("",), "there is no column ''"),
        (("tags",), "lists, maps and structs have no order"),
        (tuple(["n"] * 101), "expected 1–100 columns"),
    ],
)
def test_columns_that_have_no_order_are_refused(
    tmp_path_factory: pytest.TempPathFactory, order_by: tuple[str, ...], detail: str
) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path_factory.mktemp("s")), kind_of("copy_on_write"))
    versioned.table.dataset = evolve(
        versioned.table.dataset, [AddField(field=CreateField(name="tags", type="list<string>"))]
    )
    with pytest.raises(InvalidRequest, match=detail):
        rows(versioned, order_by=order_by)


def test_name_with_a_comma_or_an_ending_is_that_column(tmp_path_factory: pytest.TempPathFactory) -> None:
    names = ("a,b", "c:desc")
    fields = [CreateField(name=name, type="int32") for name in ("id", *names)]
    definition = define_dataset(
        CreateDataset(name="t", schema=CreateSchema(fields=fields), record_key=["id"])
    )
    versioned = new_versioned_table(LocalStorage(tmp_path_factory.mktemp("s")), definition)
    written = [{"id": id_, "a,b": -id_, "c:desc": id_ % 3} for id_ in range(6)]
    versioned.write(Write(operation=Operation.UPSERT, rows=written), written)
    for text, order in (
        ("a,b", [("a,b", False)]),
        ("a,b:desc", [("a,b", True)]),
        ("c:desc", [("c:desc", False), ("id", False)]),
        ("c:desc:desc,id", [("c:desc", True), ("id", False)]),
    ):
        assert rows(versioned, order_by=(text,), limit=2) == in_order(written, order), text


TYPES = {
    "boolean": (True, False),
    "int8": (-3, 0, 7),
    "double": (-1.5, 0.0, 1e300),
    "decimal(9,2)": (Decimal("-1.50"), Decimal("0.00"), Decimal("7.25")),
    "string": ("", "a'b", "z" * 90, "ü"),
    "binary": (b"", b"\x00\xff", b"z"),
    "date": (date(1969, 1, 1), date(2026, 11, 21)),
    "timestamp": tuple(
        datetime(2026, 11, 21, tzinfo=UTC) + timedelta(microseconds=each) for each in range(3)
    ),
    "timestamp_ntz": tuple(datetime.fromisoformat(f"2026-11-0{day}T00:00:00") for day in (1, 2)),
}


@pytest.mark.parametrize("data_type", TYPES)
def test_values_of_every_type_are_ordered_over_many_files(
    tmp_path_factory: pytest.TempPathFactory, data_type: str
) -> None:
    fields = [CreateField(name="id", type="int32"), CreateField(name="v", type=data_type)]
    definition = define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields)))
    versioned = new_versioned_table(LocalStorage(tmp_path_factory.mktemp("s")), definition)
    values = [*TYPES[data_type], None]
    chance = random.Random(7)
    written: list[Row] = []
    for start in range(0, 60, 10):
        # Files of few values, so that bounds exclude some.
        some = chance.sample(values, 2)
        added = [{"id": start + each, "v": chance.choice(some)} for each in range(10)]
        written += added
        versioned.write(Write(operation=Operation.INSERT, rows=added), written)
    for descending in (False, True):
        text = "v:desc,id" if descending else "v,id"
        found = rows(versioned, order_by=(text,), limit=7)
        assert [row["id"] for row in found] == [
            row["id"] for row in in_order(written, [("v", descending), ("id", False)])
        ]


def latest(versioned: VersionedTable, tables: Counted, **query: Any) -> RowPage:
    return use_case(versioned, tables).page(versioned.dataset, RowQuery(**query))


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> VersionedTable:
    """Files of rows without a key, each of which has the 20 next values of `n`, and all values of `note`."""
    versioned = new_versioned_table(LocalStorage(tmp_path_factory.mktemp("s")), kind_of("unaware"))
    written: list[Row] = []
    for number in range(12):
        added = [
            {"id": each, "day": DAYS[0], "n": number * 20 + each, "note": str(each % 5)} for each in range(20)
        ]
        written += added
        versioned.write(Write(operation=Operation.INSERT, rows=added), written)
    return versioned


def test_only_files_that_may_have_the_first_rows_are_read(many_files: VersionedTable) -> None:
    tables = Counted(many_files.table.storage, reader=many_files.table.reader)
    page = latest(many_files, tables, order_by=("n:desc",), limit=10)
    assert page.rows.column("n").to_pylist() == list(range(239, 229, -1))
    assert len({group for group, _ in tables.read}) == 1
    following = Counted(many_files.table.storage, reader=many_files.table.reader)
    query = RowQuery(order_by=("n:desc",), limit=12, page_token=page.next_page_token)
    page = use_case(many_files, following).page(many_files.dataset, query)
    assert page.rows.column("n").to_pylist() == list(range(229, 217, -1))
    # One row shows where the page before ended.
    assert sorted(count for _, count in following.read) == [1, 20, 20]


def test_reading_has_a_bound_that_names_the_read_job(
    many_files: VersionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_walk, "FILES_MAX", 3)
    assert len(rows(many_files, order_by=("n",), limit=10)) == 240
    with pytest.raises(OrderTooLarge, match="Start a read job"):
        rows(many_files, order_by=("note",), limit=10)
    monkeypatch.setattr(ordered_walk, "FILES_MAX", 256)
    monkeypatch.setattr(ordered_walk, "ROWS_MAX", 100)
    with pytest.raises(OrderTooLarge):
        rows(many_files, order_by=("note",), limit=10)
    monkeypatch.setattr(ordered_walk, "LISTED_FILES_MAX", 11)
    with pytest.raises(OrderTooLarge):
        rows(many_files, order_by=("n",), limit=10)


def test_pages_in_order_have_a_bound_in_bytes(many_files: VersionedTable) -> None:
    walk = TableWalk(groups=Counted(many_files.table.storage, reader=many_files.table.reader), bytes_max=300)
    reading = ReadTable(
        places=SEALED_PLACES,
        catalog=many_files,
        timeline=many_files,
        versions=versions_of(many_files),
        walk=walk,
        later=later_corrections_of(many_files),
    )
    found = list(pages(many_files, reading=reading, order_by=("n:desc",), limit=100))
    assert len(found) > 12
    values = [row["n"] for page in found for row in page.rows.to_pylist()]
    assert values == list(range(239, -1, -1))
