"""Selects the files of its group that a task must read."""

from __future__ import annotations

import numpy as np

from app.files.lookups.file_finder import FileFinder
from workers.engine.task_files import TaskFiles


def files_to_read(files: TaskFiles, hashes: np.ndarray) -> list[int]:
    """Numbers of the base files that may have a touched row. `hashes`: of the incoming keys (uint64, unique)."""
    task = files.task
    finder = FileFinder(files.resources.storage, files.resources.slices)
    answers = finder.answers(task.dataset, task.files, hashes, scope=task.scope)
    return [number for number, answer in answers.items() if answer.read]
