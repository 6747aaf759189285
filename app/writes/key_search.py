"""What the use cases that read need of the files of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from app.commit.storing import Storing
from app.commit.write_plan import WriteScope
from app.format.dataset import DatasetDefinition
from app.format.file_group import DataFile
from app.format.index.index_answer import FileAnswer
from app.format.index.live_key import LiveKey


class KeySearchPort(Protocol):
    """Finds keys in the files of a file group. `files`: in order of their commits. `keys`: canonical, large_binary."""

    def answers(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        keys: pa.ChunkedArray,
        scope: WriteScope | None,
        storing: Storing,
    ) -> dict[int, FileAnswer]:
        """For the base files, by number, whether a write that is stored so has to read each. Raises CorruptFile."""
        ...

    def live(
        self, dataset: DatasetDefinition, files: Sequence[DataFile], keys: pa.ChunkedArray
    ) -> dict[bytes, LiveKey]:
        """Those of the keys that have a live row, with logs merged in. Raises CorruptFile."""
        ...
