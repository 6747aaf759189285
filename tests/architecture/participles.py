"""The share of names of values that are participles: `found`, `stored`. A noun says what the value is.

A name counts once for each place that binds it: targets of assignments, of `for`, `with`, `except`, `case` and of
comprehensions, parameters, and fields. Constants and members of enums, which are written in capitals, do not count: the
state of a job is named `QUEUED`. The last word of a name decides: `rows_written` counts, `written_rows` does not.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

# Participles that do not end in -ed. Words that are nouns or verbs as well are not among them: read, set, run, bound.
IRREGULAR: Final = frozenset([
    "begun", "bent", "born", "bought", "broken", "brought", "built", "caught", "chosen", "done", "drawn",
    "driven", "fallen", "found", "frozen", "given", "gone", "grown", "heard", "held", "hidden", "kept",
    "known", "left", "lent", "lost", "made", "meant", "met", "paid", "proven", "seen", "sent", "shown",
    "sold", "sought", "spent", "spoken", "stolen", "sworn", "taken", "taught", "thought", "told", "torn",
    "understood", "unknown", "unseen", "unsent", "withdrawn", "won", "worn", "written",
])  # fmt: skip
# Words that end in -ed and are not participles.
NOUNS: Final = frozenset(["bed", "embed", "feed", "need", "red", "seed", "shed", "speed"])


def bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Each name as often as it is bound."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name


def is_irregular(name: str) -> bool:
    return _last_word(name) in IRREGULAR


def is_participle(name: str) -> bool:
    """Whether the last word of a name is a participle. A constant is not."""
    word = _last_word(name)
    return word in IRREGULAR or (word.endswith("ed") and word not in NOUNS)


def _last_word(name: str) -> str:
    """The word that decides; empty for a constant."""
    return "" if name.isupper() else name.strip("_").split("_")[-1].lower()


def count_names(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often each name is bound, `self` and `cls` apart."""
    return Counter(name for name in bound_names(nodes) if name not in ("self", "cls"))


def participle_figures(counts: Counter[str]) -> dict[str, str]:
    """The shares of all bound names in per cent, and the most frequent participles with their counts."""
    participles = Counter({name: count for name, count in counts.items() if is_participle(name)})
    irregular = sum(count for name, count in participles.items() if is_irregular(name))

    def share(count: int) -> str:
        return f"{100 * count / counts.total():.1f} % ({count:,} of {counts.total():,})"

    return {
        "bound names that are participles": share(participles.total()),
        "bound names that are irregular participles": share(irregular),
        "most frequent participles": ", ".join(
            f"{name} {count}" for name, count in participles.most_common(20)
        ),
    }
