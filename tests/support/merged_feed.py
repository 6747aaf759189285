"""The feed of a table whose changelog files a table service has merged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from msgspec import structs

from app.infra.files.changelog_merge import ChangelogMerger
from app.kernel.changelog.merge_plan import SmallFile
from app.kernel.format.file_group import ChangelogSegment, StoredFile
from tests.support.table_feed import TableFeed

_numbers = count(1)


@dataclass(kw_only=True)
class MergedFeed(TableFeed):
    """Starts with the files of the commits; `merge` replaces some that are adjacent by one, as the catalogue does."""

    listed: list[ChangelogSegment] = field(init=False)

    def __post_init__(self) -> None:
        self.listed = super()._all()

    def _all(self) -> list[ChangelogSegment]:
        return self.listed

    def files(self) -> list[SmallFile]:
        """The files in the order of the feed."""
        found: dict[str, SmallFile] = {}
        for each in self.listed:
            if each.file.path not in found:
                found[each.file.path] = SmallFile(
                    file=each.file,
                    first_offset=each.first_offset,
                    segments=sum(other.file.path == each.file.path for other in self.listed),
                    committed_at=each.committed_at,
                )
        return list(found.values())

    def merge(self, first: int, end: int) -> None:
        """Merges files [first, end) by their number."""
        inputs = self.files()[first:end]
        merger = ChangelogMerger(storage=self.table.storage, reader=self.table.reader)
        path = f"{self.table.name}/changes/merged-1-{next(_numbers):016x}.parquet"
        merged = merger.merge([each.file for each in inputs], path, self.table.dataset.compression)
        assert merged is not None
        assert merged.inputs == len(inputs)
        self.list_merged(inputs, merged.file)

    def list_merged(self, replaced: Sequence[SmallFile], merged: StoredFile) -> None:
        """Lists the merged file in place of others."""
        paths, start = {each.file.path for each in replaced}, replaced[0].first_offset
        self.listed = [
            structs.replace(
                each,
                file=structs.replace(each.file, **structs.asdict(merged)),
                first_row=each.first_offset - start,
            )
            if each.file.path in paths
            else each
            for each in self.listed
        ]

    def merge_some(self, chance: random.Random) -> None:
        """Merges runs of files anywhere, also of merged ones."""
        for _ in range(chance.randint(1, 4)):
            files = len(self.files())
            if files < 2:
                return
            first = chance.randrange(files - 1)
            self.merge(first, chance.randint(first + 2, min(files, first + 30)))
