"""Files that lose rows, listed again with other deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from app.infra.files.deletion_vector_file import VectorReader, write_vectors
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.deletion_vector import union
from app.kernel.format.paths import Folder
from workers.engine.task_files import TaskFiles


def marked_files(files: TaskFiles, positions_by_file: Mapping[int, np.ndarray]) -> list[DataFile]:
    """The files that lose the rows at these positions (int64), with their new vectors.

    A file without live rows is not listed again. Raises StorageFull.
    """
    reader = VectorReader(files.resources.storage)
    deletions_by_path = {}
    for number, positions in sorted(positions_by_file.items()):
        file = files.task.files[number]
        before = None if file.deletion_vector is None else reader.read(file.deletion_vector)
        after = union(before, positions)
        if len(after) < file.row_count:
            deletions_by_path[file.path] = (file, after)
    path = files.path(Folder.DELETES, files.task.slot)
    vectors = write_vectors(
        files.resources.storage, path, {name: after for name, (_, after) in deletions_by_path.items()}
    )
    return [
        msgspec.structs.replace(file, deletion_vector=vectors[name])
        for name, (file, _) in deletions_by_path.items()
    ]
