"""Read jobs through the typed client."""

import pyarrow.csv as pacsv
import pytest

from headwater_client import OrderBy, Problem
from headwater_client.calls import download as client_download


@pytest.fixture(autouse=True)
def worker(service):
    with service.working():
        yield


def test_rows_are_read_as_a_table_and_as_files(headwater, orders, tmp_path, monkeypatch):
    monkeypatch.setattr(client_download, "_PART_BYTES", 7)
    headwater.write_rows(orders, [{"id": n, "note": f"{n}"} for n in range(50)], wait=30)
    table = headwater.read(
        orders,
        where="id >= 10",
        order_by=[OrderBy(column="id", descending=True)],
        columns=["id"],
        limit=5,
        wait=30,
    )
    assert table.to_arrow().to_pydict() == {"id": [49, 48, 47, 46, 45]}
    (path,) = headwater.read_to_files(orders, tmp_path / "out", format="csv", order_by=["id"], wait=30)
    assert path.name == "part-00001.csv"
    assert pacsv.read_csv(path).column("id").to_pylist() == list(range(50))


def test_first_rows_in_an_order_are_read_without_a_job(headwater, orders):
    headwater.write_rows(orders, [{"id": n, "note": f"{n % 3}"} for n in range(7)], wait=30)
    order = [OrderBy(column="note", descending=True), "id"]
    ids = [row["id"] for row in headwater.rows(orders, order_by=order, limit=3)]
    assert ids == [2, 5, 1, 4, 0, 3, 6]
    first = next(headwater.row_tables(orders, order_by=order, limit=2))
    assert first.to_arrow().column("id").to_pylist() == [2, 5]


def test_changed_rows_are_read(headwater, orders):
    headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], wait=30)
    headwater.write_rows(orders, [{"id": 2, "note": "c"}], wait=30)
    # As files it is the same table.
    assert headwater.read(orders, query="incremental", begin=1, wait=30).to_arrow().to_pylist() == [
        {"id": 2, "note": "c"}
    ]
    job = headwater.start_read(orders, format="arrow", disposition="files", wait=30)
    assert headwater.read_result(job).to_arrow().num_rows == 2
    assert headwater.result_files(job).rows == 2


def test_refused_read_raises_a_problem(headwater, orders):
    with pytest.raises(Problem) as refused:
        headwater.read(orders, query="incremental", wait=30)
    assert refused.value.code == "invalid-request"


def test_feed_starts_with_the_table(headwater, orders):
    headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], wait=30)
    headwater.write_rows(orders, [{"id": 2, "note": "c"}], wait=30)
    pages = list(headwater.change_pages(orders, since="snapshot", limit=1))
    assert [(change.op, change.row["note"]) for page in pages for change in page.changes] == [
        ("+A", "a"),
        ("+A", "c"),
    ]
    assert isinstance(pages[0].next_since, str)
    assert pages[-1].next_since == 4
    (rest,) = headwater.change_tables(orders, since=pages[0].next_since)
    assert (rest.to_arrow().column("note").to_pylist(), rest.next_since) == (["c"], 4)


def test_rows_are_found_by_key(headwater, orders):
    headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], wait=30)
    headwater.write_rows(orders, [{"id": 2, "note": "c"}], wait=30)
    found = headwater.row(orders, 2)
    assert (found.row, found.version) == ({"id": 2, "note": "c"}, 2)
    earlier = headwater.row(orders, 2, version=1, columns=["note"], history=True)
    assert earlier.row == {"note": "b"}
    assert [change.op for change in earlier.changes] == ["+A"]
    rows = headwater.lookup(orders, [{"id": 3}, {"id": 1}], columns=["note"])
    assert [item.row for item in rows.items] == [None, {"note": "a"}]
    with pytest.raises(Problem) as missing:
        headwater.row(orders, 3)
    assert missing.value.code == "row-not-found"
