"""No byte of rendered files, and of the documents that name them, has a hidden value or depends on one."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from app.infra.files.storage import LocalStorage
from tests.open.memory_tables import LIMITED, Part, ServedFromMemory
from tests.open.planted import marks
from tests.open.planted_tables import Grant, PlantedTable, grant_of
from tests.support.commit_seed import commit_seed
from tests.support.left_out import left_out

_GRANTS: Final = 50
"""Of each table."""
_TWINS: Final = 2
"""Of each table: how many of its grants have a twin of the table."""
_OTHERS: Final = 5
"""Files of others that each reader tries to open."""
_FEW: Final = 20


def check_table(folder: Path, seed: int | str, grants: int) -> tuple[int, int]:
    """How many readers of the table see nothing that is hidden, and how many bytes they got."""
    table = PlantedTable(_storage(folder, "table"), seed)
    served, dice = ServedFromMemory(table), random.Random(f"grants {seed}")
    size_bytes, paths = 0, set[str]()
    for number in range(grants):
        version = dice.randrange(1, len(table.past))
        grant = grant_of(dice, dice.choice(table.past[-1]))
        parts = list(served.parts(grant.access, version))
        _check_marks(table, grant, version, parts)
        if number < _TWINS:
            twin = PlantedTable(_storage(folder, f"twin {number}"), seed, grant)
            _check_equal(grant, parts, list(ServedFromMemory(twin).parts(grant.access, version)))
        size_bytes += sum(len(content) for _, content in parts)
        own = {name for name, _ in parts if name.endswith(".parquet")}
        others = sorted(paths - own)
        _check_others(table, grant, served, dice.sample(others, min(_OTHERS, len(others))))
        paths |= own
    return grants, size_bytes


def _check_others(table: PlantedTable, grant: Grant, served: ServedFromMemory, paths: Sequence[str]) -> None:
    """Files of other readers, and of other versions, are opened only if the reader sees all that they have."""
    known = _marks_of([grant.shown(rows) for rows in table.past])
    for path in paths:
        content = served.opened(grant.access, path)
        assert content is None or marks(content) <= known, (grant, path)


def _storage(folder: Path, name: str) -> LocalStorage:
    (folder / name).mkdir()
    return LocalStorage(folder / name)


def _check_marks(table: PlantedTable, grant: Grant, version: int, parts: list[Part]) -> None:
    """The values in what is served are visible ones of the version, and all of these are found."""
    shown = _marks_of(grant.shown(table.past[version]))
    # Conditions have values of the table; errors and forms repeat them.
    known = shown | marks(repr(grant.where).encode())
    found, contents = set[int](), set[bytes]()
    for name, content in parts:
        if content in contents:
            continue
        contents.add(content)
        here = marks(content)
        assert here <= known, (grant, version, name, sorted(here - known)[:5])
        found |= here
    assert shown <= found, (grant, version, sorted(shown - found)[:5])


def _marks_of(rows: Any) -> set[int]:
    """The numbers of the marked values in rows."""
    return marks(b" ".join(_texts(rows)))


def _texts(value: Any) -> Iterator[bytes]:
    match value:
        case dict():
            yield from _texts(list(value.values()))
        case list() | tuple():
            for each in value:
                yield from _texts(each)
        case Decimal():
            yield str(int(value.scaleb(4))).encode()
        case bytes():
            yield value
        case _:
            yield str(value).encode()


def _check_equal(grant: Grant, parts: list[Part], others: list[Part]) -> None:
    assert [name for name, _ in parts] == [name for name, _ in others], grant
    for (name, content), (_, other) in zip(parts, others, strict=True):
        assert content == other or name == LIMITED, (grant, name)


def test_search_finds_each_value_of_a_file_that_shows_too_much(tmp_path: Path) -> None:
    table = PlantedTable(LocalStorage(tmp_path), "everything")
    version = len(table.past) - 1
    [path, *_] = [file.path for file in table.versioned.files[version]]
    found = marks((tmp_path / path).read_bytes())
    assert len(found & _marks_of(table.past[version])) > 50


def test_few_readers_get_nothing_that_is_hidden(tmp_path: Path) -> None:
    assert check_table(tmp_path, commit_seed(), _FEW)[1]


@left_out("OPEN", "test-open")
def test_many_readers_get_nothing_that_is_hidden(record_property: Callable[[str, object], None]) -> None:
    """`OPEN_COMBINATIONS`: how many tables and readers. `OPEN_SEED`: the first seed. A failure names its seed."""
    first, many = int(os.environ.get("OPEN_SEED", "0")), int(os.environ.get("OPEN_COMBINATIONS", "1000"))
    readers = size_bytes = 0
    for seed in range(first, first + -(-many // _GRANTS)):
        with TemporaryDirectory(prefix="headwater-tests-") as folder:
            try:
                found = check_table(Path(folder), seed, _GRANTS)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}") from error
        readers, size_bytes = readers + found[0], size_bytes + found[1]
    record_property("open", f"{readers} readers of {readers // _GRANTS} tables, {size_bytes} bytes")
