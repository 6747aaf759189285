"""Rebasing what a table service wrote on the rows that were deleted meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from pyroaring import FrozenBitMap

from app.files.deletion_vector_file import VectorReader, write_vectors
from app.files.storage import Storage
from app.lake.commit_message import CommitMessage
from app.lake.deletion_vector import positions_set
from app.lake.file_group import DataFile
from app.lake.paths import Folder, written_path
from app.lake.rebase import Rewritten, rebased
from app.lake.write_plan import MergeTask


@dataclass(frozen=True, slots=True)
class RebaseFiles:
    """Gives the files of a rewrite the deletion vectors that they need by now."""

    storage: Storage

    def rebase(
        self, task: MergeTask, message: CommitMessage, live: Mapping[str, DataFile], attempt: str
    ) -> CommitMessage:
        """What the task answered, as if the rows had been gone that are in the `live` files by path, which are those
        that it wrote anew. New vectors go to a file of the `attempt`.

        The task keeps the order of rows. Raises CorruptFile, StorageFull.
        """
        reader = VectorReader(self.storage)
        gone = rebased(
            [
                Rewritten(file=file, before=_gone(reader, file), now=_gone(reader, live[file.path]))
                for file in task.files
            ],
            message.added,
        )
        deleted = {path: positions_set(positions) for path, positions in gone.items()}
        rows = {file.path: file.row_count for file in message.added}
        # A file without any row left is not listed.
        emptied = {path for path, positions in deleted.items() if len(positions) == rows[path]}
        kept = {path: positions for path, positions in deleted.items() if path not in emptied}
        name = written_path(task.data_prefix, Folder.DELETES, task.slot, attempt)
        vectors = write_vectors(self.storage, name, kept) if kept else {}
        added = [
            msgspec.structs.replace(file, deletion_vector=vectors.get(file.path))
            for file in message.added
            if file.path not in emptied
        ]
        return msgspec.structs.replace(message, added=tuple(added))


def _gone(reader: VectorReader, file: DataFile) -> FrozenBitMap | None:
    return None if file.deletion_vector is None else reader.read(file.deletion_vector)
