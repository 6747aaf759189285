"""Filters one row at a time, in plain Python: what a text means, written beside the text when it is made.

Nothing here parses. Each strategy gives a `Written`: a text, and the function that says for a row, as the definition of
the language has it, whether the text is true, false or unknown (None).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.kernel.sql.conditions.columns import DOMAINS, TYPES, WORD_DOMAINS, Domain, Row, quoted

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, kw_only=True)
class Written:
    """A condition: its text, and what it is for a row."""

    text: str
    holds: Callable[[Row], bool | None]


@st.composite
def comparisons(draw: st.DrawFn, domains: list[Domain]) -> Written:
    domain = draw(st.sampled_from(domains))
    signs = [sign for sign in OPERATORS if domain.ordered or sign in {"=", "!=", "<>"}]
    sign = draw(st.sampled_from(signs))
    text, literal = draw(
        st.one_of(domain.literals, st.just(("NULL", None)))
        if draw(st.integers(0, 9)) == 0
        else domain.literals
    )
    compare = OPERATORS[sign]

    def holds(row: Row) -> bool | None:
        value = domain.of(row)
        return None if value is None or literal is None else compare(value, literal)

    if draw(st.booleans()):
        return Written(text=f"{domain.text} {sign} {text}", holds=holds)
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    return Written(text=f"{text}{turned}{domain.text}", holds=holds)


@st.composite
def memberships(draw: st.DrawFn, domains: list[Domain]) -> Written:
    domain = draw(st.sampled_from(domains))
    literals = draw(st.lists(domain.literals, min_size=1, max_size=5))
    with_null = draw(st.integers(0, 3)) == 0
    negated = draw(st.booleans())

    def holds(row: Row) -> bool | None:
        value = domain.of(row)
        if value is None:
            return None
        if any(value == literal for _, literal in literals):
            return not negated
        return None if with_null else negated

    texts = [text for text, _ in literals] + ["null"] * with_null
    return Written(text=f"{domain.text} {'NOT ' * negated}IN ({', '.join(texts)})", holds=holds)


@st.composite
def ranges(draw: st.DrawFn, domains: list[Domain]) -> Written:
    domain = draw(st.sampled_from([domain for domain in domains if domain.ordered]))
    (low_text, low), (high_text, high) = draw(domain.literals), draw(domain.literals)
    negated = draw(st.booleans())

    def holds(row: Row) -> bool | None:
        value = domain.of(row)
        return None if value is None else (low <= value <= high) != negated

    return Written(text=f"{domain.text} {'NOT ' * negated}BETWEEN {low_text} AND {high_text}", holds=holds)


@st.composite
def nulls(draw: st.DrawFn, domains: list[Domain]) -> Written:
    domain = draw(st.sampled_from(domains))
    negated = draw(st.booleans())
    return Written(
        text=f"{domain.text} IS {'NOT ' * negated}NULL", holds=lambda row: (domain.of(row) is None) != negated
    )


# A pattern as its parts: what stands for itself, and the two signs.
_PARTS = st.one_of(
    st.sampled_from(["%", "_"]).map(lambda sign: (sign, False)),
    st.sampled_from("ab%_\\é'\n!").map(lambda c: (c, True)),
)


def like(text: str, parts: list[tuple[str, bool]]) -> bool:
    """Whether a text is what the parts of a pattern stand for."""
    if not parts:
        return not text
    (part, itself), rest = parts[0], parts[1:]
    if part == "%" and not itself:
        return any(like(text[start:], rest) for start in range(len(text) + 1))
    return bool(text) and (text[0] == part or not itself) and like(text[1:], rest)


@st.composite
def patterns(draw: st.DrawFn, domains: list[Domain]) -> Written:
    domain = draw(st.sampled_from(domains))
    parts = draw(st.lists(_PARTS, max_size=5))
    escape = draw(st.sampled_from(["", "!", "\\"]))
    if not escape:
        parts = [(part, itself) for part, itself in parts if not (itself and part in "%_")]
    written = "".join(
        escape + part if itself and escape and part in {"%", "_", escape} else part for part, itself in parts
    )
    negated = draw(st.booleans())

    def holds(row: Row) -> bool | None:
        value = domain.of(row)
        return None if value is None else like(value.decode(), parts) != negated

    tail = f" ESCAPE {quoted(escape)}" if escape else ""
    return Written(text=f"{domain.text} {'NOT ' * negated}LIKE {quoted(written)}{tail}", holds=holds)


_CONSTANTS = st.sampled_from([("TRUE", True), ("false", False), ("NULL", None)]).map(
    lambda each: Written(text=each[0], holds=lambda row: each[1])
)


def _all(outcomes: list[bool | None]) -> bool | None:
    return False if False in outcomes else None if None in outcomes else True


def _any(outcomes: list[bool | None]) -> bool | None:
    return True if True in outcomes else None if None in outcomes else False


def filters(columns: tuple[str, ...] = tuple(TYPES)) -> st.SearchStrategy[Written]:
    """Conditions of every form on the columns."""
    domains = [domain for domain in DOMAINS if domain.path[0] in columns]
    words = [domain for domain in WORD_DOMAINS if domain.path[0] in columns]
    leaves = [comparisons(domains), memberships(domains), nulls(domains), _CONSTANTS]
    leaves += [ranges(domains)] if any(domain.ordered for domain in domains) else []
    leaves += [patterns(words)] if words else []
    if "flag" in columns:
        leaves.append(st.just(Written(text="flag", holds=lambda row: row["flag"])))

    def joined(parts: list[Written], word: str, fold: Callable[[list[bool | None]], bool | None]) -> Written:
        text = f" {word} ".join(f"({part.text})" for part in parts)
        return Written(text=text, holds=lambda row: fold([part.holds(row) for part in parts]))

    def wider(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
        several = st.lists(inner, min_size=2, max_size=4)
        return st.one_of(
            several.map(lambda parts: joined(parts, "AND", _all)),
            several.map(lambda parts: joined(parts, "or", _any)),
            inner.map(
                lambda part: Written(
                    text=f"NOT ({part.text})",
                    holds=lambda row: None if (truth := part.holds(row)) is None else not truth,
                )
            ),
        )

    return st.recursive(st.one_of(leaves), wider, max_leaves=6)
