"""Globs of partition paths: which they match, and which are refused before they match nothing."""

from __future__ import annotations

import re
import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.partition.fields import PartitionSyntaxError
from app.kernel.format.partition.globs import check_partition_glob, matches_partition_glob
from app.kernel.format.partition.segments import partition_path

FIELDS = ["country", "day(ts)", "truncate(1, name)"]
PATH = "country=DE/ts_day=2026-11-21/name_trunc=%C5%81"


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        (PATH, True),
        ("country=DE", True),
        ("country=DE/*", True),
        ("*", True),
        ("**", True),
        ("*/ts_day=2026-11-*", True),
        ("*/ts_day=2026-1?-2[0-3]", True),
        ("*/ts_day=2026-11-2[!1]", False),
        ("*/ts_day=2026-11-2[!2]", True),
        ("**/ts_day=2026-11-21", True),
        ("**/ts_day=2026-11-21/**", True),
        ("country=DE/**/name_trunc=*", True),
        ("country=DE/**/**/name_trunc=%C5*", True),
        ("**/**/**", True),
        ("**/country=DE", True),
        ("*/*/*", True),
        ("country=D", False),
        ("country=DEU", False),
        ("country=?", False),
        ("country=*2026*", False),
        ("country=de/*", False),
        ("ts_day=2026-11-21", False),
        ("*/*/*/*", False),
        ("**/name_trunc=%C5%82", False),
        ("country=D*E*E", False),
    ],
)
def test_glob_matches_partition_folders(glob: str, matches: bool) -> None:
    assert matches_partition_glob(PATH, glob) is matches


@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("", "an empty glob"),
        ("/country=DE", "empty segment"),
        ("country=DE/", "empty segment"),
        ("country=DE//x", "empty segment"),
        ("country=D**", "'**' stands for whole segments"),
        ("country=[DE", "needs letters, digits or ranges"),
        ("country=D]", "needs letters, digits or ranges"),
        ("country=[]", "needs letters, digits or ranges"),
        ("country=[!]", "needs letters, digits or ranges"),
        ("*/*/name_trunc=Ł", "paths escape 'Ł' as %C5%81"),
        ("country=a:b", "paths escape ':' as %3A"),
        ("country=!", "paths escape '!' as %21"),
        ("x" * 5000, "4096 characters at most"),
        ("x" * 300, "200 characters at most"),
    ],
)
def test_invalid_glob_is_refused(glob: str, words: str) -> None:
    for refuse in (lambda: matches_partition_glob(PATH, glob), lambda: check_partition_glob(glob, FIELDS)):
        with pytest.raises(PartitionSyntaxError, match=re.escape(words)):
            refuse()


@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("country=DE/day=2026-*", "'day=2026-*' of 'country=DE/day=2026-*' matches no partition"),
        ("ts_day=2026-11-21", "partitions are country=…/ts_day=…/name_trunc=…"),
        ("DE", "'DE' of 'DE' matches no partition"),
        ("country", "matches no partition"),
        ("**/DE", "matches no partition"),
        ("*/*/*/*", "is deeper than a partition"),
    ],
)
def test_glob_that_matches_no_possible_partition_is_refused(glob: str, words: str) -> None:
    with pytest.raises(PartitionSyntaxError, match=re.escape(words)):
        check_partition_glob(glob, FIELDS)


@pytest.mark.parametrize(
    "glob", ["*", "**", "count*", "country=*/ts_day=*", "c?untry=DE", "**/name_trunc=a", "[a-z]*/*", PATH]
)
def test_glob_that_matches_a_possible_partition_is_accepted(glob: str) -> None:
    check_partition_glob(glob, FIELDS)


values = st.lists(st.text(alphabet="ab*/é", max_size=3), min_size=1, max_size=3)
parts = st.sampled_from(["*", "**", "f=*", "f=a*", "f=?", "f=[ab]", "f=", "g=*"])


@given(values, st.lists(parts, min_size=1, max_size=4))
def test_glob_matching_equals_an_exhaustive_search(texts: list[str], globs: list[str]) -> None:
    path = partition_path(["f"] * len(texts), texts)

    def search(segments: list[str], wanted: list[str]) -> bool:
        if not wanted:
            return True
        if wanted[0] == "**":
            return any(search(segments[skipped:], wanted[1:]) for skipped in range(len(segments) + 1))
        return bool(segments) and fnmatchcase(segments[0], wanted[0]) and search(segments[1:], wanted[1:])

    assert matches_partition_glob(path, "/".join(globs)) == search(path.split("/"), globs)


def test_glob_of_many_stars_is_matched_quickly() -> None:
    began = time.monotonic()
    assert not matches_partition_glob("f=" + "a" * 190, "f=" + "*a" * 90 + "b")
    assert time.monotonic() - began < 1
