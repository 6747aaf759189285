"""Globs of partition paths: which they match, and which are refused before they match nothing."""

from __future__ import annotations

import re
import string
import time
from fnmatch import fnmatchcase
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.partition.fields import PartitionSyntaxError
from app.kernel.format.partition.globs import check_partition_glob, matches_partition_glob
from app.kernel.format.partition.segments import NULL_VALUE, partition_path

FIELDS = ["country", "day(ts)", "truncate(1, name)"]
PATH = "country=DE/ts_day=2026-11-21/name_trunc=%C5%81"
# The characters that a glob may have as they are.
KEPT = string.ascii_letters + string.digits + "_.-~ "


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
    ("value", "glob", "matches"),
    [
        ("san francisco", "city=san%20francisco", True),
        ("san francisco", "c%69ty=s?n%20*", True),
        ("Köln", "city=K%c3%b6ln", True),
        ("Köln", "city=%4b%C3%b6*", True),
        ("Köln", "city=K%c3*", True),
        ("Köln", "city=*%b6ln", True),
        ("*", "city=%2a", True),
        ("x", "city=%2a", False),
        ("x", "city=%3f", False),
        ("_x", "city=%5Fx", True),
        (None, "city=__HIVE_DEFAULT_PARTITION__", True),
        (None, "city=%5f_HIVE_DEFAULT_PARTITION__", False),
        (None, "city=%5F*", False),
        (NULL_VALUE, "city=__HIVE_DEFAULT_PARTITION__", False),
        (NULL_VALUE, "city=%5f_HIVE_DEFAULT_PARTITION__", True),
        (NULL_VALUE, "city=%5f%5FHIVE*", True),
    ],
)
def test_escapes_of_a_glob_stand_for_their_characters(value: str | None, glob: str, matches: bool) -> None:
    check_partition_glob(glob, ["city"])
    assert matches_partition_glob(partition_path(["city"], [value]), glob) is matches


@given(st.text(max_size=20), st.text(max_size=20), st.randoms(use_true_random=False))
def test_every_escape_of_a_value_matches_its_partition_only(value: str, other: str, random: Random) -> None:
    glob = "f=" + "".join(
        chr(byte)
        if chr(byte) in KEPT and random.random() < 0.5
        else random.choice(("%%%02x", "%%%02X")) % byte
        for byte in value.encode()
    )
    assert matches_partition_glob(partition_path(["f"], [value]), glob)
    assert matches_partition_glob(partition_path(["f"], [other]), glob) is (other == value)


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
        ("country=%", "'%' in 'country=%' needs two hexadecimal digits"),
        ("country=%4", "needs two hexadecimal digits"),
        ("country=%zz*", "needs two hexadecimal digits"),
        ("country=K%*", "needs two hexadecimal digits"),
        ("country=K%F6ln", "'%F6' in 'country=K%F6ln' is no UTF-8"),
        ("country=K%C3ln", "'%C3' in 'country=K%C3ln' is no UTF-8"),
        ("country=K[%C3]ln", "needs letters, digits or ranges"),
        ("country=a=b", "paths escape '=' as %3D"),
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
