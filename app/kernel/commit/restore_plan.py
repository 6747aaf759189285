"""Restores: the differences between a table and an earlier version, and the staging of the earlier rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_plan import APPEND_BYTES_MAX
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.engine_task import EngineTask, Work
from app.kernel.format.file_group import DataFile, FileKind, readable_files
from app.kernel.format.rows.staged import StagedFile


class Restaged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The staged rows; None without rows. `tombstones`: the files of those that logs make."""

    file: StagedFile | None = msgspec.field(name="staged")
    tombstones: tuple[DataFile, ...] = ()


class RestageTask(EngineTask[Restaged], frozen=True, kw_only=True, tag=True):
    """Stages the rows of file groups at an earlier version, as rows that the dataset accepts now.

    `then`, `now`: the dataset under the schema of that version, and under its current schema. `groups`: files that were
    live then, in the order of their commits. `path`: that of the rows. `data_prefix`, `attempt`: those of the names of
    tombstone files.
    """

    then: DatasetDefinition
    now: DatasetDefinition
    groups: tuple[tuple[DataFile, ...], ...]
    path: str
    data_prefix: str
    attempt: str

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
    groups that were live then. Postponed writes have not been visible yet, and tombstones are not rows: `files_to_drop`
    are files to remove from the listing, `files_to_list` are files to list again. `tombstone_paths`: those of all
    current tombstones.
    """

    groups: frozenset[str]
    earlier: tuple[tuple[DataFile, ...], ...]
    files_to_drop: tuple[DataFile, ...]
    files_to_list: tuple[DataFile, ...]
    tombstone_paths: frozenset[str] = frozenset()

    def in_scope(self, live: Iterable[DataFile]) -> list[DataFile]:
        """The live files whose rows the earlier rows replace."""
        return [file for file in readable_files(live) if file.file_group in self.groups]

    def with_tombstones(self, files: Iterable[DataFile]) -> RestorePlan:
        """The same plan, with these tombstone files to list: those that logs of the earlier version make."""
        return msgspec.structs.replace(self, files_to_list=(*self.files_to_list, *files))

    def with_listings(self, messages: Mapping[str, CommitMessage]) -> list[CommitMessage]:
        """The messages of the file groups in order, with the files to drop and to list, which need no task.

        Whatever tombstones a task has ended or left, those of the earlier version are listed.
        """
        by_group = {
            group: msgspec.structs.replace(
                message,
                removed=tuple(path for path in message.removed if path not in self.tombstone_paths),
                added=tuple(file for file in message.added if file.kind.holds_rows),
            )
            for group, message in messages.items()
        }
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
    to_drop, to_list = _unlike(then, now, FileKind.POSTPONED)
    # Where a group had logs, they and its tombstones say what tombstones there were.
    unchanged = {
        group for group in then.keys() & now.keys() if group not in groups and _has_logs(then[group])
    }
    settled = {group: files for group, files in then.items() if not _has_logs(files)}
    current = {group: files for group, files in now.items() if group not in unchanged}
    tombstones_to_drop, tombstones_to_list = _unlike(settled, current, FileKind.TOMBSTONE)
    return RestorePlan(
        groups=frozenset(groups),
        earlier=tuple(tuple(readable_files(then[group])) for group in groups if group in then),
        files_to_drop=(*to_drop, *tombstones_to_drop),
        files_to_list=(*to_list, *tombstones_to_list),
        tombstone_paths=frozenset(
            file.path for files in now.values() for file in files if file.kind is FileKind.TOMBSTONE
        ),
    )


def changed_groups(
    one: Mapping[str, Sequence[DataFile]], other: Mapping[str, Sequence[DataFile]]
) -> list[str]:
    """The file groups whose rows may differ: the files that a reader opens are not the same."""
    return [
        group
        for group in sorted({*one, *other})
        if _identity(one.get(group, ())) != _identity(other.get(group, ()))
    ]


def plan_restaging(
    plan: RestorePlan,
    then: DatasetDefinition,
    now: DatasetDefinition,
    prefix: str,
    *,
    data_prefix: str,
    attempt: str,
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
        RestageTask(
            then=then,
            now=now,
            groups=tuple(groups),
            path=f"{prefix}-{number:05d}.arrow",
            data_prefix=data_prefix,
            attempt=attempt,
        )
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
    return {(file.path, file.deletion_vector) for file in readable_files(files)}


def _has_logs(files: Iterable[DataFile]) -> bool:
    return any(file.kind is FileKind.LOG for file in files)


def _unlike(
    then: Mapping[str, Sequence[DataFile]], now: Mapping[str, Sequence[DataFile]], kind: FileKind
) -> tuple[list[DataFile], list[DataFile]]:
    """The files of this kind to remove from the listing, and those to list again."""
    to_drop: list[DataFile] = []
    to_list: list[DataFile] = []
    for group in sorted({*then, *now}):
        old_files, live_files = (
            {(file.path, file.deletion_vector): file for file in files.get(group, ()) if file.kind is kind}
            for files in (then, now)
        )
        # Their order is that of their listing: if one must be listed again, all are listed again, together.
        same = old_files.keys() & live_files.keys() if old_files.keys() <= live_files.keys() else set()
        to_drop += [file for name, file in sorted(live_files.items(), key=_path) if name not in same]
        to_list += [file for name, file in sorted(old_files.items(), key=_path) if name not in same]
    return to_drop, to_list


def _path(item: tuple[object, DataFile]) -> str:
    return item[1].path
