"""Restores: the differences between a table and an earlier version, and the staging of the earlier rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_plan import APPEND_BYTES_MAX
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.engine_task import EngineTask, Work
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.rows.staged import StagedFile


class Restaged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The staged rows; None without rows."""

    file: StagedFile | None = msgspec.field(name="staged")


class RestageTask(EngineTask[Restaged], frozen=True, kw_only=True, tag=True):
    """Stages the rows of file groups at an earlier version, as rows that the dataset accepts now.

    `then`, `now`: the dataset under the schema of that version, and under its current schema. `groups`: files that were
    live then, in the order of their commits.
    """

    then: DatasetDefinition
    now: DatasetDefinition
    groups: tuple[tuple[DataFile, ...], ...]
    path: str

    @property
    def work(self) -> Work:
        """It makes the rows of a restore."""
        return Work.DERIVED

    @property
    def size_bytes(self) -> int:
        """The size of its files."""
        return sum(file.size_bytes for group in self.groups for file in group)


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between an earlier version and the current version of a table.

    `groups`: file groups that consist of other files; the rows of all others are equal. `earlier`: the files of these
    groups that were live then. Postponed writes have not been visible yet: `files_to_drop` are files to remove from the
    listing, `files_to_list` are files to list again.
    """

    groups: frozenset[str]
    earlier: tuple[tuple[DataFile, ...], ...]
    files_to_drop: tuple[DataFile, ...]
    files_to_list: tuple[DataFile, ...]

    def in_scope(self, live: Iterable[DataFile]) -> list[DataFile]:
        """The live files whose rows the earlier rows replace."""
        return [
            file for file in live if file.kind is not FileKind.POSTPONED and file.file_group in self.groups
        ]

    def with_postponed(self, messages: Mapping[str, CommitMessage]) -> list[CommitMessage]:
        """The messages of the file groups in order, with the changes of postponed writes, which need no task."""
        by_group = dict(messages)
        for file in self.files_to_drop:
            message = by_group.get(file.file_group, CommitMessage(file_group=file.file_group))
            removed_paths = (*message.removed, file.path)
            by_group[file.file_group] = msgspec.structs.replace(message, removed=removed_paths)
        for file in self.files_to_list:
            message = by_group.get(file.file_group, CommitMessage(file_group=file.file_group))
            by_group[file.file_group] = msgspec.structs.replace(message, added=(*message.added, file))
        return [by_group[group] for group in sorted(by_group)]


def plan_restore(earlier: Iterable[DataFile], live: Iterable[DataFile]) -> RestorePlan:
    """The plan of a restore. `earlier`, `live`: all files of the earlier version, and of the current one."""
    then, now = files_by_group(earlier), files_by_group(live)
    groups = changed_groups(then, now)
    to_drop, to_list = _postponed(then, now)
    return RestorePlan(
        groups=frozenset(groups),
        earlier=tuple(tuple(visible_files(then[group])) for group in groups if group in then),
        files_to_drop=tuple(to_drop),
        files_to_list=tuple(to_list),
    )


def changed_groups(
    one: Mapping[str, Sequence[DataFile]], other: Mapping[str, Sequence[DataFile]]
) -> list[str]:
    """The file groups whose rows may differ: their visible files are not the same."""
    return [
        group
        for group in sorted({*one, *other})
        if _identity(one.get(group, ())) != _identity(other.get(group, ()))
    ]


def visible_files(files: Iterable[DataFile]) -> list[DataFile]:
    """The files with rows that are visible to readers."""
    return [file for file in files if file.kind is not FileKind.POSTPONED]


def plan_restaging(
    plan: RestorePlan, then: DatasetDefinition, now: DatasetDefinition, prefix: str
) -> list[RestageTask]:
    """Tasks that stage the rows of the earlier version; small groups share a task. `prefix`: the path prefix."""
    packs: list[list[tuple[DataFile, ...]]] = []
    packed_bytes = 0
    for group in plan.earlier:
        if not group:
            continue
        size_bytes = sum(file.size_bytes for file in group)
        if not packs or packed_bytes + size_bytes > APPEND_BYTES_MAX:
            packs.append([])
            packed_bytes = 0
        packs[-1].append(group)
        packed_bytes += size_bytes
    return [
        RestageTask(then=then, now=now, groups=tuple(groups), path=f"{prefix}-{number:05d}.arrow")
        for number, groups in enumerate(packs)
    ]


def files_by_group(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """The files of each group in the order of their commits."""
    groups: dict[str, list[DataFile]] = {}
    for file in sorted(files, key=lambda file: (file.added_version or 0, file.path)):
        groups.setdefault(file.file_group, []).append(file)
    return groups


def _identity(files: Iterable[DataFile]) -> set[tuple[object, ...]]:
    """The identity of a group's contents. A file never changes, and neither does a deletion vector."""
    return {(file.path, file.deletion_vector) for file in visible_files(files)}


def _postponed(
    then: Mapping[str, Sequence[DataFile]], now: Mapping[str, Sequence[DataFile]]
) -> tuple[list[DataFile], list[DataFile]]:
    """The postponed files to remove from the listing, and those to list again."""
    to_drop: list[DataFile] = []
    to_list: list[DataFile] = []
    for group in sorted({*then, *now}):
        old_files, live_files = (
            {file.path: file for file in files.get(group, ()) if file.kind is FileKind.POSTPONED}
            for files in (then, now)
        )
        # Their order is that of their listing: if one must be listed again, all are listed again, together.
        same_paths = old_files.keys() & live_files.keys() if old_files.keys() <= live_files.keys() else set()
        to_drop += [live_files[path] for path in sorted(live_files.keys() - same_paths)]
        to_list += [old_files[path] for path in sorted(old_files.keys() - same_paths)]
    return to_drop, to_list
