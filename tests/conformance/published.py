"""The table of what goes together, as it is published: made from what registration and writes refuse.

python -m tests.conformance.published > docs/conformance.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations as combinations_of
from pathlib import Path
from textwrap import fill
from typing import Final

from app.kernel.format.dataset import DatasetDefinition
from tests.conformance.foreign_files import table_of_foreign_files
from tests.conformance.histories import share
from tests.conformance.kinds import AXES, Kind, Reason, defined, every_kind, legal_kinds
from tests.conformance.operations import WAYS, Way

Value = tuple[str, str]
"""An axis, and one of its values."""


def values_of(kind: Kind) -> list[Value]:
    return list(zip(AXES, kind.values, strict=True))


@cache
def refused_sets() -> Mapping[tuple[Value, ...], tuple[Reason, ...]]:
    """The smallest sets of values that no dataset has together, with what registration says of them."""
    found: dict[tuple[Value, ...], tuple[Reason, ...]] = {}
    for size in (2, 3):
        reasons: dict[tuple[Value, ...], set[Reason]] = {}
        legal: set[tuple[Value, ...]] = set()
        for kind in every_kind():
            definition = defined(kind)
            mine = combinations_of(values_of(kind), size)
            if isinstance(definition, DatasetDefinition):
                legal.update(mine)
                continue
            for chosen in mine:
                reasons.setdefault(chosen, set(definition)).intersection_update(definition)
        for chosen, explanation in reasons.items():
            if (
                explanation
                and chosen not in legal
                and not any(pair in found for pair in combinations_of(chosen, 2))
            ):
                found[chosen] = tuple(sorted(explanation))
    return found


@cache
def refused_ways() -> Mapping[tuple[str, Value], tuple[Reason, ...]]:
    """Ways to write that no dataset with a value takes, with what the write is answered."""
    reasons: dict[tuple[str, Value], set[Reason]] = {}
    legal: set[tuple[str, Value]] = set()
    for kind in _kinds_for_ways():
        definition = defined(kind)
        assert isinstance(definition, DatasetDefinition)
        for way in WAYS:
            refusal = way.refusal(definition)
            for value in values_of(kind):
                if not refusal:
                    legal.add((way.name, value))
                    continue
                known = reasons.setdefault((way.name, value), set(refusal))
                known &= set(refusal)
    return {place: tuple(sorted(found)) for place, found in reasons.items() if found and place not in legal}


@cache
def _kinds_for_ways() -> tuple[Kind, ...]:
    """No write depends on how keys are found."""
    return tuple(kind for kind in legal_kinds() if kind.on("index.type") == "(default)")


def explained(kind: Kind) -> bool:
    """Whether the table says why there is no such dataset."""
    values = values_of(kind)
    return any(chosen in refused_sets() for size in (2, 3) for chosen in combinations_of(values, size))


def explained_way(kind: Kind, way: Way) -> bool:
    """Whether the table says why the dataset does not take the way."""
    return any((way.name, value) in refused_ways() for value in values_of(kind))


_PAGE: Final = Path(__file__).with_name("page.md")
_WORDS: Final = ("a record key", "no record key", "partitions", "no partitions")


def published() -> str:
    """The text of docs/conformance.md."""
    return _PAGE.read_text(encoding="utf-8").format(
        kinds=f"{len(every_kind()):,}",
        legal=f"{len(legal_kinds()):,}",
        histories=f"{len(list(share())):,}",
        axes="".join(
            f"| `{axis}` | {', '.join(_shown(value) for value in values)} |\n"
            for axis, values in AXES.items()
        ),
        sets="".join(_set_rows()),
        ways="".join(_ways()),
        foreign=table_of_foreign_files(),
    )


def _shown(value: str) -> str:
    return f"*{value}*" if value.startswith("(") or value in _WORDS else f"`{value}`"


def _set_rows() -> Iterator[str]:
    grouped: dict[tuple[tuple[Value, ...], tuple[Reason, ...]], list[str]] = {}
    for (*first, last), reasons in refused_sets().items():
        grouped.setdefault((tuple(first), reasons), []).append(last[1])
    for (first, reasons), others in grouped.items():
        for number, (pointer, detail) in enumerate(reasons):
            shown = f"{' + '.join(_shown(value) for _, value in first)} | {', '.join(map(_shown, others))}"
            yield f"| {shown if number == 0 else ' | '} | `{pointer}` | {detail} |\n"


def _ways() -> Iterator[str]:
    columns: list[Value] = []
    for _, value in refused_ways():
        if value not in columns:
            columns.append(value)
    columns = [(axis, value) for axis, values in AXES.items() for value in values if (axis, value) in columns]
    # Without a key there is nothing but the default and `unaware`: one column for all.
    columns = [value for value in columns if value[1] != "(default)" and not value[1].startswith("unaware")]
    yield f"| | *any other* | {' | '.join(_shown(value) for _, value in columns)} |\n"
    yield "|---|---|" + "---|" * len(columns) + "\n"
    notes: dict[tuple[Reason, ...], int] = {}
    for way in WAYS:
        cells = []
        for value in columns:
            reasons = refused_ways().get((way.name, value))
            cells.append("✓" if reasons is None else f"{notes.setdefault(reasons, len(notes) + 1)}")
        yield f"| `{way.name}` | ✓ | {' | '.join(cells)} |\n"
    yield "\n"
    for reasons, number in notes.items():
        note = f"{number}. {'; '.join(f'`{pointer}`: {detail}' for pointer, detail in reasons)}"
        yield fill(note, 120, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    print(published(), end="")
