"""Goes through the tokens of a view, and says what cannot stand where it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from app.lake.views.tokens import Kind, Token, invalid

# Words that are no names unless they stand in backticks.
RESERVED: Final = frozenset(
    "ALL AND ANTI AS BETWEEN BY CASE CLUSTER CROSS DISTINCT DISTRIBUTE DIV ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH "
    "FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL ON OR "
    "ORDER OUTER OVER PIVOT QUALIFY REGEXP RIGHT RLIKE SELECT SEMI SORT TABLESAMPLE THEN TRUE UNION UNPIVOT USING WHEN "
    "WHERE WINDOW WITH".split()
)
_NO_ORDER: Final = "the rows of a view have no order, and no first one"
_ONE_SELECT: Final = "a view is one SELECT"
# Why some of what SQL has elsewhere is not part of views.
REFUSED: Final = {
    **dict.fromkeys(("LIMIT", "FETCH", "OFFSET"), f"{_NO_ORDER}: filter by ROW_NUMBER() OVER (ORDER BY …)"),
    **dict.fromkeys(("ORDER", "SORT"), f"{_NO_ORDER}: ORDER BY belongs into OVER (…)"),
    "CLUSTER": "how rows are spread is the engine's business",
    "DISTRIBUTE": "how rows are spread is the engine's business",
    "LATERAL": "LATERAL is not part of the SQL of views",
    "PIVOT": "PIVOT is not part of the SQL of views: use an aggregate with FILTER (WHERE …) for each column",
    "UNPIVOT": "UNPIVOT is not part of the SQL of views: use UNION ALL",
    "TABLESAMPLE": "a sample is another one each time",
    "NATURAL": "what a NATURAL join compares changes with the schemas: use ON or USING",
    "WINDOW": "named windows are not part of the SQL of views: write them out behind OVER",
    "VALUES": "VALUES is not part of the SQL of views: register a dataset for it",
    "RLIKE": "regular expressions may take time without bound: use LIKE, instr, substring or split_part",
    "REGEXP": "regular expressions may take time without bound: use LIKE, instr, substring or split_part",
    "ILIKE": "ILIKE is not part of the SQL of views: compare lower(…) LIKE",
    ";": f"{_ONE_SELECT}, and this is a second statement",
    **dict.fromkeys(
        "ALTER ANALYZE CACHE CALL CREATE DELETE DESCRIBE DROP EXECUTE EXPLAIN GRANT INSERT MERGE OPTIMIZE REFRESH "
        "REPLACE SET SHOW TABLE TRUNCATE UPDATE USE VACUUM".split(),
        _ONE_SELECT,
    ),
}
DEPTH_MAX: Final = 50
_SHOWN_CHARACTERS: Final = 40
_T = TypeVar("_T")


class TokenReader:
    """Where a parser is in its text. Raises InvalidView throughout."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.here
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def take(self, *words: str) -> bool:
        """Goes past these words or signs, if all of them are next."""
        if any(self.ahead(number).word != word for number, word in enumerate(words)):
            return False
        self.position += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            self.unexpected(" ".join(words))

    def unexpected(self, expected: str) -> NoReturn:
        token = self.here
        if token.kind is Kind.END:
            raise invalid(self.text, token.at, "it ends too early", expected)
        reason = REFUSED.get(token.word, f"{token.text[:_SHOWN_CHARACTERS]!r} cannot stand here")
        raise invalid(self.text, token.at, reason, expected)

    def names_something(self, token: Token) -> bool:
        return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.word not in RESERVED)

    def name(self, expected: str) -> str:
        if not self.names_something(self.here):
            self.unexpected(expected)
        return self.advance().text

    def listed(self, part: Callable[[], _T]) -> tuple[_T, ...]:
        found = [part()]
        while self.take(","):
            found.append(part())
        return tuple(found)

    def deeper(self, levels: int = 1) -> None:
        """Enters a part of a part; with -1, leaves it. Parsers call themselves for each."""
        self.depth += levels
        if self.depth > DEPTH_MAX:
            raise invalid(self.text, self.here.at, "it nests too deeply", f"at most {DEPTH_MAX} levels")
