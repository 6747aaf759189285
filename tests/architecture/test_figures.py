"""What `make figures` counts, on small pieces of code."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import figures
from tests.architecture.participles import (
    bound_names,
    count_names,
    is_irregular,
    is_participle,
    participle_figures,
)

EVERY_BINDING = """
assigned = 1
class Value:
    field: int
    declared: int = 1
def function(parameter, *rest, keyword=1, **members):
    for index, (first, second) in pairs:
        with opening as stream:
            (walrus := 1)
    try:
        [each for each in values]
    except ValueError as error:
        self.attribute = read
    match value:
        case [Point(x=0) as point, *others]: pass
        case {"a": 1, **remaining}: pass
"""


def test_every_binding_of_a_name_is_counted() -> None:
    names = sorted(bound_names(ast.walk(ast.parse(EVERY_BINDING))))
    assert names == sorted(
        [
            "assigned",
            "declared",
            "each",
            "error",
            "field",
            "first",
            "index",
            "keyword",
            "members",
            "others",
            "parameter",
            "point",
            "remaining",
            "rest",
            "second",
            "stream",
            "walrus",
        ]
    )


@pytest.mark.parametrize("name", ["found", "_found", "rows_written", "stored", "is_masked"])
def test_last_word_makes_a_name_a_participle(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["feed", "random_seed", "written_rows", "rows", "QUEUED", "_KEPT", "read"])
def test_nouns_and_constants_are_no_participles(name: str) -> None:
    assert not is_participle(name)


def test_shares_are_of_all_bound_names() -> None:
    nodes = ast.walk(ast.parse("found = 1\nfound = 2\nstored = 3\nrows = 4"))
    assert list(participle_figures(count_names(nodes)).values()) == [
        "75.0 % (3 of 4)",
        "50.0 % (2 of 4)",
        "found 2, stored 1",
    ]


@pytest.mark.parametrize(("matches", "most"), [(is_participle, 0.01), (is_irregular, 0.003)])
def test_names_of_values_are_nouns(matches: Callable[[str], bool], most: float) -> None:
    """Some participles are terms of the field, such as the members of a report that count added and removed files."""
    counts = figures.service_names()
    participles = Counter({name: count for name, count in counts.items() if matches(name)})
    assert participles.total() <= most * counts.total(), participles.most_common(20)


def test_code_lines_exclude_blank_lines_comments_and_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""One.\n\nTwo.\n"""\n\n# A comment.\nx = """a\n\nb"""\n\n\ndef f():\n    """Three."""\n    return x\n'
    )
    assert figures.code_lines_of(path) == 4


@pytest.mark.parametrize(
    ("module", "other", "may"),
    [
        ("app.features.views.service.a", "app.core.jobs.repository.b", True),
        ("app.core.jobs.repository.b", "app.features.views.service.a", False),
        ("app.features.views.service.a", "app.features.writes.service.b", True),
        ("app.features.views.service.a", "app.features.reads.service.b", False),
        ("app.features.views.service.a", "app.features.views.repository", True),
        ("app.features.views.repository", "app.features.views.service.a", False),
        ("app.access.tenants.service", "app.infra.db.session", False),
        ("app.access.tenants.repository.credentials", "app.infra.db.session", True),
    ],
)
def test_modules_may_import_lower_wings_rooms_and_parts(module: str, other: str, may: bool) -> None:
    assert figures.may_import(module, other) is may


def test_matches_on_column_types_are_counted() -> None:
    tree = ast.parse("match t:\n    case Primitive('int8') | types.List(): pass\nisinstance(t, (Map, int))")
    assert sum(figures.matched_types(node, {"Primitive", "List", "Map"}) for node in ast.walk(tree)) == 3
