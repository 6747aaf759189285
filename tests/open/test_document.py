"""The examples of docs/open-tables.md read the rows of the version that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.open.comparison import check_equal
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant
from tests.open.engines import SPARK, Engine
from tests.support.left_out import left_out
from tests.support.service import Service

_DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "open-tables.md"
_EXAMPLE: Final = re.compile(
    r"<!-- (read with|settings of) (\w+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_ADDRESS: Final = "https://lake.example.org"
_PROGRAM: Final = "document_example.py"
_ENGINES: Final = {
    "duckdb": Engine(name="duckdb", program=_PROGRAM),
    "python": Engine(name="python", program=_PROGRAM),
    "clickhouse": Engine(name="clickhouse", program=_PROGRAM, fills_nulls=True, zoned=True),
    "spark": Engine(name="spark", program=_PROGRAM, python=SPARK.python, on_spark=True),
}


def _examples() -> list[tuple[str, str]]:
    """The language and the text of each example. The settings of Spark are statements before its own."""
    found, settings = [], ""
    for kind, language, text in _EXAMPLE.findall(_DOCUMENT.read_text(encoding="utf-8")):
        if kind == "settings of":
            settings = "".join(f"SET {line};\n" for line in text.splitlines())
        else:
            found.append((language, settings + text if language == "spark" else text))
    return found


@pytest.fixture(scope="module")
def orders(service: Service) -> Iterator[OpenDataset]:
    """A dataset with a deleted row in version 2, and another row in version 3."""
    tenant = Tenant.new(service)
    fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
    dataset = tenant.dataset("orders", schema={"fields": fields}, record_key=["id"])
    dataset.upsert({"id": 1, "note": "a"}, {"id": 2, "note": "b"}, {"id": 3, "note": None})
    dataset.delete({"id": 2})
    dataset.upsert({"id": 4, "note": "later"})
    yield dataset
    tenant.client.close()


def test_document_has_an_example_of_each_engine() -> None:
    assert [language for language, _ in _examples()] == [
        "duckdb", "python", "python", "spark", "clickhouse", "python",
    ]  # fmt: skip


@left_out("OPEN", "test-open")
@pytest.mark.parametrize(("language", "text"), _examples(), ids=lambda each: each.split()[-1][:20])
def test_example_reads_the_version_that_it_names(
    reader: Readers, orders: OpenDataset, language: str, text: str
) -> None:
    text = text.replace(_ADDRESS, orders.address.url).replace("hw_KEY", orders.address.api_key)
    engine = _ENGINES[language]
    found = reader(engine).read(orders.address, language=language, text=text)
    check_equal(engine, found, orders.rows(2))
