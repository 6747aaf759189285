"""One meaning a word, and the field's word for it: names of the code and of the tests."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.figures import classes, modules
from tests.architecture.syntax import ROOT, nodes_of

# Words that stood for something the field has a word for, with that word.
WORDS = {
    "tell": "emit, deliver, return, report",
    "tells": "emit, deliver, return, report",
    "told": "emitted, delivered, returned, reported",
    "telling": "delivery format",
    "untold": "not delivered",
    "look": "poll, read",
    "looks": "polls, reads",
    "looked": "polled, scanned",
    "bell": "subscription",
    "bells": "subscriptions",
    "ring": "notify",
    "asked": "requested",
    "said": "specified",
    "meet": "match",
    "meets": "matches",
    "meeting": "match",
    "met": "matched",
    "findings": "record errors",
    "aside": "quarantined",
    "forget": "expire, purge, remove",
    "forgotten": "expired, purged, removed",
    "forgets": "expires, purges, removes",
    "lane": "queue",
    "keeper": "reconciler",
    "keepers": "reconcilers",
    "landmark": "starting position",
    "stretch": "row range",
    "stretches": "row ranges",
    "moot": "no-op",
    "board": "key state",
    "anew": "again",
    "whoever": "the subject itself",
    "nobody": "no, none",
}
# Where a word is the field's own.
ALLOWED = {
    "lane": {"app/kernel/format/index/key_hash.py"},  # XXH64 hashes in four `lanes`
    "lanes": {"app/kernel/format/index/key_hash.py"},
    "tell": {  # the method of a file object
        "app/features/reads/content.py",
        "app/kernel/format/rows/formats.py",
        "clients/python/headwater_client/spark/part_file.py",
    },
    "looks": {"app/kernel/format/dataset.py"},  # to look a key up is the word for it
}
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Every name that a module gives to something, with its line."""
    for node in nodes_of(path):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)):
                yield 1, name


def strange(path: Path) -> list[str]:
    place = str(path.relative_to(ROOT))
    found = [
        f"{place}:{line} {name}: {WORDS[word]}"
        for line, name in names(path)
        for word in {part.lower() for part in PART.findall(name)} & WORDS.keys()
        if place not in ALLOWED.get(word, ())
    ]
    return found + [f"{place}: {WORDS[word]}" for word in set(path.stem.split("_")) & WORDS.keys()]


@pytest.mark.parametrize("root", ["app", "workers", "clients", "bench", "tests"])
def test_names_use_the_words_of_the_field(root):
    assert [fault for path in modules(root).values() for fault in strange(path)] == []


@pytest.mark.parametrize("roots", [("app", "workers"), ("clients",)], ids=" ".join)
def test_no_class_name_is_used_twice(roots):
    places = defaultdict(list)
    for module, cls in classes(*roots):
        if not cls.name.startswith("_"):
            places[cls.name].append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
