"""Random texts of views: mostly legal queries over the datasets of `view_inputs`, with hostile parts between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Final

# None of them may reach the engine: not as names, not as comments, not as parts of another text.
MARKER: Final = "hw_marker"
# Expressions of numbers, texts and truths, by the kinds of their parts.
_LEAVES: Final = {
    "number": ("id", "n", "price", "weight", "o.n", "place.at.lat", "1", "-2", "2.5", "1e3", "tiny", "tags"),
    "text": (
        "customer", "o.customer", "place.city", "'a'", "'x''); DROP TABLE orders --'", "'${spark.master}'", "'`'",
        "'/* a'", "'\\\\'", "'\u202e'", "tags[0]", "NULL", '"id"',
    ),
    "truth": (
        "paid", "true", "id IS NULL", "customer LIKE '%a!%%' ESCAPE '!'", "day > DATE '2026-01-01'",
        "raw = X'61'",
    ),
}  # fmt: skip
_SHAPES: Final = {
    "number": (
        "({number} + {number})", "({number} * {number})", "-{number}", "abs({number})", "length({text})",
        "coalesce({number}, {number})", "CASE WHEN {truth} THEN {number} ELSE {number} END", "{hostile}({number})",
        "CAST({text} AS int)", "(SELECT max(n) FROM {table})", "sum({number}) OVER (PARTITION BY paid)", "size(tags)",
    ),
    "text": (
        "upper({text})", "concat({text}, {text})", "({text} || {text})", "CAST({number} AS string)",
        "{hostile}({text})",
        "if({truth}, {text}, {text})", "substring({text}, 1, 2)", "date_format(local, 'HH')",
    ),
    "truth": (
        "({truth} AND {truth})", "({truth} OR NOT {truth})", "{number} < {number}", "{text} = {text}",
        "{number} IN ({number}, {number})", "{text} IS NOT NULL", "{number} BETWEEN {number} AND {number}",
        "EXISTS (SELECT 1 FROM {table})", "id IN (SELECT id FROM {table})",
    ),
}  # fmt: skip
_KINDS: Final = tuple(_LEAVES)
_HOSTILE_FUNCTIONS: Final = (
    "reflect", "java_method", "input_file_name", "try_reflect", "current_user", "version", "uuid", "rand", "read_files",
    "from_csv", "schema_of_json", "raise_error", "sleep", "http_request", "monotonically_increasing_id",
)  # fmt: skip
_TABLES: Final = ("orders o", "orders", "lines", "`eu.customers`", "(SELECT id, n FROM orders) o", "odd")
_HOSTILE_TABLES: Final = (
    f"parquet.`/etc/{MARKER}`", f"{MARKER}", f"json.`file:///{MARKER}`", f"default.{MARKER}", "view_input_0",
    "range(10)", f"TABLE({MARKER})", "in1", "information_schema.tables", f"read_files('{MARKER}')", "VALUES (1)",
    "orders VERSION AS OF 1", "orders TABLESAMPLE (1 ROWS)", f"`orders``{MARKER}`", "LATERAL (SELECT 1)",
)  # fmt: skip
_TAILS: Final = (
    "", "", "", "WHERE {truth}", "WHERE {truth} AND {truth}", "GROUP BY 1", "GROUP BY 1 HAVING {truth}",
    "QUALIFY row_number() OVER (PARTITION BY n ORDER BY id) = 1", "UNION ALL SELECT id FROM lines",
)  # fmt: skip
_HOSTILE_TAILS: Final = (
    f"; DROP TABLE {MARKER}", f"INTO {MARKER}", f"UNION ALL SELECT id FROM {MARKER}", f"WHERE EXISTS (TABLE {MARKER})",
    f"LATERAL VIEW explode(tags) t AS {MARKER}", "LIMIT 1", "ORDER BY 1", f"-- {MARKER}", f"/* {MARKER} */",
)  # fmt: skip
_PART: Final = re.compile(r"\{(number|text|truth|table|hostile)\}")


class ViewTexts:
    """Texts from one seed."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def text(self) -> str:
        """One text."""
        count = self._random.randint(1, 3)
        items = ", ".join(f"{self._expression(self._one(_KINDS), 2)} AS x{number}" for number in range(count))
        comment = f"/* {MARKER} */ " if self._rarely() else ""
        query = f"SELECT {comment}{items} FROM {self._table() if self._rarely() else 'orders o'}"
        if self._rarely():
            query += (
                f" {self._one(('JOIN', 'LEFT JOIN', 'CROSS JOIN'))} lines ON {self._expression('truth', 1)}"
            )
        query += " " + self._filled(self._one(_HOSTILE_TAILS if self._rarely() else _TAILS), 1)
        return f"WITH w AS ({query}) SELECT x0 FROM w" if self._rarely() else query

    def _expression(self, kind: str, depth: int) -> str:
        chosen = _LEAVES if depth == 0 or self._random.random() < 0.3 else _SHAPES
        return self._filled(self._one(chosen[kind]), depth - 1)

    def _filled(self, shape: str, depth: int) -> str:
        return _PART.sub(lambda part: self._part(part[1], max(depth, 0)), shape)

    def _part(self, name: str, depth: int) -> str:
        if name == "table":
            return self._table()
        if name == "hostile":
            return self._one(_HOSTILE_FUNCTIONS if self._rarely() else ("abs", "max", "upper"))
        return self._expression(name, depth)

    def _table(self) -> str:
        return self._one(_HOSTILE_TABLES if self._rarely() else _TABLES)

    def _one(self, choices: Sequence[str]) -> str:
        return self._random.choice(choices)

    def _rarely(self) -> bool:
        return self._random.random() < 0.12
