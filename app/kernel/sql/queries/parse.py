"""Parses the SQL of a view into its syntax tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from app.kernel.sql.queries.call_parser import CallParser
from app.kernel.sql.queries.language import QUERIES
from app.kernel.sql.syntax import (
    Common,
    Derived,
    Expression,
    Item,
    Join,
    Node,
    Query,
    Select,
    SetOperation,
    Side,
    Source,
    Star,
    Table,
)

INPUTS_MAX: Final = 16
HEIGHT_MAX: Final = 120
# Spark resolves a chain of them step by step, in 100 steps at most.
COMMON_MAX: Final = 50
_SIDES: Final[dict[tuple[str, ...], Side]] = {
    ("INNER", "JOIN"): Side.INNER,
    ("JOIN",): Side.INNER,
    ("CROSS", "JOIN"): Side.CROSS,
    (",",): Side.CROSS,
    **{
        (*words, *outer, "JOIN"): side
        for words, side in ((("LEFT",), Side.LEFT), (("RIGHT",), Side.RIGHT), (("FULL",), Side.FULL))
        for outer in ((), ("OUTER",))
    },
    **{(*prefix, "SEMI", "JOIN"): Side.SEMI for prefix in ((), ("LEFT",))},
    **{(*prefix, "ANTI", "JOIN"): Side.ANTI for prefix in ((), ("LEFT",))},
}


@dataclass(frozen=True, slots=True)
class ParsedView:
    """The syntax of a view. `inputs`: the datasets that it names, in order of first occurrence."""

    text: str
    query: Query
    inputs: tuple[str, ...]


def parse_view(sql: str) -> ParsedView:
    """The syntax of the view. `bind_view` checks whether its columns exist.

    Raises InvalidView, and no other exception, for any text.
    """
    query = _Parser(sql, QUERIES).view()
    _check_height(sql, query)
    inputs = tuple(dict.fromkeys(table.name for table in _free_tables(query, frozenset())))
    if not inputs:
        raise QUERIES.invalid(sql, None, "it reads no dataset", "SELECT … FROM a dataset")
    if len(inputs) > INPUTS_MAX:
        raise QUERIES.invalid(sql, None, f"it reads {len(inputs)} datasets", f"at most {INPUTS_MAX}")
    return ParsedView(text=sql, query=query, inputs=inputs)


class _Parser(CallParser):
    """Reads queries. Raises InvalidView throughout."""

    def view(self) -> Query:
        if self.here.word not in {"SELECT", "WITH", "("}:
            self.unexpected("SELECT or WITH")
        query = self.query()
        self.take(";")
        self.end("the end of the view")
        return query

    def query(self) -> Query:
        common: tuple[Common, ...] = ()
        if self.take("WITH"):
            common = self.listed(self._common)
        query = self._united()
        if self.here.word in self.language.refusals and self.here.word != ";":
            self.unexpected("the end of the query")
        if not common:
            return query
        if query.common:
            raise self.invalid(query.at, "this query already has a WITH", "one WITH")
        return dataclasses.replace(query, common=common)

    def _common(self) -> Common:
        start = self.here.at
        if self.here.word == "RECURSIVE":
            raise self.invalid(start, "recursion is not part of the SQL of views", "WITH without RECURSIVE")
        name = self.name("the name of a query")
        columns = self._columns()
        self.expect("AS", "(")
        query = self.query()
        self.expect(")")
        return Common(start, name, columns, query)

    def _columns(self) -> tuple[str, ...]:
        if not self.take("("):
            return ()
        names = self.listed(lambda: self.name("the name of a column"))
        self.expect(")")
        return names

    def _united(self) -> Query:
        query = self._intersected()
        while self.here.word in {"UNION", "EXCEPT", "MINUS"}:
            word = "UNION" if self.advance().word == "UNION" else "EXCEPT"
            query = SetOperation(query.at, word, self._counts(), query, self._intersected())
        return query

    def _intersected(self) -> Query:
        query = self._primary()
        while self.take("INTERSECT"):
            query = SetOperation(query.at, "INTERSECT", self._counts(), query, self._primary())
        return query

    def _counts(self) -> bool:
        if self.take("ALL"):
            return True
        self.take("DISTINCT")
        return False

    def _primary(self) -> Query:
        if self.take("("):
            query = self.query()
            self.expect(")")
            return query
        start = self.here.at
        self.expect("SELECT")
        distinct = self.take("DISTINCT")
        if not distinct:
            self.take("ALL")
        elif self.here.word == "ON":
            raise self.invalid(
                self.here.at,
                "DISTINCT ON is not part of the SQL of views",
                "QUALIFY ROW_NUMBER() …",
            )
        items = self.listed(self._item)
        return Select(
            at=start,
            items=items,
            distinct=distinct,
            source=self._sources() if self.take("FROM") else None,
            where=self.expression() if self.take("WHERE") else None,
            group=self._group() if self.take("GROUP", "BY") else (),
            having=self.expression() if self.take("HAVING") else None,
            qualify=self.expression() if self.take("QUALIFY") else None,
        )

    def _group(self) -> tuple[Expression, ...]:
        if self.here.word == "ALL":
            raise self.invalid(self.here.at, "GROUP BY ALL is not part of the SQL of views", "the columns")
        return self.listed(self.expression)

    def _item(self) -> Item | Star:
        start = self.here.at
        if self.take("*"):
            return Star(start, None)
        if self.is_name(self.here) and self.ahead().word == "." and self.ahead(2).word == "*":
            table = self.advance().text
            self.take(".", "*")
            return Star(start, table)
        value = self.expression()
        if self.take("AS"):
            return Item(start, value, self.name("a name, in `backticks` if it is a keyword"))
        return Item(start, value, self.advance().text if self.is_name(self.here) else None)

    def _sources(self) -> Source:
        source = self._source()
        while True:
            words = next((words for words in _SIDES if self.take(*words)), None)
            if words is None:
                return source
            source = self._join(source, _SIDES[words])

    def _join(self, left_source: Source, side: Side) -> Join:
        start = self.here.at
        right_source = self._source()
        if side is Side.CROSS:
            return Join(start, side, left_source, right_source, None, ())
        if self.take("USING"):
            if self.here.word != "(":
                self.unexpected("(")
            return Join(start, side, left_source, right_source, None, self._columns())
        if not self.take("ON"):
            self.unexpected("ON or USING: a join without a condition is a CROSS JOIN")
        return Join(start, side, left_source, right_source, self.expression(), ())

    def _source(self) -> Source:
        start = self.here.at
        if self.take("("):
            if self.here.word not in {"SELECT", "WITH", "("}:
                source = self._sources()
                self.expect(")")
                return source
            query = self.query()
            self.expect(")")
            alias = self._alias()
            return Derived(start, query, alias, self._columns() if alias is not None else ())
        if self.here.word == "VALUES":
            self.unexpected("a dataset")
        name = self.name("a dataset, or a query in parentheses")
        if self.here.word == ".":
            expectation = "the name of a dataset; one with dots in it in `backticks`"
            raise self.invalid(start, "datasets have no catalogs and no schemas around them", expectation)
        if self.here.word == "(":
            raise self.invalid(
                start, "functions that return tables are not part of the SQL of views", "a dataset"
            )
        return Table(start, name, self._alias())

    def _alias(self) -> str | None:
        if self.take("AS"):
            return self.name("an alias")
        return self.advance().text if self.is_name(self.here) else None


def _check_height(text: str, query: Query) -> None:
    """Rejects a tree too high for recursive functions. Chains of operators are as high as they are long."""
    pending: list[tuple[Any, int]] = [(query, 1)]
    common = 0
    while pending:
        part, height = pending.pop()
        common += isinstance(part, Common)
        if common > COMMON_MAX:
            raise QUERIES.invalid(text, part.at, "too many queries in WITH", f"at most {COMMON_MAX}")
        if height > HEIGHT_MAX:
            at = part.at if isinstance(part, Node) else None
            raise QUERIES.invalid(
                text, at, "it nests too deeply", f"at most {HEIGHT_MAX} operators one within another"
            )
        if isinstance(part, tuple):
            pending += [(each, height) for each in part]
        elif isinstance(part, Node):
            pending += [(getattr(part, field.name), height + 1) for field in dataclasses.fields(part)]


def _free_tables(part: Any, common_names: frozenset[str]) -> Iterator[Table]:
    """The tables in a part that no WITH around them defines, in order. Names of WITH differ by more than case."""
    if isinstance(part, tuple):
        for each in part:
            yield from _free_tables(each, common_names)
    elif isinstance(part, Table):
        if part.name.casefold() not in common_names:
            yield part
    elif isinstance(part, Select | SetOperation):
        for common in part.common:
            yield from _free_tables(common.query, common_names)
            common_names |= {common.name.casefold()}
        yield from (
            table
            for field in dataclasses.fields(part)
            if field.name != "common"
            for table in _free_tables(getattr(part, field.name), common_names)
        )
    elif isinstance(part, Node):
        for field in dataclasses.fields(part):
            yield from _free_tables(getattr(part, field.name), common_names)
