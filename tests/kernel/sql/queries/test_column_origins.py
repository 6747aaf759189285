"""The columns of inputs that the columns of a view are computed from."""

from __future__ import annotations

from typing import Final

import pytest

from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, schema_of
from app.kernel.sql.queries.bind import bind_view, column_origins
from app.kernel.sql.queries.parse import parse_view

_INPUTS: Final = {
    name: define_dataset(CreateDataset(name=name, schema=schema_of(columns)))
    for name, columns in {
        "orders": {
            "id": "int64",
            "amount": "int64",
            "buyer": "string",
            "at": "timestamp",
            "place": "struct<city:string,zip:string>",
        },
        "buyers": {"buyer": "string", "country": "string", "since": "date"},
    }.items()
}


@pytest.mark.parametrize(
    ("sql", "origins"),
    [
        ("SELECT id, amount * 2 AS doubled FROM orders", {"id": "orders.id", "doubled": "orders.amount"}),
        ("SELECT id, 1 AS one FROM orders WHERE amount > 0", {"id": "orders.id", "one": ""}),
        ("SELECT buyer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY buyer",
         {"buyer": "orders.buyer", "total": "orders.amount", "n": ""}),
        ("SELECT id, CASE WHEN amount > 0 THEN buyer ELSE 'nobody' END AS who FROM orders",
         {"id": "orders.id", "who": "orders.amount orders.buyer"}),
        ("SELECT o.id, b.country FROM orders o JOIN buyers b ON o.buyer = b.buyer",
         {"id": "orders.id", "country": "buyers.country"}),
        ("SELECT buyer, country FROM orders JOIN buyers USING (buyer)",
         {"buyer": "orders.buyer", "country": "buyers.country"}),
        ("SELECT buyer FROM orders FULL JOIN buyers USING (buyer)", {"buyer": "orders.buyer buyers.buyer"}),
        ("SELECT buyer FROM orders RIGHT JOIN buyers USING (buyer)", {"buyer": "buyers.buyer"}),
        ("WITH big AS (SELECT id, amount + 1 AS more FROM orders) SELECT id, more || '' AS text FROM "
         "(SELECT id, CAST(more AS string) AS more FROM big) AS q", {"id": "orders.id", "text": "orders.amount"}),
        ("SELECT buyer FROM orders UNION SELECT country FROM buyers",
         {"buyer": "orders.buyer buyers.country"}),
        ("SELECT buyer FROM orders EXCEPT SELECT country FROM buyers", {"buyer": "orders.buyer"}),
        ("SELECT id, (SELECT max(country) FROM buyers) AS last FROM orders",
         {"id": "orders.id", "last": "buyers.country"}),
        ("SELECT id, row_number() OVER (PARTITION BY buyer ORDER BY at) AS n FROM orders",
         {"id": "orders.id", "n": "orders.buyer orders.at"}),
        ("SELECT place.city AS city FROM orders", {"city": "orders.place"}),
        ("SELECT sum(amount) FILTER (WHERE buyer = 'x') AS total FROM orders", {"total": "orders.amount"}),
        ("SELECT * FROM buyers", {"buyer": "buyers.buyer", "country": "buyers.country", "since": "buyers.since"}),
        ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM buyers b WHERE b.buyer = orders.buyer)",
         {"id": "orders.id"}),
    ],
)  # fmt: skip
def test_origins_of_columns(sql: str, origins: dict[str, str]) -> None:
    view = parse_view(sql)
    found = column_origins(view, _INPUTS)
    assert {name: {".".join(each) for each in columns} for name, columns in found.items()} == {
        name: set(text.split()) for name, text in origins.items()
    }
    # No origin is a column that the view does not read.
    read = {
        (each.name, column)
        for each in bind_view(view, _INPUTS, allow_cross_join=True).sources
        for column in each.columns
    }
    assert read.issuperset(frozenset().union(*found.values()))
