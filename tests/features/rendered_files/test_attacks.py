"""Attacks on rendered files: hidden values in their bytes, forged paths, and access that has changed."""

from __future__ import annotations

from io import BytesIO

import pyarrow.parquet as pq
import pytest

from app.access.errors import NotFound
from app.features.objects.ports import ServedTable
from app.kernel.format.errors import GrantNotApplicable
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.features.rendered_files.conftest import Renderer

COLUMNS = {"id": "int64", "place": "string", "note": "string", "pair": "struct<a: string, b: list<string>>"}
DE = RowAccess(where=("place = 'DE'",))
MASKED = RowAccess(where=("place = 'DE'",), masked=("note", "pair"))


def written(renderer: Renderer, name: str = "orders") -> None:
    """Every row that is hidden, and every value, has the same words in it. Texts repeat, so they have dictionaries."""
    renderer.register(name, COLUMNS, record_key=["id"])
    rows = [
        {
            "id": number,
            "place": "DE" if number % 3 else "hidden-place",
            "note": "visible-note" if number % 3 else "hidden-note",
            "pair": {
                "a": "visible-a" if number % 3 else "hidden-a",
                "b": ["x" if number % 3 else "hidden-b"],
            },
        }
        for number in range(3_000)
    ]
    for start in range(0, len(rows), 1_000):
        renderer.write(name, rows[start : start + 1_000])
    renderer.write(name, [{**rows[1], "note": "hidden-old", "place": "DE"}])
    renderer.write(name, [rows[1]])


@pytest.mark.parametrize("access", [DE, MASKED])
def test_bytes_have_no_value_that_is_hidden(renderer: Renderer, access: RowAccess) -> None:
    written(renderer)
    files = renderer.require("orders", access)
    assert files
    for file in files:
        content = renderer.content("orders", access, file)
        decoded = repr(pq.read_table(BytesIO(content)).to_pylist()).encode()
        metadata = pq.read_metadata(BytesIO(content))
        for part in (content, decoded, repr(metadata.to_dict()).encode(), repr(file.statistics).encode()):
            assert b"hidden-" not in part
            assert b"_hw_" not in part
        assert (b"visible-" in content) is (access is DE)
        # Dictionaries and pages are compressed: what they have is decoded as a whole.
        for column in range(metadata.num_columns):
            parts = [metadata.row_group(group).column(column) for group in range(metadata.num_row_groups)]
            distinct = pq.read_table(BytesIO(content), read_dictionary=["place"]).column("place")
            assert all(len(chunk.dictionary) <= 1 for chunk in distinct.chunks)
            assert sum(part.num_values for part in parts) >= file.row_count


def test_masked_columns_are_nulls_without_statistics(renderer: Renderer) -> None:
    written(renderer)
    for file in renderer.require("orders", MASKED):
        table = pq.read_table(BytesIO(renderer.content("orders", MASKED, file)))
        assert table.column("note").null_count == table.num_rows
        assert {"1", "2"} == set(file.statistics)
        assert file.statistics["2"].minimum == file.statistics["2"].maximum == "DE"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x",
        "../data/0/part.parquet",
        f"{'0' * 16}/{'0' * 32}.parquet",
        f"{'0' * 16}/{'0' * 32}.parquet/",
        f"{'0' * 16}/{'0' * 32}",
        f"{'A' * 16}/{'0' * 32}.parquet",
        f"{'0' * 16}/{'%'}{'0' * 31}.parquet",
        f"{'0' * 16}/../{'0' * 32}.parquet",
        f"{'0' * 16}/{'0' * 32}.parquet\n",
    ],
)
def test_forged_path_is_not_found(renderer: Renderer, path: str) -> None:
    renderer.register("orders", COLUMNS, record_key=["id"])
    table = ServedTable(dataset=renderer.dataset("orders"), variant="v3", access=DE)
    with pytest.raises(NotFound):
        renderer.tree.find(table, path)


def test_file_is_found_only_with_the_access_that_shows_exactly_this(renderer: Renderer) -> None:
    written(renderer)
    [file, *_] = renderer.require("orders", DE)
    others = (
        EVERYTHING,
        MASKED,
        RowAccess(where=("place = 'FR'",)),
        RowAccess(where=("place = 'DE'", "id = 3")),
        RowAccess(masked=("note",)),
    )
    for access in others:
        with pytest.raises(NotFound):
            renderer.found("orders", access, file)
        table = ServedTable(dataset=renderer.dataset("orders"), variant="v3", access=access)
        assert renderer.tree.listing(table, "", "", 100) == []
    assert renderer.content("orders", DE, file)


def test_digest_of_another_dataset_is_not_found(renderer: Renderer) -> None:
    """Its files would have the same view, and even the same bytes."""
    written(renderer)
    written(renderer, "others")
    [file, *_] = renderer.require("orders", DE)
    renderer.register("empty", COLUMNS, record_key=["id"])
    with pytest.raises(NotFound):
        renderer.found("empty", DE, file)
    renderer.require("others", DE)
    assert renderer.content("others", DE, file) == renderer.content("orders", DE, file)


def test_condition_on_a_column_of_another_time_shows_other_files(renderer: Renderer) -> None:
    """A column that was dropped and added again with the name is another one, and so is what the condition shows."""
    written(renderer)
    before = renderer.dataset("orders").version
    [file, *_] = renderer.require("orders", RowAccess(where=("note = 'visible-note'",)))
    renderer.change("orders", {"kind": "drop", "name": "note"})
    renderer.change("orders", {"kind": "add", "field": {"name": "note", "type": "string"}})
    access = RowAccess(where=("note = 'visible-note'",))
    assert renderer.require("orders", access) == []
    assert [each.content for each in renderer.require("orders", access, before)][:1] == [file.content]


def test_grant_that_masks_a_column_that_is_gone_shows_nothing(renderer: Renderer) -> None:
    written(renderer)
    files = renderer.require("orders", MASKED)
    renderer.change("orders", {"kind": "drop", "name": "pair"})
    with pytest.raises(GrantNotApplicable):
        renderer.require("orders", MASKED)
    with pytest.raises(GrantNotApplicable):
        renderer.found("orders", MASKED, files[0])


def test_listing_has_the_files_of_the_reader_in_order(renderer: Renderer) -> None:
    written(renderer)
    renderer.require("orders", MASKED)
    files = renderer.require("orders", DE)
    table = ServedTable(dataset=renderer.dataset("orders"), variant="v3", access=DE)
    entries = renderer.tree.listing(table, "", "", 100)
    expected = sorted(
        {(file.path.removeprefix("rendered/"), file.size_bytes, file.content) for file in files}
    )
    assert [(each.path, each.size_bytes, each.etag) for each in entries] == expected
    first, rest = entries[0], entries[1:]
    assert list(renderer.tree.listing(table, "", first.path, 100)) == list(rest)
    assert renderer.tree.listing(table, first.path[:20], "", 1) == [first]
    assert renderer.tree.listing(table, "z", "", 100) == []
