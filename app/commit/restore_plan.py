"""Taking a table back to an earlier version: what of it is different by now, and how its rows come to be staged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.commit.commit_message import CommitMessage
from app.commit.write_plan import APPEND_BYTES_MAX
from app.format.dataset import DatasetDefinition
from app.format.file_group import DataFile, FileKind
from app.format.rows.staging import StagedFile


class RestageTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Stage the rows of file groups as they were at a version, as rows that the dataset can take now.

    `then`, `now`: the dataset under the schema of that version, and under the one it has. `groups`: files that were
    live then, in the order of their commits.
    """

    then: DatasetDefinition
    now: DatasetDefinition
    groups: tuple[tuple[DataFile, ...], ...]
    path: str


class Restaged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The staged rows; None if there is none."""

    staged: StagedFile | None


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between an earlier version and the one that the table is at.

    `changed`: file groups that are made of other files; the rows of all others are the same. `earlier`: the files of
    these that were live then. Of postponed writes, which nobody has seen, `dropped` are files to be listed no longer,
    `revived` are those to be listed anew.
    """

    changed: frozenset[str]
    earlier: tuple[tuple[DataFile, ...], ...]
    dropped: tuple[DataFile, ...]
    revived: tuple[DataFile, ...]

    def in_scope(self, live: Iterable[DataFile]) -> list[DataFile]:
        """Those of the live files whose rows the earlier ones replace."""
        return [
            file for file in live if file.kind is not FileKind.POSTPONED and file.file_group in self.changed
        ]

    def with_postponed(self, messages: Mapping[str, CommitMessage]) -> list[CommitMessage]:
        """The messages of the file groups in order, and what becomes of postponed writes, which takes no task."""
        found = dict(messages)
        for file in self.dropped:
            message = found.get(file.file_group, CommitMessage(file_group=file.file_group))
            removed = (*message.removed, file.path)
            found[file.file_group] = msgspec.structs.replace(message, removed=removed)
        for file in self.revived:
            message = found.get(file.file_group, CommitMessage(file_group=file.file_group))
            found[file.file_group] = msgspec.structs.replace(message, added=(*message.added, file))
        return [found[group] for group in sorted(found)]


def plan_restore(earlier: Iterable[DataFile], live: Iterable[DataFile]) -> RestorePlan:
    """`earlier`, `live`: all files of the version to go back to, and of the one that the table is at."""
    then, now = files_by_group(earlier), files_by_group(live)
    changed = changed_groups(then, now)
    dropped, revived = _postponed(then, now)
    return RestorePlan(
        changed=frozenset(changed),
        earlier=tuple(tuple(visible_files(then[group])) for group in changed if group in then),
        dropped=tuple(dropped),
        revived=tuple(revived),
    )


def changed_groups(
    one: Mapping[str, Sequence[DataFile]], other: Mapping[str, Sequence[DataFile]]
) -> list[str]:
    """The file groups whose rows may differ: what readers see of them is not made of the same files."""
    return [
        group
        for group in sorted({*one, *other})
        if _identity(one.get(group, ())) != _identity(other.get(group, ()))
    ]


def visible_files(files: Iterable[DataFile]) -> list[DataFile]:
    """Those of the files that readers see something of."""
    return [file for file in files if file.kind is not FileKind.POSTPONED]


def plan_restaging(
    plan: RestorePlan, then: DatasetDefinition, now: DatasetDefinition, prefix: str
) -> list[RestageTask]:
    """Tasks that stage the rows of the earlier version; small groups go together. `prefix`: what paths start with."""
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
    found: dict[str, list[DataFile]] = {}
    for file in sorted(files, key=lambda file: (file.added_version or 0, file.path)):
        found.setdefault(file.file_group, []).append(file)
    return found


def _identity(files: Iterable[DataFile]) -> set[tuple[object, ...]]:
    """What a group is made of. A file never changes, and neither does a deletion vector."""
    return {(file.path, file.deletion_vector) for file in visible_files(files)}


def _postponed(
    then: Mapping[str, Sequence[DataFile]], now: Mapping[str, Sequence[DataFile]]
) -> tuple[list[DataFile], list[DataFile]]:
    """The postponed files to list no longer, and those to list anew."""
    dropped: list[DataFile] = []
    revived: list[DataFile] = []
    for group in sorted({*then, *now}):
        waited, waits = (
            {file.path: file for file in files.get(group, ()) if file.kind is FileKind.POSTPONED}
            for files in (then, now)
        )
        # Their order is that of their listing: where one has to come back, all are listed anew, together.
        kept = waited.keys() & waits.keys() if waited.keys() <= waits.keys() else set()
        dropped += [waits[path] for path in sorted(waits.keys() - kept)]
        revived += [waited[path] for path in sorted(waited.keys() - kept)]
    return dropped, revived
